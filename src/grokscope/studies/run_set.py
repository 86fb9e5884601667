"""Runs of a study that are trained and measured alike."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from grokscope.specs import RunSpec

__all__ = ["Precision", "RunSet", "Runs"]

Runs = dict[str, RunSpec]
Precision = Literal["float32", "tf32", "bf16", "float64"]


@dataclass(frozen=True)
class RunSet:
    """Experiments whose runs are trained by plans of one kind. A run is of one set, with the parents of its forks."""

    name: str
    """What to call it in a list of parts."""
    experiments: Mapping[str, Callable[[int | None, Precision], Runs]]
    """Named sets of runs, as a study has them."""
    measures: tuple[str, ...] = ()
    """What is measured at every checkpoint."""
    milestones: tuple[str, ...] = ()
    """What is measured at the first checkpoint after grokking and at the last."""
    measured: tuple[str, ...] = ()
    """The experiments whose runs are measured so; the others need their logs alone."""
    plan_options: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the plan."""
    speed: float = 1.0
    """Run-steps a second over those of the paper's model, by which parts are cut: more of smaller models."""
    checkpoint_seconds: float = 0.04
    """Seconds on an H200 of all measures of one run at one checkpoint, by which parts are cut: a guess."""
    milestone_seconds: float = 1.0
    """The same of the measures at milestones, of one run."""
