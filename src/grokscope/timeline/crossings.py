"""First steps: when a measured value reaches a threshold.

>>> level_step([0, 100, 200, 300], [0.1, 0.5, 0.8, 0.8], grokked=100)
200
"""

from collections.abc import Sequence
from math import isnan

from grokscope.errors import InputError

__all__ = ["first_step", "first_step_below", "level_step", "measured_after"]

LEVEL_SHARE = 0.95  # of its mean after grokking: where FSD has "reached its post-grokking level"


def first_step(
    steps: Sequence[int], values: Sequence[float | int], at_least: float, persistence: int = 0
) -> int | None:
    """The first step at which a value reaches a threshold; None if none does. NaN reaches nothing.

    With persistence n the next n measurements must reach it too, and must exist.

    >>> first_step([0, 100, 200], [0.1, 0.96, 0.4], 0.95)
    100
    >>> first_step([0, 100, 200, 300], [0.96, 0.4, 0.96, 1.0], 0.95, persistence=1)
    200
    """
    if persistence < 0:
        raise InputError(f"persistence must be at least 0, got {persistence}")
    reached = [(step, value >= at_least) for step, value in zip(steps, values, strict=True)]
    starts = range(len(reached) - persistence)
    return next((reached[i][0] for i in starts if all(ok for _, ok in reached[i : i + persistence + 1])), None)


def first_step_below(steps: Sequence[int], values: Sequence[float], at_most: float, persistence: int = 0) -> int | None:
    """The first step at which a value falls to a threshold, as `first_step`.

    >>> first_step_below([0, 100, 200], [4.6, 0.5, 0.1], 0.5)
    100
    """
    return first_step(steps, [-value for value in values], -at_most, persistence)


def level_step(steps: Sequence[int], values: Sequence[float], grokked: int | None) -> int | None:
    """The first step at which a value has 0.95 of its mean over all evaluations after grokking.

    Rule: `docs/paper-audit.md` §1. None without grokking, and where nothing was measured after it. The level is known
    only afterwards: it cannot warn. A run that falls apart after grokking lowers its own level.
    """
    later = measured_after(steps, values, grokked)
    return first_step(steps, values, LEVEL_SHARE * sum(later) / len(later)) if later else None


def measured_after(steps: Sequence[int], values: Sequence[float], grokked: int | None) -> list[float]:
    """What was measured after grokking, NaN left out; nothing without grokking."""
    pairs = zip(steps, values, strict=True)
    return [value for step, value in pairs if grokked is not None and step > grokked and not isnan(value)]
