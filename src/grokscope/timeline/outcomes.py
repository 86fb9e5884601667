"""How a run ended.

>>> outcome([0, 500], [0.2, 1.0], [0.0, 0.1], failed_at=None)
<Outcome.NEVER: 'not grokked'>
"""

from collections.abc import Sequence
from enum import StrEnum
from math import isnan

from grokscope.specs import ReadingSpec
from grokscope.timeline.crossings import first_step

__all__ = ["Outcome", "outcome"]

COLLAPSED = 0.5  # validation accuracy below which a grokked run counts as unstable (docs/paper-audit.md §1)
UNLEARNT = 0.9  # train accuracy below which a run that never grokked counts as unstable


class Outcome(StrEnum):
    """How a run ended; each value is the sentence a person reads."""

    GROKKED = "grokked"
    """Reached the grokking threshold and stayed."""
    UNSTABLE_AFTER = "grokked, then unstable †"
    """Reached it, and fell below half at a later evaluation."""
    UNSTABLE = "unstable ‡"
    """Never reached it, and has not learnt its training set at the end."""
    NEVER = "not grokked"
    """Never reached it: a censored time."""
    DIVERGED = "diverged"
    """Its loss stopped being a finite number."""


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
        collapsed = any(value < COLLAPSED for value in later)  # NaN is below nothing
        return Outcome.UNSTABLE_AFTER if collapsed else Outcome.GROKKED
    return Outcome.UNSTABLE if train_accuracy[-1] < UNLEARNT else Outcome.NEVER
