"""What a law is fitted to: forked runs, whether they grokked, and the cells they form.

>>> from grokscope.timeline import timeline_of
>>> log = {"step": [0, 500], "train_accuracy": [0.2, 1.0], "validation_accuracy": [0.0, 1.0]}
>>> run = forked_run(RunSpec(), timeline_of(log))
>>> run.steps_to_grok, run.cadence, run.watched
(500, 500, 500)
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite, nan

import numpy as np

from grokscope.errors import InputError, shown
from grokscope.shapes import Float
from grokscope.specs import RunSpec
from grokscope.stats import Estimate, share
from grokscope.timeline import Outcome, Timeline

__all__ = [
    "Cells",
    "DecayOutcomes",
    "Draw",
    "Ending",
    "ForkedRun",
    "cells_of",
    "forked_run",
    "in_order",
    "outcomes_by_decay",
]

Draw = tuple[str, Hashable]  # task, and seed or data order


class Ending(StrEnum):
    """Whether a fork grokked; each value is the sentence a person reads."""

    GROKKED = "grokked"
    """Seen at an evaluation: it happened in (steps_to_grok − cadence, steps_to_grok]."""
    CENSORED = "not grokked"
    """Stable to the last evaluation: it takes longer than `watched`."""
    FAILED = "unstable"
    """Unstable or diverged without grokking: a competing event, kept out of the fit and reported as a share."""
    BEFORE = "grokked before the fork"
    """It has no time to grok: kept out of the fit and counted."""


@dataclass(frozen=True)
class ForkedRun:
    """One run from its fork on."""

    weight_decay: float | int
    """λ after the fork."""
    steps_to_grok: float | int | None
    """Δt, steps from the fork to the first evaluation at which it had grokked; None if it had not."""
    outcome: Outcome
    """How it ended. Runs that grokked and became unstable later count as grokked."""
    cadence: float | int
    """Steps between that evaluation and the one before."""
    watched: float | int
    """Steps from the fork to the last evaluation."""
    draw: Hashable = 0
    """The seed or data order that forks of one parent share: the unit that an interval leaves out."""
    task: str = ""
    """What it learns; a cell of the law is one task at one η and λ."""
    learning_rate: float | int = 1e-3
    """η."""
    norm_at_fork: float | int = nan
    """‖W(t*)‖; NaN if not measured."""
    norm_at_grok: float | int = nan
    """‖W‖ at the evaluation at which it had grokked; NaN if not measured."""

    def __post_init__(self) -> None:
        for name in ("weight_decay", "learning_rate", "cadence"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise InputError(f"{name} must be positive, got {shown(getattr(self, name))}")
        grokked = self.outcome in (Outcome.GROKKED, Outcome.UNSTABLE_AFTER)
        if (grokked and self.steps_to_grok is None) or (
            self.steps_to_grok is not None and self.outcome in (Outcome.NEVER, Outcome.UNSTABLE)
        ):
            raise InputError(f"a run that ended '{self.outcome}' has steps_to_grok {shown(self.steps_to_grok)}")

    @property
    def ending(self) -> Ending:
        """Whether it grokked."""
        if self.steps_to_grok is not None:
            return Ending.GROKKED if self.steps_to_grok > 0 else Ending.BEFORE
        return Ending.CENSORED if self.outcome is Outcome.NEVER else Ending.FAILED


def forked_run(spec: RunSpec, events: Timeline) -> ForkedRun:
    """A run as the law sees it; one that is no fork counts from step 0. Its draw is the seed of its data order."""
    start = spec.fork.step if spec.fork else 0
    grokked, before = events.grokked, events.evaluated_before
    return ForkedRun(
        weight_decay=spec.training.known_weight_decay,
        steps_to_grok=None if grokked is None else grokked - start,
        outcome=events.outcome,
        cadence=1 if grokked is None or before is None else grokked - before,
        watched=events.last - start,
        draw=spec.seeds.data_order,
        task=spec.task,
        learning_rate=spec.training.learning_rate,
        norm_at_fork=events.norm_at_first,
        norm_at_grok=events.norm_at_grok,
    )


@dataclass(frozen=True)
class DecayOutcomes:
    """How the runs of one task and λ ended."""

    task: str
    """What they learn."""
    weight_decay: float
    """λ."""
    endings: dict[Ending, int]
    """How many ended in each way."""
    unstable_after: int
    """Of those that grokked, how many became unstable later."""
    failure: Estimate
    """Share that became unstable or diverged without grokking, of all but those that had grokked before the fork."""


def outcomes_by_decay(runs: Sequence[ForkedRun]) -> tuple[DecayOutcomes, ...]:
    """What the fit leaves out, for each task and rising λ, with Clopper–Pearson intervals.

    >>> runs = [ForkedRun(1.0, 3500, Outcome.GROKKED, 500, 15000), ForkedRun(10.0, None, Outcome.UNSTABLE, 500, 9000)]
    >>> [(one.weight_decay, one.failure.value) for one in outcomes_by_decay(runs)]
    [(1.0, 0.0), (10.0, 1.0)]
    """
    found = []
    for task, decay in sorted({(run.task, run.weight_decay) for run in runs}):
        members = [run for run in runs if (run.task, run.weight_decay) == (task, decay)]
        endings = {ending: sum(run.ending is ending for run in members) for ending in Ending}
        unstable_after = sum(run.outcome is Outcome.UNSTABLE_AFTER for run in members)
        failure = share(endings[Ending.FAILED], len(members) - endings[Ending.BEFORE])
        found.append(DecayOutcomes(task, decay, endings, unstable_after, failure))
    return tuple(found)


@dataclass(frozen=True)
class Cells:
    """Grokked runs summed by seed and cell, so that any weighting of seeds gives its cell means at once."""

    tasks: tuple[str, ...]
    """Task of each cell."""
    weight_decay: Float[np.ndarray, " cells"]
    """λ of each."""
    rate: Float[np.ndarray, " cells"]
    """ηλ of each: what AdamW takes off every weight in a step, as a share."""
    draws: tuple[Draw, ...]
    """Task and seed of each row below."""
    counts: Float[np.ndarray, "draws cells"]
    """Runs."""
    steps: Float[np.ndarray, "draws cells"]
    """Σ Δt."""
    log_norm: Float[np.ndarray, "draws cells"]
    """Σ log‖W(t*)‖."""


def cells_of(runs: Sequence[ForkedRun]) -> Cells:
    """Sums over the runs that grokked after the fork."""
    grokked = in_order(run for run in runs if run.ending is Ending.GROKKED)
    if not grokked:
        raise InputError(f"a law needs at least one run that grokked after its fork, got none of {len(runs)}")
    keys = sorted({(run.task, run.weight_decay, run.learning_rate) for run in grokked})
    draws = tuple(dict.fromkeys((run.task, run.draw) for run in grokked))
    sums = np.zeros((3, len(draws), len(keys)))
    for run in grokked:
        place = draws.index((run.task, run.draw)), keys.index((run.task, run.weight_decay, run.learning_rate))
        sums[:, *place] += np.array([1.0, run.steps_to_grok, np.log(run.norm_at_fork)])
    decay, learning_rate = np.array([key[1:] for key in keys], dtype=np.float64).T
    return Cells(tuple(key[0] for key in keys), decay, decay * learning_rate, draws, *sums)


def in_order(runs: Iterable[ForkedRun]) -> list[ForkedRun]:
    """Runs by task, seed and λ: so that no bit of a fit depends on the order in which they were stored."""
    return sorted(runs, key=lambda run: (run.task, not isinstance(run.draw, int), _place(run.draw), run.weight_decay))


def _place(draw: Hashable) -> int | str:
    return draw if isinstance(draw, int) else str(draw)
