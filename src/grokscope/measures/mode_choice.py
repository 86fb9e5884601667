"""Which modes are kept or removed: the strongest of a site, or Nanda et al.'s key frequencies.

Those of this checkpoint are causal; a later checkpoint's, given to an earlier one, are retrospective.
"""

from typing import Literal

import torch
from torch import Tensor

from grokscope.activations import Conditioning, Subject, conditioning_basis
from grokscope.errors import require, shown
from grokscope.measures.projections import on_both, pair_rows
from grokscope.measures.spectrum import CONSTANT_SHARE, add_up, spectrum
from grokscope.measures.synchronization import fsd
from grokscope.shapes import Bool, Float
from grokscope.tasks import Basis, Task

__all__ = ["RESTRICTED_MODES", "chosen_modes", "key_modes", "strongest_modes", "top_modes", "voted_modes"]

RESTRICTED_MODES = 7  # paper: §5.2


def chosen_modes(
    subject: Subject,
    site: str,
    modes: Bool[Tensor, "#runs modes"] | int,
    *,
    basis: Basis,
    by: Conditioning = "",
) -> Bool[Tensor, "runs modes"]:
    """A choice of modes for each run: a number means the site's `top_modes`, one row is shared by all runs."""
    if isinstance(modes, int):
        return top_modes(subject, site, modes, basis=basis, by=by)
    require(
        modes.shape[-1] == len(basis.modes) and len(modes) in (1, len(subject)),
        f"modes must be chosen as [{len(subject)} runs, {len(basis.modes)} modes of the {basis.name} basis], "
        f"got {shown(list(modes.shape))}",
    )
    return modes.to(subject.device).expand(len(subject), -1)


def top_modes(
    subject: Subject,
    site: str,
    count: int = RESTRICTED_MODES,
    *,
    basis: Basis | None = None,
    by: Conditioning = "",
    rank_by: Literal["participation", "power"] = "participation",
) -> Bool[Tensor, "runs modes"]:
    """The `count` modes in which most neurons of a site are strongest. Paper: §5.2, step 2.

    Ties, and places left empty because no further mode has a neuron, go by total power, in which each mode is divided
    by its dimension. Ranked by that power alone at `logits`, these are the modes with the largest share of the logits.
    A run whose neurons do not vary, or are not numbers, has none.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import Architecture, RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> specs = [RunSpec("add_mod5", architecture=small).with_seed(seed) for seed in (0, 1)]
    >>> subject = subject_of(specs, initial_state(Cohort(specs)).weights)
    >>> top_modes(subject, "blocks.0.mlp.hook_post", count=1).sum(dim=-1)  # one mode of each run
    tensor([1, 1])
    """
    require(count >= 1, "the number of modes must be at least 1", count)
    basis = basis or conditioning_basis(subject.task, by)
    found = subject.means(site, by)
    return strongest_modes(spectrum(found.means, basis, found.mean_square).density, count, rank_by)


def strongest_modes(
    density: Float[Tensor, "runs modes neurons"],
    count: int,
    rank_by: Literal["participation", "power"] = "participation",
) -> Bool[Tensor, "runs modes"]:
    """`top_modes` of densities that are already at hand.

    >>> strongest_modes(torch.tensor([[[9.0, 0.0, 1.0], [1.0, 1.0, 2.0], [0.0, 0.0, 0.0]]]), count=1)
    tensor([[False,  True, False]])
    """
    total = density.sum(dim=-1)
    order = total.argsort(dim=-1, descending=True, stable=True)
    if rank_by == "participation":
        votes = fsd(density).participation.gather(-1, order)
        order = order.gather(-1, votes.argsort(dim=-1, descending=True, stable=True))
    chosen = torch.zeros_like(total, dtype=torch.bool).scatter(-1, order[:, :count], True)
    return chosen & (total.sum(dim=-1, keepdim=True) > 0)


def key_modes(subject: Subject, site: str = "", *, basis: Basis | None = None) -> Bool[Tensor, "runs modes"]:
    """Nanda et al.'s key frequencies: the modes that explain most of any neuron's variance over (a, b).

    A neuron of the last hidden layer votes for the frequency k whose eight terms, cos and sin of ka, of kb and their
    four products, hold the largest share of its variance; every k with a vote is key. On a group, the terms of a mode
    are its functions of a, of b and their products, divided by their number 2d + d² where modes differ in dimension d.
    Pairs with a symbol outside the group (0, for multiplication) are left out; constant neurons are excluded.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import Architecture, RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> specs = [RunSpec("add_mod5", architecture=small).with_seed(seed) for seed in (0, 1)]
    >>> subject = subject_of(specs, initial_state(Cohort(specs)).weights)
    >>> key_modes(subject).shape  # two runs, two frequencies
    torch.Size([2, 2])
    """
    basis, site = basis or subject.task.basis(), site or subject.hidden_sites[1]
    neurons = subject.read(site).flatten(2)
    subject.require_numbers(f"activations at {site}", neurons.isfinite())
    return voted_modes(neurons, subject.task, basis)


def voted_modes(neurons: Float[Tensor, "runs inputs neurons"], task: Task, basis: Basis) -> Bool[Tensor, "runs modes"]:
    """`key_modes` of activations that are already at hand, for every pair in the order of `task.inputs`."""
    grid = torch.tensor(pair_rows(task, basis), device=neurons.device)
    values = neurons[:, grid].double()
    waves = torch.tensor(basis.modes.basis, device=neurons.device)
    away = values - values[:, :1, :1]  # variances cancel around 0
    squares = on_both(waves.T, away).square()
    squares[:, 0, 0] = 0
    share = _pair_density(squares, basis)
    varies = squares.sum(dim=(1, 2)) > CONSTANT_SHARE * values.square().sum(dim=(1, 2))  # never true of NaN
    votes = torch.nn.functional.one_hot(share.argmax(dim=1), len(basis.modes))
    return (votes * varies[..., None]).any(dim=1)


def _pair_density(squares: Float[Tensor, "runs n n neurons"], basis: Basis) -> Float[Tensor, "runs modes neurons"]:
    """Squared coefficients of each mode's terms in a, in b and in both, over their number."""
    mode = torch.tensor(basis.modes.column_mode, device=squares.device)
    first, second = (mode[:, None] == mode).nonzero(as_tuple=True)
    terms = torch.cat([squares[:, 1:, 0] + squares[:, 0, 1:], squares[:, first + 1, second + 1]], dim=1)
    total = add_up(terms, torch.cat([mode, mode[first]]), len(basis.modes))
    dimensions = torch.tensor(basis.modes.dimensions, dtype=squares.dtype, device=squares.device)
    return total / (2 * dimensions + dimensions**2)[:, None]
