"""Restricted and excluded losses: what is left when only some modes are kept, or when they are taken away.

A *restricted* loss keeps the key modes, an *excluded* loss removes them. `filtered_loss` does either at any site;
`VARIANTS` lists the published definitions, and `variant_loss` computes them.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Literal

import torch
from torch import Tensor

from grokscope.activations import Conditioning, InputEdit, Subject, condition_of, conditioning_basis, means_of
from grokscope.errors import InputError, did_you_mean, shown
from grokscope.measures.filters import (
    RESTRICTED_MODES,
    Change,
    FilterKind,
    checked,
    chosen_modes,
    kept_means,
    key_modes,
    last_hidden_site,
    mode_filter,
    mode_part,
    waves_over,
)
from grokscope.shapes import Bool, Float
from grokscope.tasks import Basis

__all__ = [
    "VARIANTS",
    "FilteredLoss",
    "Scores",
    "Variant",
    "cube_part",
    "excluded_loss_by_mode",
    "filtered_loss",
    "loss_ratio",
    "scores",
    "scores_of",
    "variant_loss",
]

# Logits this near, for their size, are equal: the character of one irrep is the same for many classes, and rounding
# must not choose among them.
TIE = 1e-12
Pairs = Literal["all", "train", "validation"]
Choice = Bool[Tensor, "#runs modes"] | int | None
"""Modes: a row for each run or one for all; a number of the strongest; or None, what the variant prescribes."""


@dataclass(frozen=True)
class Scores:
    """How well pairs are answered: training pairs by the labels the loss sees, all others by the true answers."""

    loss: Float[Tensor, "*runs"]
    """Mean cross-entropy over all pairs, in nats."""
    train_loss: Float[Tensor, "*runs"]
    """Over the training pairs."""
    validation_loss: Float[Tensor, "*runs"]
    """Over all other pairs."""
    accuracy: Float[Tensor, "*runs"]
    """Share of all pairs answered right; classes that tie share the pair."""
    train_accuracy: Float[Tensor, "*runs"]
    """Share of the training pairs."""
    validation_accuracy: Float[Tensor, "*runs"]
    """Share of all other pairs."""


@dataclass(frozen=True)
class FilteredLoss:
    """A loss after modes were kept or removed."""

    scores: Scores
    """Losses and accuracies on all, training and validation pairs."""
    modes: Bool[Tensor, "*runs modes"]
    """The modes that were kept or removed."""
    scored_on: Pairs
    """The pairs on which the measure is defined."""

    @property
    def loss(self) -> Float[Tensor, "*runs"]:
        """The measure: the loss on the pairs on which it is defined."""
        return getattr(self.scores, "loss" if self.scored_on == "all" else f"{self.scored_on}_loss")


@dataclass(frozen=True)
class Variant:
    """One published definition. Where a model has a final LayerNorm, it follows every filter of neurons."""

    level: Literal["logits", "cubes", "neurons"]
    """What is filtered: logits over the inputs, logits over inputs and classes, or the last block's MLP neurons."""
    change: Change
    """What happens to the key modes."""
    scored_on: Pairs
    """The pairs that are scored."""
    definition: str
    """Who defined it, and how."""
    skip: bool = True
    """Whether the residual stream passes beside the filtered neurons."""
    corrected: bool = False
    """Whether each class's mean logit over all inputs is then set back to the model's."""
    count: int | None = None
    """How many of the last hidden layer's `top_modes` are taken; None takes its `key_modes`."""


# u_k and v_k are the unit vectors of cos and sin 2πk(a + b)/p over the inputs, on other tasks the modes' functions of
# the answer: (u_k u_kᵀ + v_k v_kᵀ) L is then a mode of the answer-conditioned mean of L.
VARIANTS: dict[str, Variant] = {
    "trig": Variant(
        "logits", "keep", "all", "Nanda et al.'s restricted loss: Σ_K (u_k u_kᵀ + v_k v_kᵀ) L and each class's mean"
    ),
    "excluded": Variant(
        "logits", "remove", "train", "Nanda et al.'s excluded loss: L − Σ_K (u_k u_kᵀ + v_k v_kᵀ) L, not corrected"
    ),
    "cube_restricted": Variant(
        "cubes", "only", "all", "Chughtai et al., logits: projections on χ(x·y·z⁻¹), which is cos 2πk(a + b − c)/p"
    ),
    "cube_excluded": Variant(
        "cubes", "remove", "train", "Nanda et al. (3D), Chughtai et al. (logits): L without those projections"
    ),
    "neuron_restricted": Variant(
        "neurons",
        "keep",
        "validation",
        "Nanda et al.'s demonstration: mean and key modes of the neurons, nothing beside them, class means set back",
        skip=False,
        corrected=True,
    ),
    "neuron_excluded": Variant(
        "neurons", "remove", "train", "Nanda et al.'s demonstration: neurons without key modes, beside the stream"
    ),
    "hidden_restricted": Variant(
        "neurons",
        "only",
        "all",
        "Chughtai et al., hidden: projections on the functions ρ(x·y) of key irreps, no mean, nothing beside them",
        skip=False,
    ),
    "hidden_excluded": Variant(
        "neurons", "remove", "train", "Chughtai et al., hidden: neurons without those, nothing beside them", skip=False
    ),
    "paper_restricted": Variant(
        "neurons",
        "keep",
        "all",
        "The paper's restricted-logit loss (§5.2): the seven modes with most neurons at this very checkpoint",
        count=RESTRICTED_MODES,
    ),
}


# Scoring.


def scores(subject: Subject, edits: dict[str, InputEdit] | None = None) -> Scores:
    """The scores of every run, with sites edited or not."""
    graded = [_graded(subject, values["logits"], rows) for rows, values in subject.parts(["logits"], edits)]
    return _averaged(subject, torch.cat(graded, dim=-1))


def scores_of(subject: Subject, logits: Float[Tensor, "runs inputs classes"]) -> Scores:
    """The scores of logits that are already at hand."""
    return _averaged(subject, _graded(subject, logits, slice(None)))


def _graded(subject: Subject, logits: Tensor, rows: slice) -> Float[Tensor, "2 runs inputs"]:
    """Cross-entropy of each pair, in float64, and whether it is answered right; NaN where logits are not numbers."""
    logits, labels = logits.double(), torch.where(subject.is_train, subject.labels, subject.answers)[:, rows]
    loss = -logits.log_softmax(dim=-1).gather(-1, labels[..., None])[..., 0]
    scale = logits.abs().amax(dim=-1, keepdim=True)
    is_best = logits >= logits.amax(dim=-1, keepdim=True) - TIE * scale
    right = is_best.gather(-1, labels[..., None])[..., 0].double() / is_best.sum(dim=-1)
    return torch.stack([loss, torch.where(loss.isnan(), torch.nan, right)])


def _averaged(subject: Subject, graded: Float[Tensor, "2 runs inputs"]) -> Scores:
    train = subject.is_train
    masks = (torch.ones_like(train), train, ~train)
    means = [torch.where(mask, graded, 0).sum(dim=-1) / mask.sum(dim=-1) for mask in masks]
    return Scores(*(mean[0] for mean in means), *(mean[1] for mean in means))


# Losses.


def filtered_loss(
    subject: Subject,
    site: str,
    modes: Bool[Tensor, "#runs modes"] | int = RESTRICTED_MODES,
    change: Change = "keep",
    *,
    kind: FilterKind = "answer_mean",
    basis: Basis | None = None,
    by: Conditioning = "answer",
    every_position: bool = False,
    scored_on: Pairs = "all",
) -> FilteredLoss:
    """The loss with modes kept or removed at any site, as `mode_filter` does it; a number means its `top_modes`.

    With 1 and "remove" at `blocks.0.mlp.hook_post`, what is left without block 0's dominant mode.
    """
    basis = basis or conditioning_basis(subject.task, by)
    chosen = chosen_modes(subject, site, modes, basis=basis, by=by)
    edit = mode_filter(subject, site, chosen, change, kind=kind, basis=basis, by=by, every_position=every_position)
    return FilteredLoss(scores(subject, {site: edit}), chosen, scored_on)


def variant_loss(
    subject: Subject,
    name: str = "paper_restricted",
    modes: Choice = None,
    *,
    basis: Basis | None = None,
    by: Conditioning = "answer",
) -> FilteredLoss:
    """A published restricted or excluded loss, by its name in `VARIANTS`.

    By default the keys are those of this checkpoint (causal); given another checkpoint's `key_modes` or `top_modes`,
    the loss is retrospective. Group tasks are read in their irreps by the same definitions. To all of them applies
    what `mode_filter` says: every answer has the same weight, and pairs whose answer is outside the basis's group (0,
    for multiplication) keep their conditioned mean where modes are kept, and stay as they are where modes are removed.

    To keep modes is to use every pair's true answer: what was memorised of the training pairs with that answer reaches
    all others. With few modes little of it passes, with all of them a memorised task has a low restricted loss.
    """
    variant = VARIANTS.get(name)
    if variant is None:
        raise InputError(f"there is no restricted or excluded loss {shown(name)}{did_you_mean(name, VARIANTS)}")
    basis = basis or conditioning_basis(subject.task, by)
    modes = variant.count if modes is None else modes
    if modes is None:
        chosen = key_modes(subject, basis=basis)
    else:
        chosen = chosen_modes(subject, last_hidden_site(subject.architecture), modes, basis=basis, by=by)
    if variant.level != "neurons":
        logits = _logit_filter(subject, variant, basis, by)(chosen)
    else:
        logits = _through_neurons(subject, variant, chosen, basis, by)
    return FilteredLoss(scores_of(subject, logits), chosen, variant.scored_on)


def excluded_loss_by_mode(
    subject: Subject, name: str = "excluded", *, basis: Basis | None = None, by: Conditioning = "answer"
) -> FilteredLoss:
    """The excluded loss of every mode alone, as [runs, modes]: `excluded` (2D) or `cube_excluded` (3D)."""
    if name not in ("excluded", "cube_excluded"):
        raise InputError(f"a loss for every mode is that of 'excluded' or of 'cube_excluded', got {shown(name)}")
    basis = basis or conditioning_basis(subject.task, by)
    filtered = _logit_filter(subject, VARIANTS[name], basis, by)
    alone = torch.eye(len(basis.modes), dtype=torch.bool, device=subject.device)
    each = [scores_of(subject, filtered(mode.expand(len(subject), -1))) for mode in alone]
    columns = (torch.stack([getattr(one, f.name) for one in each], dim=1) for f in fields(Scores))
    return FilteredLoss(Scores(*columns), alone.expand(len(subject), -1, -1), "train")


def loss_ratio(
    subject: Subject, modes: Choice = None, *, basis: Basis | None = None, by: Conditioning = "answer"
) -> Float[Tensor, " runs"]:
    """Validation loss over the restricted loss `trig`: how much worse the model is than its key modes alone."""
    return scores(subject).validation_loss / variant_loss(subject, "trig", modes, basis=basis, by=by).loss


# Filtered logits.


def cube_part(
    functions: Float[Tensor, "*runs answers classes"], basis: Basis, modes: Bool[Tensor, "*#runs modes"]
) -> Float[Tensor, "*runs answers classes"]:
    """Projection of A[s, c] on the cubes of chosen modes: Σ_m ⟨A, P_m⟩ P_m / dim m, as ‖P_m‖² = dim m.

    The projector on a mode, as a matrix, is its cube: (2/n) cos 2πk(s − c)/n on Z_n, and Σ_{ρ ∈ m} (d_ρ/|G|)
    χ_ρ(s·c⁻¹) on a group. Its sum over classes is 0, so that centring logits first would change nothing. A class
    outside the group gets 0, the mean of the others.
    """
    waves = waves_over(functions.shape[-2], basis, functions.device)[:, 1:]
    diagonal = ((waves.T @ functions.double()) * waves.T).sum(dim=-1)
    mode = torch.tensor(basis.modes.column_mode, device=functions.device)
    dimensions = torch.tensor(basis.modes.dimensions, device=functions.device)
    size = diagonal.new_zeros(*diagonal.shape[:-1], len(dimensions)).index_add(-1, mode, diagonal) / dimensions
    return (waves * (size * modes)[..., None, mode]) @ waves.T


def _logit_filter(
    subject: Subject, variant: Variant, basis: Basis, by: Conditioning
) -> Callable[[Tensor], Float[Tensor, "runs inputs classes"]]:
    """From chosen modes to filtered logits; the model is run once for any number of choices."""
    logits = checked(subject, "logits", subject.logits()).double()
    condition = torch.tensor(condition_of(subject.task, by), device=subject.device)
    means = means_of(logits, condition, subject.task.symbols).means
    part_of = mode_part if variant.level == "logits" else cube_part

    def filtered(chosen: Tensor) -> Tensor:
        part = part_of(means, basis, chosen)
        if variant.change == "remove":
            return logits - part[:, condition]
        return kept_means(means, part, basis, with_mean=variant.change == "keep")[:, condition]

    return filtered


def _through_neurons(
    subject: Subject, variant: Variant, modes: Tensor, basis: Basis, by: Conditioning
) -> Float[Tensor, "runs inputs classes"]:
    """Logits with the last block's hidden activations filtered at the read position."""
    site = last_hidden_site(subject.architecture)
    edits = {site: mode_filter(subject, site, modes, variant.change, basis=basis, by=by)}
    logits = subject.logits(edits if variant.skip else edits | _without_skip(subject)).double()
    if not variant.corrected:
        return logits
    return logits + (subject.logits().double() - logits).mean(dim=1, keepdim=True)


def _without_skip(subject: Subject) -> dict[str, InputEdit]:
    """Edits after which the last block gives what its MLP gives, and nothing else."""
    if subject.architecture.mlp != "on":
        raise InputError(
            f"losses without the skip path need a model with MLPs, got mlp = {shown(subject.architecture.mlp)}"
        )
    block = f"blocks.{subject.architecture.layers - 1}."
    held: list[Tensor] = []

    def hold(value: Tensor, rows: slice) -> Tensor:
        held[:] = [value]
        return value

    return {f"{block}hook_mlp_out": hold, f"{block}hook_resid_post": lambda value, rows: held[0]}
