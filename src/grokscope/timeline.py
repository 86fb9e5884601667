"""When things happened in a run, and how it ended."""

from collections.abc import Sequence
from enum import StrEnum
from math import isnan

from grokscope.specs import ReadingSpec

__all__ = ["Outcome", "first_step", "outcome"]

COLLAPSED = 0.5  # validation accuracy below which a grokked run counts as unstable (docs/paper-audit.md §1)
UNLEARNT = 0.9  # train accuracy below which a run that never grokked counts as unstable


class Outcome(StrEnum):
    """How a run ended; each value is the sentence a person reads."""

    GROKKED = "grokked"
    """Reached the grokking threshold and stayed."""
    UNSTABLE_AFTER = "grokked, then unstable †"
    """Reached it, and fell below half at a later look."""
    UNSTABLE = "unstable ‡"
    """Never reached it, and does not even hold its training set at the end."""
    NEVER = "never within the budget"
    """Never reached it: a censored time."""
    DIVERGED = "diverged"
    """Its loss stopped being a finite number."""


def first_step(steps: Sequence[int], values: Sequence[float], at_least: float) -> int | None:
    """The first step at which a value reaches a threshold; None if none does. NaN reaches nothing.

    >>> first_step([0, 100, 200], [0.1, 0.96, 0.4], 0.95)
    100
    """
    return next((step for step, value in zip(steps, values, strict=True) if value >= at_least), None)


def outcome(
    steps: Sequence[int],
    train_accuracy: Sequence[float],
    validation_accuracy: Sequence[float],
    failed_at: int | None,
    reading: ReadingSpec | None = None,
) -> Outcome:
    """How a finished run ended. Rules: `docs/paper-audit.md` §1."""
    # A run that overflows in its very last step has no later loss to show it, only measurements that are no numbers.
    if failed_at is not None or isnan(train_accuracy[-1]):
        return Outcome.DIVERGED
    grokked = first_step(steps, validation_accuracy, (reading or ReadingSpec()).grokked)
    if grokked is not None:
        later = [value for step, value in zip(steps, validation_accuracy, strict=True) if step > grokked]
        return Outcome.UNSTABLE_AFTER if min(later, default=1.0) < COLLAPSED else Outcome.GROKKED
    return Outcome.UNSTABLE if train_accuracy[-1] < UNLEARNT else Outcome.NEVER
