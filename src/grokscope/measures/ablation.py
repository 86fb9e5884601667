"""What accuracy is lost when a component gives zeros, its mean, or another input's value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from grokscope.activations import InputEdit, RunStack
from grokscope.errors import InputError, require
from grokscope.measures.filters import neuron_edit, read_neurons
from grokscope.measures.question import FORWARD, NOT_NUMBERS, Columns, Measure, Question
from grokscope.measures.scores import Scores, scores
from grokscope.model import Component, components_of
from grokscope.model.sites import SITES_WITH_HEADS
from grokscope.randomness import permutation
from grokscope.shapes import Float, Int

__all__ = ["ENTRIES", "Ablation", "Method", "ablation", "ablation_edit", "other_inputs"]

Method = Literal["zero", "mean", "resample"]
"""`zero`: zeros; `mean`: the mean over all inputs; `resample`: the value that another input has."""


@dataclass(frozen=True)
class Ablation:
    """One component's ablation: a row of Table 7 for each run."""

    component: Component
    method: Method
    scores: Scores
    """Without the component."""
    accuracy_drop: Float[Tensor, " runs"]
    """Δ_c = acc_orig − acc_c over all pairs."""
    train_accuracy_drop: Float[Tensor, " runs"]
    """The same over the training pairs."""
    validation_accuracy_drop: Float[Tensor, " runs"]
    """The same over all other pairs."""


def ablation(
    subject: RunStack,
    components: Sequence[Component] | None = None,
    method: Method = "zero",
    *,
    every_position: bool = True,
    seed: int = 0,
) -> tuple[Ablation, ...]:
    """Accuracy without each component alone, all of `components_of` by default. Paper: §4, Table 7.

    At every position by default: the paper replaces the component's whole output. At the last position only, what
    other positions took from the component still reaches the read position through attention.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import Architecture, RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> specs = [RunSpec("add_mod5", architecture=small).with_seed(seed) for seed in (0, 1)]
    >>> subject = subject_of(specs, initial_state(Cohort(specs)).weights)
    >>> [(one.component, one.accuracy_drop.shape) for one in ablation(subject)][:1]
    [(Component(site='blocks.0.hook_attn_out', head=None), torch.Size([2]))]
    """
    original, rows = scores(subject), []
    for component in components_of(subject.architecture) if components is None else components:
        edit = ablation_edit(subject, component, method, every_position=every_position, seed=seed)
        found = scores(subject, {component.site: edit})
        drops = (
            original.accuracy - found.accuracy,
            original.train_accuracy - found.train_accuracy,
            original.validation_accuracy - found.validation_accuracy,
        )
        rows.append(Ablation(component, method, found, *drops))
    return tuple(rows)


def ablation_edit(
    subject: RunStack, component: Component, method: Method = "zero", *, every_position: bool = True, seed: int = 0
) -> InputEdit:
    """The edit that ablates a component; means and other inputs' values are those of the unedited model."""
    site = component.site
    if method == "zero":
        table = torch.zeros(1, 1, 1, dtype=torch.float64, device=subject.device)
    else:
        table = read_neurons(subject, site, every_position=every_position).double()
    if method == "mean":
        table = table.mean(dim=1, keepdim=True)
    if method == "resample":
        table = table[:, other_inputs(subject.task.rows, seed).to(subject.device)]

    def ablated(value: Tensor, rows: slice) -> Tensor:
        return (table[:, rows] if method == "resample" else table).expand_as(value)

    edit = neuron_edit(subject, site, ablated, every_position=every_position)
    return edit if component.head is None else _of_head(edit, component, subject.architecture.heads)


def other_inputs(count: int, seed: int) -> Int[Tensor, " inputs"]:
    """For each input another one: all inputs in one random cycle, so that none stands for itself and none is lost.

    >>> other_inputs(4, 0)
    tensor([2, 3, 1, 0])
    """
    order = permutation(torch.tensor(seed), "null", torch.tensor(0), count)
    return torch.empty_like(order).index_copy(0, order, order.roll(-1))


def _of_head(edit: InputEdit, component: Component, heads: int) -> InputEdit:
    """The edit, for one head only."""
    head = component.head
    if head is None or not component.site.endswith(SITES_WITH_HEADS):
        raise InputError(f"only {', '.join(SITES_WITH_HEADS)} have heads, got {component.name}")
    require(0 <= head < heads, f"the heads are 0 to {heads - 1}, got {component.name}")

    def of_head(value: Tensor, rows: slice) -> Tensor:
        is_head = torch.arange(heads, device=value.device)[:, None] == head
        return torch.where(is_head, edit(value, rows), value)

    return of_head


def _columns(question: Question) -> Columns:
    """Zeros for every component, mean and resampling for whole branches."""
    found: dict[str, Tensor] = {}
    components = components_of(question.stack.architecture)
    require(components, "a linear model has no hidden layer to do without")
    for method in get_args(Method):
        chosen = [component for component in components if component.head is None or method == "zero"]
        for row in ablation(question.stack, chosen, method, seed=question.seed):
            name = f"{row.component.short_name}_{method}"
            found[f"drop_{name}"] = row.accuracy_drop
            found[f"validation_drop_{name}"] = row.validation_accuracy_drop
    return found


ENTRIES = {
    "ablation": Measure(
        title="Accuracy lost without each block's attention and MLP, and without each head",
        formula="Δ_c = accuracy − accuracy with component c's output replaced by zeros, its mean, or another input's",
        source="the paper, §4 and Table 7",
        cost=FORWARD + " for each component and kind",
        null="0 for a component that is not used",
        undefined=NOT_NUMBERS,
        columns={
            "drop_{attn0,mlp0,…}_{zero,mean,resample}": "accuracy lost on all pairs without a branch",
            "drop_head{0.0,…}_zero": "without one head",
            "validation_drop_…": "the same on the validation pairs",
        },
        compute=_columns,
        headline="drop_mlp0_mean",
        needs=frozenset({"edits"}),
    ),
}
