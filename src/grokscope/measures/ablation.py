"""What accuracy is lost when a component gives zeros, its mean, or another input's value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from grokscope.activations import InputEdit, Subject
from grokscope.errors import InputError
from grokscope.measures.filters import neuron_edit, read_neurons
from grokscope.measures.restricted import Scores, scores
from grokscope.model import site_names
from grokscope.randomness import permutation
from grokscope.shapes import Float, Int
from grokscope.specs import Architecture

__all__ = ["Ablation", "Component", "Method", "ablation", "ablation_edit", "components_of", "other_inputs"]

Method = Literal["zero", "mean", "resample"]
"""`zero`: zeros; `mean`: the mean over all inputs; `resample`: the value that another input has."""
WITH_HEADS = ("hook_q", "hook_k", "hook_v", "hook_z")  # sites whose last axes are heads and head width


@dataclass(frozen=True)
class Component:
    """What is ablated: a site, or one head of it."""

    site: str
    """Its name in the forward pass."""
    head: int | None = None
    """One attention head of a site that has heads; None is all of the site."""

    @property
    def name(self) -> str:
        """What to call it."""
        return self.site if self.head is None else f"{self.site}[{self.head}]"


@dataclass(frozen=True)
class Ablation:
    """One component's ablation: a row of Table 7 for each run."""

    component: Component
    """What was ablated."""
    method: Method
    """What it gave instead."""
    scores: Scores
    """Accuracies and losses without it."""
    accuracy_drop: Float[Tensor, " runs"]
    """Δ_c = acc_orig − acc_c over all pairs."""
    train_accuracy_drop: Float[Tensor, " runs"]
    """The same over the training pairs."""
    validation_accuracy_drop: Float[Tensor, " runs"]
    """The same over all other pairs."""


def components_of(architecture: Architecture) -> tuple[Component, ...]:
    """Every block's attention and MLP, then every head.

    A branch is ablated where it joins the stream, with its output bias, as a hook on the module would do it. A head is
    ablated before the output map, whose bias stays: it belongs to no head.

    >>> [component.name for component in components_of(Architecture(layers=1, heads=2))]
    ['blocks.0.hook_attn_out', 'blocks.0.hook_mlp_out', 'blocks.0.attn.hook_z[0]', 'blocks.0.attn.hook_z[1]']
    """
    sites = site_names(architecture)
    branches = [Component(site) for site in sites if site.endswith(("hook_attn_out", "hook_mlp_out"))]
    with_heads = [site for site in sites if site.endswith("hook_z")]
    return (*branches, *(Component(site, head) for site in with_heads for head in range(architecture.heads)))


def ablation(
    subject: Subject,
    components: Sequence[Component] | None = None,
    method: Method = "zero",
    *,
    every_position: bool = True,
    seed: int = 0,
) -> tuple[Ablation, ...]:
    """Accuracy without each component alone, all of `components_of` by default. Paper: §4, Table 7.

    At every position by default: the paper replaces the component's whole output. At the last position only, what
    other positions took from the component still reaches the read position through attention.
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
    subject: Subject, component: Component, method: Method = "zero", *, every_position: bool = True, seed: int = 0
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
        table = table[:, other_inputs(len(subject.task.inputs), seed).to(subject.device)]

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
    if head is None or not component.site.endswith(WITH_HEADS):
        raise InputError(f"only {', '.join(WITH_HEADS)} have heads, got {component.name}")
    if not 0 <= head < heads:
        raise InputError(f"the heads are 0 to {heads - 1}, got {component.name}")

    def of_head(value: Tensor, rows: slice) -> Tensor:
        is_head = torch.arange(heads, device=value.device)[:, None] == head
        return torch.where(is_head, edit(value, rows), value)

    return of_head
