"""Keep or remove modes at any site: edits of a forward pass."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from grokscope.activations import Conditioning, InputEdit, RunStack, condition_of, conditioning_basis
from grokscope.errors import require
from grokscope.measures.mode_choice import RESTRICTED_MODES, chosen_modes
from grokscope.measures.projections import kept_means, mode_part, pair_part, pair_rows
from grokscope.shapes import Bool, Float, Int
from grokscope.tasks import Basis

__all__ = ["Change", "FilterKind", "mode_filter", "neuron_edit", "read_neurons"]

Change = Literal["keep", "only", "remove"]
"""`keep`: the overall mean and the chosen modes; `only`: those modes without the mean; `remove`: all but them."""
FilterKind = Literal["answer_mean", "input_pairs"]
"""`answer_mean` filters the answer-conditioned mean; `input_pairs` filters over (a, b) in two dimensions."""


def mode_filter(
    subject: RunStack,
    site: str,
    modes: Bool[Tensor, "#runs modes"] | int = RESTRICTED_MODES,
    change: Change = "keep",
    *,
    kind: FilterKind = "answer_mean",
    basis: Basis | None = None,
    by: Conditioning = "",
    every_position: bool = False,
) -> InputEdit:
    """The edit that keeps or removes modes at a site, at the last position or at every one.

    `answer_mean` (paper: §5.2): to keep, the activation becomes its answer-conditioned mean A[s], reduced to the mean
    over the group's answers and the chosen modes; to remove, the chosen modes of A[s] are subtracted and all else
    stays. A is a function on the group with the same weight for every answer, however many pairs give it. Pairs whose
    answer is outside the group (0, for multiplication) keep their conditioned mean, or stay as they are.

    `input_pairs`: F(a, b) becomes (Π_K ⊗ Π_K) F; to remove, that part of F is subtracted, its overall mean excepted.

    Means are those of the unedited model. A number of modes stands for the site's `top_modes`.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import Architecture, RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> specs = [RunSpec("add_mod5", architecture=small).with_seed(seed) for seed in (0, 1)]
    >>> subject = subject_of(specs, initial_state(Cohort(specs)).weights)
    >>> edit = mode_filter(subject, "blocks.0.mlp.hook_post", modes=1)
    >>> subject.logits({"blocks.0.mlp.hook_post": edit}).shape
    torch.Size([2, 25, 5])
    """
    basis = basis or conditioning_basis(subject.task, by)
    chosen = chosen_modes(subject, site, modes, basis=basis, by=by)
    table_of = _answer_table if kind == "answer_mean" else _pair_table
    table, index = table_of(subject, site, chosen, change, basis, by, every_position)

    def filtered(value: Tensor, rows: slice) -> Tensor:
        own = table[:, index[rows]]
        return value - own if change == "remove" else own

    return neuron_edit(subject, site, filtered, every_position=every_position)


Table = tuple[Float[Tensor, "runs entries neurons"], Int[Tensor, " inputs"]]


def _answer_table(
    subject: RunStack, site: str, modes: Tensor, change: Change, basis: Basis, by: Conditioning, every_position: bool
) -> Table:
    """What an activation becomes, or loses, for each answer, and the answer of each input."""
    means = subject.means(site, by, every_position=every_position).means
    index = torch.tensor(condition_of(subject.task, by).values, device=subject.device)
    part = mode_part(means, basis, modes)
    return part if change == "remove" else kept_means(means, part, basis, with_mean=change == "keep"), index


def _pair_table(
    subject: RunStack, site: str, modes: Tensor, change: Change, basis: Basis, by: Conditioning, every_position: bool
) -> Table:
    """What an activation becomes, or loses, for each input."""
    grid = pair_rows(subject.task, basis)
    require(
        len(grid) == subject.task.symbols,
        f"the filter over (a, b) needs a basis of all {subject.task.symbols} symbols of {subject.task.name}, "
        f"got the {basis.name} one of {len(grid)}",
    )
    values = read_neurons(subject, site, every_position=every_position)
    subject.require_numbers(f"activations at {site}", values.isfinite())
    over_pairs = values[:, torch.tensor(grid, device=subject.device)].double()
    part = pair_part(over_pairs, basis, modes)
    if change == "keep":
        part = part + over_pairs.mean(dim=(1, 2), keepdim=True)
    place = np.empty(grid.size, dtype=np.int64)
    place[grid.ravel()] = np.arange(grid.size)
    return part.flatten(1, 2), torch.tensor(place, device=subject.device)


def read_neurons(subject: RunStack, site: str, *, every_position: bool = False) -> Float[Tensor, "runs inputs neurons"]:
    """A site's value for every input, all further axes (and positions, if wanted) taken as neurons."""
    parts = subject.parts([site], every_position=every_position)
    return torch.cat([values[site].flatten(2) for _, values in parts], dim=1)


def neuron_edit(
    subject: RunStack, site: str, change: Callable[[Tensor, slice], Tensor], *, every_position: bool = False
) -> InputEdit:
    """An edit made of a change of `read_neurons`' form: float64 [runs, inputs, neurons] and the rows these are."""

    def edit(value: Tensor, rows: slice) -> Tensor:
        copy = value.clone(memory_format=torch.contiguous_format)
        part = subject.view(site, copy, every_position)
        part.copy_(change(part.flatten(2).double(), rows).reshape(part.shape))
        return copy

    return edit
