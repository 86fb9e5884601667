"""Keep or remove modes at any site, and choose which modes."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from grokscope.activations import Conditioning, InputEdit, RunStack, Subject, condition_of, conditioning_basis
from grokscope.errors import InputError, shown
from grokscope.measures.spectrum import CONSTANT_SHARE, spectrum
from grokscope.measures.synchronization import fsd
from grokscope.model.sites import READ_POSITION_ONLY
from grokscope.shapes import Bool, Float, Int
from grokscope.tasks import Basis, Task

__all__ = [
    "Change",
    "FilterKind",
    "chosen_modes",
    "kept_means",
    "key_modes",
    "mode_filter",
    "mode_part",
    "neuron_edit",
    "pair_part",
    "read_neurons",
    "top_modes",
    "voted_modes",
    "waves_over",
]

Change = Literal["keep", "only", "remove"]
"""`keep`: the overall mean and the chosen modes; `only`: those modes without the mean; `remove`: all but them."""
FilterKind = Literal["answer_mean", "input_pairs"]
"""`answer_mean` filters the answer-conditioned mean; `input_pairs` filters over (a, b) in two dimensions."""
RESTRICTED_MODES = 7  # paper: §5.2


# The parts of functions that lie in modes.


def mode_part(
    functions: Float[Tensor, "*runs answers neurons"], basis: Basis, modes: Bool[Tensor, "*#runs modes"]
) -> Float[Tensor, "*runs answers neurons"]:
    """Σ_{m ∈ K} P_m A of functions A[s, j] on the answers, in float64; 0 at answers outside the basis's group.

    P_m is the projector on mode m: on Z_n, on cos(2πfs/n) and sin(2πfs/n). Every answer has the same weight, however
    many pairs give it.
    """
    waves = waves_over(functions.shape[-2], basis, functions.device)
    coefficients = waves.T @ functions.double()
    return waves @ (coefficients * _columns(basis, modes)[..., None])


def kept_means(
    means: Float[Tensor, "*runs answers neurons"],
    part: Float[Tensor, "*runs answers neurons"],
    basis: Basis,
    *,
    with_mean: bool = True,
) -> Float[Tensor, "*runs answers neurons"]:
    """A part of A[s, j], with A's mean over the group's answers; an answer outside the group has all of A."""
    inside = torch.tensor(basis.answers, device=means.device)
    if with_mean:
        part = part + means[..., inside, :].mean(dim=-2, keepdim=True)
    return means.double().index_copy(-2, inside, part[..., inside, :])


def pair_part(
    functions: Float[Tensor, "*runs n n neurons"], basis: Basis, modes: Bool[Tensor, "*#runs modes"]
) -> Float[Tensor, "*runs n n neurons"]:
    """(Π_K ⊗ Π_K − Π_∅ ⊗ Π_∅) F of functions F[a, b, j]: what the two-dimensional filter keeps besides the mean.

    Π_K = Π_∅ + Σ_{m ∈ K} P_m, with Π_∅ the projector on constants, acts on a and on b: terms in a alone, in b alone,
    and products of any two chosen modes are kept. In float64.
    """
    waves = waves_over(functions.shape[-2], basis, functions.device)
    columns = _columns(basis, modes)
    columns[..., 0] = True
    both = columns[..., :, None] & columns[..., None, :]
    both[..., 0, 0] = False
    coefficients = _on_both(waves.T, functions.double())
    return _on_both(waves, coefficients * both[..., None])


def _on_both(matrix: Float[Tensor, "m n"], functions: Float[Tensor, "*runs n n neurons"]) -> Tensor:
    """The matrix applied to a and to b, one after the other: both at once would hold n⁴ numbers."""
    return torch.einsum("db,...cbj->...cdj", matrix, torch.einsum("ca,...abj->...cbj", matrix, functions))


def waves_over(size: int, basis: Basis, device: torch.device) -> Float[Tensor, "size columns"]:
    """The basis's orthonormal columns over all answers; an answer outside the group has zeros."""
    waves = np.zeros((size, len(basis.answers)))
    waves[basis.answers] = basis.modes.basis
    return torch.from_numpy(waves).to(device)


def _columns(basis: Basis, modes: Bool[Tensor, "*runs modes"]) -> Bool[Tensor, "*runs columns"]:
    """The columns that belong to chosen modes; the first, the constant, never does."""
    of_modes = modes[..., torch.tensor(basis.modes.column_mode, device=modes.device)]
    return torch.nn.functional.pad(of_modes, (1, 0), value=False)


# Filters.


def mode_filter(
    subject: RunStack,
    site: str,
    modes: Bool[Tensor, "#runs modes"] | int = RESTRICTED_MODES,
    change: Change = "keep",
    *,
    kind: FilterKind = "answer_mean",
    basis: Basis | None = None,
    by: Conditioning = "answer",
    every_position: bool = False,
) -> InputEdit:
    """The edit that keeps or removes modes at a site, at the last position or at every one.

    `answer_mean` (paper: §5.2): to keep, the activation becomes its answer-conditioned mean A[s], reduced to the mean
    over the group's answers and the chosen modes; to remove, the chosen modes of A[s] are subtracted and all else
    stays. A is a function on the group with the same weight for every answer, however many pairs give it. Pairs whose
    answer is outside the group (0, for multiplication) keep their conditioned mean, or stay as they are.

    `input_pairs`: F(a, b) becomes (Π_K ⊗ Π_K) F; to remove, that part of F is subtracted, its overall mean excepted.

    Means are those of the unedited model. A number of modes stands for the site's `top_modes`.
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
    several = every_position and site not in READ_POSITION_ONLY
    means = subject.means(site, by, every_position=several).means
    index = torch.tensor(condition_of(subject.task, by), device=subject.device)
    part = mode_part(means, basis, modes)
    return part if change == "remove" else kept_means(means, part, basis, with_mean=change == "keep"), index


def _pair_table(
    subject: RunStack, site: str, modes: Tensor, change: Change, basis: Basis, by: Conditioning, every_position: bool
) -> Table:
    """What an activation becomes, or loses, for each input."""
    grid = pair_rows(subject.task, basis)
    if len(grid) != subject.task.symbols:
        raise InputError(
            f"the filter over (a, b) needs a basis of all {subject.task.symbols} symbols of {subject.task.name}, "
            f"got the {basis.name} one of {len(grid)}"
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


def pair_rows(task: Task, basis: Basis) -> Int[np.ndarray, "n n"]:
    """The row of `task.inputs` that holds each pair of the basis's symbols, in the order of its group."""
    rows = np.full((task.symbols, task.symbols), -1)
    rows[task.inputs[:, 0], task.inputs[:, 1]] = np.arange(len(task.inputs))
    grid = rows[np.ix_(basis.answers, basis.answers)]
    if (grid < 0).any():
        raise InputError(f"{task.name} lacks {(grid < 0).sum()} of the pairs (a, b) that the {basis.name} basis needs")
    return grid


# Sites as neurons.


def read_neurons(subject: RunStack, site: str, *, every_position: bool = False) -> Float[Tensor, "runs inputs neurons"]:
    """A site's value for every input, all further axes (and positions, if wanted) taken as neurons."""
    several = every_position and site not in READ_POSITION_ONLY
    parts = [values[site] for _, values in subject.parts([site], every_position=several)]
    return torch.cat([(value.movedim(1, 2) if several else value).flatten(2) for value in parts], dim=1)


def neuron_edit(
    subject: RunStack, site: str, change: Callable[[Tensor, slice], Tensor], *, every_position: bool = False
) -> InputEdit:
    """An edit made of a change of `read_neurons`' form: float64 [runs, inputs, neurons] and the rows these are."""

    def edit(value: Tensor, rows: slice) -> Tensor:
        copy = value.clone(memory_format=torch.contiguous_format)
        part = _neurons_in(copy, site, subject.task.classes, every_position)
        part.copy_(change(part.flatten(2).double(), rows).reshape(part.shape))
        return copy

    return edit


def _neurons_in(value: Tensor, site: str, classes: int, every_position: bool) -> Tensor:
    """The view of a site's value [runs, inputs, …] that `read_neurons` reads."""
    if site in READ_POSITION_ONLY:
        return value[..., :classes] if site == "logits" else value
    if site.endswith("hook_pattern"):  # [runs, queries, keys, inputs, heads]
        value = value.movedim(2, -1)
    return value.movedim(1, 2) if every_position else value[:, -1]


# Which modes. Keys of this checkpoint are causal; a later checkpoint's, given to an earlier one, are retrospective.


def chosen_modes(
    subject: Subject,
    site: str,
    modes: Bool[Tensor, "#runs modes"] | int,
    *,
    basis: Basis,
    by: Conditioning = "answer",
) -> Bool[Tensor, "runs modes"]:
    """A choice of modes for each run: a number means the site's `top_modes`, one row is shared by all runs."""
    if isinstance(modes, int):
        return top_modes(subject, site, modes, basis=basis, by=by)
    if modes.shape[-1] != len(basis.modes) or len(modes) not in (1, len(subject)):
        raise InputError(
            f"modes must be chosen as [{len(subject)} runs, {len(basis.modes)} modes of the {basis.name} basis], "
            f"got {shown(list(modes.shape))}"
        )
    return modes.to(subject.device).expand(len(subject), -1)


def top_modes(
    subject: Subject,
    site: str,
    count: int = RESTRICTED_MODES,
    *,
    basis: Basis | None = None,
    by: Conditioning = "answer",
    rank_by: Literal["participation", "power"] = "participation",
) -> Bool[Tensor, "runs modes"]:
    """The `count` modes in which most neurons of a site are strongest. Paper: §5.2, step 2.

    Ties, and places left empty because no further mode has a neuron, go by total power, in which each mode is divided
    by its dimension. Ranked by that power alone at `logits`, these are the modes with the largest share of the logits.
    A run whose neurons do not vary, or are not numbers, has none.
    """
    if count < 1:
        raise InputError(f"the number of modes must be at least 1, got {count}")
    basis = basis or conditioning_basis(subject.task, by)
    density = spectrum(subject.means(site, by).means, basis).density
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
    Pairs with a symbol outside the group (0, for multiplication) are left out; constant neurons do not vote.
    """
    basis, site = basis or subject.task.basis(), site or subject.last_site
    neurons = subject.read(site).flatten(2)
    subject.require_numbers(f"activations at {site}", neurons.isfinite())
    return voted_modes(neurons, subject.task, basis)


def voted_modes(neurons: Float[Tensor, "runs inputs neurons"], task: Task, basis: Basis) -> Bool[Tensor, "runs modes"]:
    """`key_modes` of activations that are already at hand, for every pair in the order of `task.inputs`."""
    grid = torch.tensor(pair_rows(task, basis), device=neurons.device)
    values = neurons[:, grid].double()
    waves = torch.tensor(basis.modes.basis, device=neurons.device)
    away = values - values[:, :1, :1]  # variances cancel around 0
    squares = _on_both(waves.T, away).square()
    squares[:, 0, 0] = 0
    share = _pair_density(squares, basis)
    varies = squares.sum(dim=(1, 2)) > CONSTANT_SHARE * values.square().sum(dim=(1, 2))  # never true of NaN
    votes = torch.nn.functional.one_hot(share.argmax(dim=1), len(basis.modes))
    return (votes * varies[..., None]).any(dim=1)


def _pair_density(squares: Float[Tensor, "runs n n neurons"], basis: Basis) -> Float[Tensor, "runs modes neurons"]:
    """Squared coefficients of each mode's terms in a, in b and in both, over their number."""
    mode = torch.tensor(basis.modes.column_mode, device=squares.device)
    first, second = (mode[:, None] == mode).nonzero(as_tuple=True)
    total = squares.new_zeros(len(squares), len(basis.modes), squares.shape[-1])
    total.index_add_(1, mode, squares[:, 1:, 0] + squares[:, 0, 1:])
    total.index_add_(1, mode[first], squares[:, first + 1, second + 1])
    dimensions = torch.tensor(basis.modes.dimensions, dtype=squares.dtype, device=squares.device)
    return total / (2 * dimensions + dimensions**2)[:, None]
