"""All that changes while a cohort trains."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from grokscope.shapes import Bool, Float, Int
from grokscope.training.cohort import Cohort
from grokscope.training.norm_holds import anchors_of

__all__ = ["State", "initial_state"]


@dataclass
class State:
    """The stack: one row of every tensor is one run. `advance` changes it in place and returns it."""

    weights: Float[Tensor, "runs parameters"]
    """Flat parameters."""
    first: Float[Tensor, "runs parameters"]
    """Adam's first moment; of matrices that Muon moves, its momentum."""
    second: Float[Tensor, "runs parameters"]
    """Adam's second moment; 0 of matrices that Muon moves."""
    step: Int[Tensor, " runs"]
    """Optimiser steps each run has taken, those of its parent included."""
    age: Int[Tensor, " runs"]
    """Steps since the moments began: the step, unless a fork reset them."""
    weight_decay: Float[Tensor, " runs"]
    """The λ in force; rules may change it between calls of `advance`."""
    held_norm: Float[Tensor, " runs"]
    """The norm to which a run's weights are rescaled after each step; 0 where it is free."""
    alive: Bool[Tensor, " runs"]
    """False where a run has failed or the slot is empty: it is computed and never updated."""
    slow: Float[Tensor, "runs averaged"]
    """Grokfast's moving average of gradients, as wide as the weights; no columns in cohorts without it."""
    recent: Float[Tensor, "runs remembered"]
    """Each run's last gradients, side by side in a ring of places; no columns in cohorts that average no window."""
    anchors: Float[Tensor, "runs parts"]
    """n₀ of each part whose norm is held; no columns in cohorts that hold none."""

    def row(self, slot: int) -> dict[str, Tensor]:
        """One run's tensors, for a checkpoint or a fork."""
        return {f.name: getattr(self, f.name)[slot].clone() for f in fields(self)}

    def put(self, slot: int, row: dict[str, Tensor]) -> None:
        """Replace one run's tensors."""
        for name, value in row.items():
            getattr(self, name)[slot] = value.to(getattr(self, name))


def initial_state(cohort: Cohort) -> State:
    """Every run at step 0.

    >>> from grokscope.specs import RunSpec
    >>> state = initial_state(Cohort([RunSpec("add_mod5").with_seed(0), RunSpec("add_mod5").with_seed(1)]))
    >>> state.step.tolist(), state.weight_decay.tolist()
    ([0, 0], [1.0, 1.0])
    """
    weights = cohort.initial()
    zeros = torch.zeros(len(cohort), dtype=torch.int64, device=cohort.device)
    return State(
        weights=weights,
        first=torch.zeros_like(weights),
        second=torch.zeros_like(weights),
        step=zeros,
        age=zeros.clone(),
        weight_decay=cohort.column("weight_decay"),
        held_norm=torch.zeros(len(cohort), dtype=cohort.exact, device=cohort.device),
        alive=torch.tensor([not empty for empty in cohort.is_empty], device=cohort.device),
        slow=torch.zeros_like(weights if cohort.key.gradient == "grokfast" else weights[:, :0]),
        recent=weights.new_zeros(len(cohort), cohort.key.window * weights.shape[1]),
        anchors=_first_anchors(cohort, weights),
    )


def _first_anchors(cohort: Cohort, weights: Tensor) -> Tensor:
    """n₀ at step 0, run by run, so that it is a function of the run alone."""
    if not cohort.key.held_parts:
        return torch.zeros(len(cohort), 0, dtype=cohort.exact, device=cohort.device)
    found = [anchors_of(row, spec) for row, spec in zip(weights, cohort.specs, strict=True)]
    return torch.stack(found).to(cohort.exact)
