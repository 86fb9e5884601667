"""Formation, liberation, grokking: the paper's two phases and what follows.

>>> liberation_step([0, 100, 200, 300], [9.0, 4.0, 2.0, 2.0], grokked=200)
200
"""

from collections.abc import Sequence
from enum import StrEnum
from statistics import median

from grokscope.timeline.crossings import first_step_below, measured_after

__all__ = ["Phase", "liberation_step", "phase_at", "rank_one_step"]


class Phase(StrEnum):
    """Where a run stands (§5.3, Table 5)."""

    FORMATION = "1 (formation)"
    """Until Phase 2 or grokking."""
    LIBERATION = "2 (liberation)"
    """From the first median rank 1 to grokking."""
    GROKKING = "grokking"
    """The evaluation at which it is first seen grokked."""
    AFTER = "post-grokking"
    """Every later evaluation."""


def rank_one_step(steps: Sequence[int], rank: Sequence[float]) -> int | None:
    """The first step with median rank 1; None if there is none.

    >>> rank_one_step([0, 100, 200], [6.0, 1.0, 2.0])
    100
    """
    return first_step_below(steps, rank, 1.0)


def liberation_step(steps: Sequence[int], rank: Sequence[float], grokked: int | None) -> int | None:
    """Start of Phase 2: the first median rank 1; if that never comes, the first at the rank's post-grok value.

    Rule: `docs/paper-audit.md` §1. That value is the median over all evaluations after grokking. Where the start is not
    before grokking, there is no Phase 2.
    """
    found = rank_one_step(steps, rank)
    later = measured_after(steps, rank, grokked)
    return first_step_below(steps, rank, median(later)) if found is None and later else found


def phase_at(step: int, liberated: int | None, grokked: int | None) -> Phase:
    """The phase of a step, from the start of Phase 2 (by the rank, or by FSD as a variant) and the grok step.

    >>> [phase_at(step, 2500, 4000).name for step in (2000, 2500, 4000, 5000)]
    ['FORMATION', 'LIBERATION', 'GROKKING', 'AFTER']
    """
    if grokked is not None and step >= grokked:
        return Phase.GROKKING if step == grokked else Phase.AFTER
    return Phase.FORMATION if liberated is None or step < liberated else Phase.LIBERATION
