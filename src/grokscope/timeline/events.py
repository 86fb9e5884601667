"""All events of one run, from its log.

>>> log = {"step": [0, 500, 1000], "train_accuracy": [0.2, 1.0, 1.0], "validation_accuracy": [0.0, 0.1, 1.0]}
>>> found = timeline_of(log | {"fsd": [0.1, 0.9, 0.9]})
>>> found.memorized, found.grokked, found.sync.lead.steps
(500, 1000, 500)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isnan, nan
from typing import Literal

import numpy as np

from grokscope.errors import InputError, shown
from grokscope.shapes import Float, Int
from grokscope.specs import ReadingSpec
from grokscope.timeline.crossings import first_step, first_step_below, level_step, measured_after
from grokscope.timeline.leads import Lead, LeadStatus, lead
from grokscope.timeline.outcomes import Outcome, outcome
from grokscope.timeline.phases import Phase, liberation_step, phase_at
from grokscope.timeline.stable import Stability, stability
from grokscope.timeline.success import judged_columns

__all__ = ["Crossing", "Flag", "Timeline", "timeline_of"]

NEEDED = ("step", "train_accuracy", "validation_accuracy")
READ = (*NEEDED, "fsd", "rank", "norm", "restricted_loss")

Column = Sequence[float | int] | Float[np.ndarray, " steps"] | Int[np.ndarray, " steps"]


class Flag(StrEnum):
    """Why a crossing may mean nothing; each value is the sentence a person reads."""

    AT_START = "at the first evaluation"
    """Nothing was learnt between the start, or the fork, and the crossing."""
    BEFORE_MEMORIZED = "before memorisation"
    """The training set was not yet learnt, or never was."""


@dataclass(frozen=True)
class Crossing:
    """When a measure reached its threshold, and what that is worth."""

    step: int | None
    """The first evaluation at which it had; None if it never did."""
    lead: Lead
    """How that stands to grokking."""
    flags: tuple[Flag, ...] = ()
    """Reasons for doubt."""


@dataclass(frozen=True)
class Timeline:
    """One run's events, each the step of the evaluation at which it was first seen; None if it was not reached."""

    outcome: Outcome
    """How it ended."""
    first: int
    """The first evaluation: 0, or where it was forked."""
    last: int
    """The last evaluation."""
    memorized: int | None
    """Train accuracy ≥ 0.99."""
    grokked: int | None
    """Validation accuracy ≥ 0.95."""
    evaluated_before: int | None
    """The last evaluation before that: it grokked in (evaluated_before, grokked]."""
    stable: Stability
    """Whether it stayed grokked for 2,000 steps, and from which step on it did."""
    sync: Crossing
    """FSD ≥ 0.80, or FSD_gen ≥ 0.50 (Tables 2 and 11)."""
    level: Crossing
    """FSD ≥ 0.95 of its mean after grokking: the abstract's "post-grokking level"."""
    restricted: Crossing
    """Restricted loss ≤ 0.5 nats (Table 3)."""
    liberated: int | None
    """Start of Phase 2 by the rank."""
    norm_at_first: float
    """‖W‖ at the first evaluation, which is the fork of a forked run; NaN if not measured."""
    norm_at_grok: float
    """‖W‖ when it had grokked; NaN if not measured or not grokked."""

    @property
    def phase_2(self) -> tuple[int, int] | None:
        """Where Phase 2 starts by the rank, and grokking, at which it ends; None where it does not start before."""
        if self.liberated is None or self.grokked is None or self.liberated >= self.grokked:
            return None
        return self.liberated, self.grokked

    def phase(self, step: int, by: Literal["rank", "fsd"] = "rank") -> Phase:
        """Where the run stands at a step; Phase 2 starts by the rank, or `by="fsd"` at the synchronisation."""
        return phase_at(step, self.liberated if by == "rank" else self.sync.step, self.grokked)


def timeline_of(
    log: Mapping[str, Column],
    reading: ReadingSpec | None = None,
    *,
    failed_at: int | None = None,
    sync_at: float | None = None,
    persistence: int = 0,
) -> Timeline:
    """The timeline of one run from its log's columns, whatever the order of rows.

    Needed are step, train_accuracy and validation_accuracy; fsd, rank, norm and restricted_loss are read where they
    are. `sync_at` is the FSD that counts as synchronised: `reading.fsd_sync` if not given, and for a group to be given
    as `reading.fsd_gen_sync`. Persistence is required of FSD and restricted loss; grokking is its first evaluation,
    as in the paper. Where answers are real, a squared error decides in place of an accuracy (see `success_level`).
    """
    reading = reading or ReadingSpec()
    steps, read = _sorted(judged_columns(log))
    train, validation, fsd, loss = (read[name] for name in (*NEEDED[1:], "fsd", "restricted_loss"))
    memorized, grokked = first_step(steps, train, reading.memorized), first_step(steps, validation, reading.grokked)
    synced = first_step(steps, fsd, reading.fsd_sync if sync_at is None else sync_at, persistence)
    level_known = grokked is None or bool(measured_after(steps, fsd, grokked))

    def crossing(step: int | None, values: list[float], measured: bool) -> Crossing:
        if not measured:
            return Crossing(None, Lead(LeadStatus.UNMEASURED))
        last = max((at for at, value in zip(steps, values, strict=True) if not isnan(value)), default=steps[0])
        return Crossing(step, lead(grokked, step, last), _flags(step, steps[0], memorized))

    return Timeline(
        outcome=outcome(steps, train, validation, failed_at, reading),
        first=steps[0],
        last=steps[-1],
        memorized=memorized,
        grokked=grokked,
        evaluated_before=None if grokked is None else max((step for step in steps if step < grokked), default=None),
        stable=stability(steps, validation, reading, failed_at),
        sync=crossing(synced, fsd, "fsd" in log),
        level=crossing(level_step(steps, fsd, grokked), fsd, "fsd" in log and level_known),
        restricted=crossing(
            first_step_below(steps, loss, reading.restricted_sync, persistence), loss, "restricted_loss" in log
        ),
        liberated=liberation_step(steps, read["rank"], grokked),
        norm_at_first=read["norm"][0],
        norm_at_grok=nan if grokked is None else read["norm"][steps.index(grokked)],
    )


def _flags(crossed: int | None, first: int, memorized: int | None) -> tuple[Flag, ...]:
    if crossed is None:
        return ()
    found = {Flag.AT_START: crossed == first, Flag.BEFORE_MEMORIZED: memorized is None or crossed < memorized}
    return tuple(flag for flag, holds in found.items() if holds)


def _sorted(log: Mapping[str, Column]) -> tuple[list[int], dict[str, list[float]]]:
    """Steps in rising order and every column in theirs; what was not measured is NaN."""
    missing = [name for name in NEEDED if name not in log]
    if missing:
        raise InputError(f"a timeline needs the column {missing[0]}, got {shown(sorted(log))}")
    steps = np.asarray(log["step"])
    if len(steps) == 0 or len(np.unique(steps)) < len(steps):
        raise InputError(f"a timeline needs distinct steps, at least one, got {shown(steps.tolist())}")
    columns = {name: np.asarray(log.get(name, np.full(len(steps), nan)), dtype=np.float64) for name in READ}
    uneven = [name for name, values in columns.items() if len(values) != len(steps)]
    if uneven:
        raise InputError(f"{uneven[0]} has {len(columns[uneven[0]])} rows for {len(steps)} steps")
    order = np.argsort(steps)
    return [int(step) for step in steps[order]], {name: values[order].tolist() for name, values in columns.items()}
