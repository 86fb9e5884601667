"""Dips: how often, and for how long, a run that had grokked lost it again."""

from collections.abc import Sequence
from dataclasses import dataclass

from grokscope.timeline.outcomes import COLLAPSED

__all__ = ["Dips", "dips_after"]


@dataclass(frozen=True)
class Dips:
    """Times at which a run's validation accuracy was below one half, or another level, after it had grokked."""

    count: int
    """Separate dips: evaluations below in a row are one."""
    longest: int
    """Steps of the longest, from its first evaluation to that at which it had recovered, or to the last one."""


def dips_after(
    grokked: int | None, steps: Sequence[int], validation_accuracy: Sequence[float | int], below: float = COLLAPSED
) -> Dips:
    """The dips after grokking; none where it was not reached. NaN is below nothing, as in `outcome`.

    >>> dips_after(100, [0, 100, 200, 300, 400, 500], [0.1, 1.0, 0.3, 0.2, 1.0, 0.4])
    Dips(count=2, longest=200)
    """
    count, longest, start = 0, 0, None
    for step, value in zip(steps, validation_accuracy, strict=True):
        is_below = grokked is not None and step > grokked and value < below
        if is_below and start is None:
            count, start = count + 1, step
        if start is not None:
            longest = max(longest, step - start)
            start = start if is_below else None
    return Dips(count, longest)
