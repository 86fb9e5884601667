"""Restricted and excluded losses: what is left when only some modes are kept, or when they are taken away.

A *restricted* loss keeps the key modes, an *excluded* loss removes them. `filtered_loss` does either at any site;
`VARIANTS` lists the published definitions, and `variant_loss` computes them.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial

import torch
from torch import Tensor

from grokscope.activations import (
    Conditioning,
    InputEdit,
    Need,
    RunStack,
    Subject,
    condition_of,
    conditioning_basis,
    means_of,
)
from grokscope.errors import InputError, did_you_mean, require, shown
from grokscope.measures.filters import Change, FilterKind, mode_filter
from grokscope.measures.mode_choice import RESTRICTED_MODES, chosen_modes, key_modes, top_modes
from grokscope.measures.projections import cube_part, kept_means, mode_part
from grokscope.measures.question import FORWARD, MOSTLY_CONSTANT, NOT_NUMBERS, Columns, Measure, Question
from grokscope.measures.scores import Scores, scores, scores_of
from grokscope.measures.spectrum import mostly_varies
from grokscope.measures.variants import VARIANTS, Pairs, Variant
from grokscope.shapes import Bool, Float
from grokscope.tasks import Basis

__all__ = [
    "ENTRIES",
    "FilteredLoss",
    "excluded_loss_by_mode",
    "filtered_loss",
    "variant_loss",
]

Choice = Bool[Tensor, "#runs modes"] | int | None
"""Modes: a row for each run or one for all; a number of the strongest; or None, what the variant prescribes."""


@dataclass(frozen=True)
class FilteredLoss:
    """A loss after modes were kept or removed."""

    scores: Scores
    modes: Bool[Tensor, "*runs modes"]
    """The modes that were kept or removed."""
    scored_on: Pairs
    """The pairs on which the measure is defined."""

    @property
    def loss(self) -> Float[Tensor, "*runs"]:
        """The measure: the loss on the pairs on which it is defined."""
        return getattr(self.scores, "loss" if self.scored_on == "all" else f"{self.scored_on}_loss")


# Losses.


def filtered_loss(
    subject: RunStack,
    site: str,
    modes: Bool[Tensor, "#runs modes"] | int = RESTRICTED_MODES,
    change: Change = "keep",
    *,
    kind: FilterKind = "answer_mean",
    basis: Basis | None = None,
    by: Conditioning = "",
    every_position: bool = False,
    scored_on: Pairs = "all",
) -> FilteredLoss:
    """The loss with modes kept or removed at any site, as `mode_filter` does it; a number means its `top_modes`.

    With 1 and "remove" at `blocks.0.mlp.hook_post`, what is left without block 0's dominant mode.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import Architecture, RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> specs = [RunSpec("add_mod5", architecture=small).with_seed(seed) for seed in (0, 1)]
    >>> subject = subject_of(specs, initial_state(Cohort(specs)).weights)
    >>> kept = filtered_loss(subject, "blocks.0.mlp.hook_post", modes=1)
    >>> kept.loss.shape, kept.modes.sum(dim=-1)
    (torch.Size([2]), tensor([1, 1]))
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
    by: Conditioning = "",
) -> FilteredLoss:
    """A published restricted or excluded loss, by its name in `VARIANTS`.

    By default the keys are those of this checkpoint (causal); given another checkpoint's `key_modes` or `top_modes`,
    the loss is retrospective. Group tasks are read in their irreps by the same definitions. To all of them applies
    what `mode_filter` says: every answer has the same weight, and pairs whose answer is outside the basis's group (0,
    for multiplication) keep their conditioned mean where modes are kept, and stay as they are where modes are removed.

    To keep modes is to use every pair's true answer: what was memorised of the training pairs with that answer reaches
    all others. With few modes little of it passes, with all of them a memorised task has a low restricted loss.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import Architecture, RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> specs = [RunSpec("add_mod5", architecture=small).with_seed(seed) for seed in (0, 1)]
    >>> subject = subject_of(specs, initial_state(Cohort(specs)).weights)
    >>> all_modes = torch.ones(2, 2, dtype=torch.bool)
    >>> bool((variant_loss(subject, "trig", all_modes).loss > 0).all())
    True
    """
    variant = VARIANTS.get(name)
    if variant is None:
        raise InputError(f"there is no restricted or excluded loss {shown(name)}{did_you_mean(name, VARIANTS)}")
    basis = basis or conditioning_basis(subject.task, by)
    modes = variant.count if modes is None else modes
    if modes is None:
        chosen = key_modes(subject, basis=basis)
    else:
        chosen = chosen_modes(subject, subject.hidden_sites[1], modes, basis=basis, by=by)
    if variant.level != "neurons":
        logits = _logit_filter(subject, variant, basis, by)(chosen)
    elif isinstance(subject, RunStack):
        logits = _through_neurons(subject, variant, chosen, basis, by)
    else:
        raise InputError(f"{name} edits activations, which only grokscope's own runs allow, got {subject.names[0]}")
    return FilteredLoss(scores_of(subject, logits), chosen, variant.scored_on)


def excluded_loss_by_mode(
    subject: Subject, name: str = "excluded", *, basis: Basis | None = None, by: Conditioning = ""
) -> FilteredLoss:
    """The excluded loss of every mode alone, as [runs, modes]: `excluded` (2D) or `cube_excluded` (3D).

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import Architecture, RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> specs = [RunSpec("add_mod5", architecture=small).with_seed(seed) for seed in (0, 1)]
    >>> subject = subject_of(specs, initial_state(Cohort(specs)).weights)
    >>> excluded_loss_by_mode(subject).loss.shape
    torch.Size([2, 2])
    """
    require(
        name in ("excluded", "cube_excluded"), "a loss for every mode is that of 'excluded' or of 'cube_excluded'", name
    )
    basis = basis or conditioning_basis(subject.task, by)
    filtered = _logit_filter(subject, VARIANTS[name], basis, by)
    alone = torch.eye(len(basis.modes), dtype=torch.bool, device=subject.device)
    each = [scores_of(subject, filtered(mode.expand(len(subject), -1))) for mode in alone]
    columns = (torch.stack([getattr(one, f.name) for one in each], dim=1) for f in fields(Scores))
    return FilteredLoss(Scores(*columns), alone.expand(len(subject), -1, -1), "train")


# Filtered logits.


def _logit_filter(
    subject: Subject, variant: Variant, basis: Basis, by: Conditioning
) -> Callable[[Tensor], Float[Tensor, "runs inputs classes"]]:
    """From chosen modes to filtered logits; the model is run once for any number of choices."""
    logits = subject.logits().double()
    subject.require_numbers("activations at logits", logits.isfinite())
    read_by = condition_of(subject.task, by)
    condition = torch.tensor(read_by.values, device=subject.device)
    means = means_of(logits, condition, read_by.size).means
    part_of = mode_part if variant.level == "logits" else cube_part

    def filtered(chosen: Tensor) -> Tensor:
        part = part_of(means, basis, chosen)
        if variant.change == "remove":
            return logits - part[:, condition]
        return kept_means(means, part, basis, with_mean=variant.change == "keep")[:, condition]

    return filtered


def _through_neurons(
    subject: RunStack, variant: Variant, modes: Tensor, basis: Basis, by: Conditioning
) -> Float[Tensor, "runs inputs classes"]:
    """Logits with the last block's hidden activations filtered at the read position."""
    site = subject.hidden_sites[1]
    edits = {site: mode_filter(subject, site, modes, variant.change, basis=basis, by=by)}
    logits = subject.logits(edits if variant.skip else edits | _without_skip(subject)).double()
    if not variant.corrected:
        return logits
    return logits + (subject.logits().double() - logits).mean(dim=1, keepdim=True)


def _without_skip(subject: RunStack) -> dict[str, InputEdit]:
    """Edits after which the last block gives what its MLP gives, and nothing else."""
    require(
        subject.architecture.kind == "transformer",
        f"losses without the skip path need a transformer, got kind = {shown(subject.architecture.kind)}",
    )
    require(
        subject.architecture.mlp == "on",
        f"losses without the skip path need a model with MLPs, got mlp = {shown(subject.architecture.mlp)}",
    )
    block = f"blocks.{subject.architecture.layers - 1}."
    kept: list[Tensor] = []

    def keep(value: Tensor, rows: slice) -> Tensor:
        kept[:] = [value]
        return value

    return {f"{block}hook_mlp_out": keep, f"{block}hook_resid_post": lambda value, rows: kept[0]}


# The catalogue.


FILTERED = {
    "logits": "the logits' modes over the answers",
    "cubes": "the logits' parts along χ(x·y·z⁻¹)",
    "neurons": "the last neurons' modes over the answers",
}


def _columns(name: str, question: Question) -> Columns:
    """The columns of a restricted or excluded loss."""
    if name == "paper_restricted":
        found = _paper_loss(question)
    else:
        keys = _keys(question, VARIANTS[name].count)
        found = variant_loss(question.subject, name, keys, basis=question.basis, by=question.by)
    parts = {"": found.loss, "_all": found.scores.loss, "_modes": found.modes.sum(dim=-1).double()}
    if question.has("split"):
        parts |= {"_train": found.scores.train_loss, "_validation": found.scores.validation_loss}
    return {f"{name}{part}": value for part, value in parts.items()}


def _paper_loss(question: Question) -> FilteredLoss:
    """The one loss with choices left open: how many modes, which filter, which pairs (`ReadingSpec`)."""
    reading, subject = question.reading, question.stack
    keys = _keys(question, reading.restricted_modes)
    return filtered_loss(
        subject,
        subject.hidden_sites[1],
        reading.restricted_modes if keys is None else keys,
        kind=reading.restricted_filter,
        basis=question.basis,
        by=question.by,
        scored_on=reading.restricted_scored_on,
    )


def _keys(question: Question, count: int | None) -> Bool[Tensor, "#runs modes"] | None:
    """Key modes that are given, the reference's, or the subject's own; None leaves `count` top modes to the loss."""
    if question.keys is not None:
        return question.keys
    if count is None:
        source = question.reference or question.subject
        return question.once("key modes", lambda: key_modes(source, basis=question.basis))
    if question.reference is None:
        return None
    return top_modes(
        question.reference, question.reference.hidden_sites[1], count, basis=question.basis, by=question.by
    )


def _entry(name: str, variant: Variant) -> Measure:
    who, _, how = variant.definition.partition(": ")
    is_excluded, has_choices = variant.change == "remove", name == "paper_restricted"
    scored_on = variant.scored_on + (", unless `restricted_scored_on` names others" if has_choices else "")
    reads: set[Need] = {"edits"} if variant.level == "neurons" else {"activations", "logits"}
    return Measure(
        title=f"{'Excluded' if is_excluded else 'Restricted'} loss of {who}, by {FILTERED[variant.level]}",
        formula=how,
        source=who,
        cost=FORWARD + " with the filter, and one or two to know the modes",
        null="ln(classes) is chance" + ("; a model that does not use the modes keeps its loss" if is_excluded else ""),
        undefined=NOT_NUMBERS,
        columns={
            name: f"the loss in nats on the pairs it is defined on ({scored_on})",
            f"{name}_{{all,train,validation}}": "the same on these pairs",
            f"{name}_modes": "how many modes were kept or removed",
        },
        compute=partial(_columns, name),
        needs=frozenset({"basis", "answers", *reads}) | (frozenset() if has_choices else {"pairs"}),
    )


def _removal_columns(question: Question) -> Columns:
    found = filtered_loss(question.stack, question.site, 1, "remove", basis=question.basis, by=question.by)
    names = ("accuracy", "train_accuracy", "validation_accuracy", "loss")
    has_mode = mostly_varies(question.spectrum().power)
    return {f"without_mode_{name}": getattr(found.scores, name).where(has_mode, torch.nan) for name in names}


ENTRIES = {name: _entry(name, variant) for name, variant in VARIANTS.items()} | {
    "removal": Measure(
        title="What is left without the dominant mode of block 0",
        formula="accuracy with mode k* of A[s, j] subtracted from every neuron that FSD reads",
        source="docs/paper-audit.md §4: the causal test of a causal precursor",
        cost=FORWARD + " with the edit, and block 0 once",
        null="the accuracy without the edit (memorization)",
        undefined=MOSTLY_CONSTANT,
        columns={"without_mode_{accuracy,train_accuracy,validation_accuracy,loss}": "scores after the removal"},
        compute=_removal_columns,
        headline="without_mode_validation_accuracy",
        needs=frozenset({"basis", "answers", "edits"}),
    ),
}
