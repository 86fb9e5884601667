"""Stable: grokked, and still so at every evaluation of the next 2,000 steps. The one definition for every study.

A run that dips within these steps is not stable. Where it later stays grokked for 2,000 steps, `Stability.step` is the
step at which that began: tables call it `stable_from`, and *stable* what `runs.outcome.stable_columns` gives.

>>> steps = range(0, 5500, 500)
>>> stability([*steps], [0.0] * 4 + [1.0, 0.3] + [1.0] * 5)
Stability(status=<StabilityStatus.NOT_STABLE: 'not stable'>, step=3000, dips=1, longest_dip=500, cadence=500)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import inf, isnan
from typing import Any

from grokscope.specs import ReadingSpec
from grokscope.timeline.crossings import first_step
from grokscope.timeline.dips import dips_after

__all__ = ["Stability", "StabilityStatus", "stability"]

Evaluations = list[tuple[int, float | int]]


class StabilityStatus(StrEnum):
    """Whether a run stayed grokked after it had first grokked; each value is the sentence a person reads."""

    STABLE = "stable"
    """At every evaluation of the next 2,000 steps."""
    NOT_STABLE = "not stable"
    """It was below the threshold again at one of them, or its loss stopped being a finite number."""
    CENSORED = "not seen for long enough"
    """It ended within these steps, or was not evaluated in them, and was never below the threshold."""
    NO_GROKKING = "not grokked"
    """There is nothing to stay."""


@dataclass(frozen=True)
class Stability:
    """Whether a run stayed grokked, and from which step on it did."""

    status: StabilityStatus
    """Of its first grokking."""
    step: int | None = None
    """The event *stable*: the first evaluation at which a run has grokked and stays so for 2,000 steps. That of
    grokking if the status is stable, later if it recovered from dips; None if no evaluation is seen to be one."""
    dips: int = 0
    """Times below the threshold within 2,000 steps after grokking; evaluations below it in a row are one."""
    longest_dip: int = 0
    """Steps of the longest, from its first evaluation to that at which it had recovered, as far as these steps go."""
    cadence: int | None = None
    """The most steps between two evaluations in these steps: a shorter dip between them is not seen."""
    after: int | None = None
    """Where the event was not seen: the last evaluation that is known not to be it; a censored time. Else None."""

    def __repr__(self) -> str:
        shown = {name: value for name, value in vars(self).items() if name != "after" or value is not None}
        return f"Stability({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @property
    def time(self) -> tuple[int, bool] | None:
        """(step of the event, True), or (the last step known to be none, False): a right-censored time.

        >>> stability([0, 500, 1000, 1500], [0.0, 0.2, 1.0, 1.0]).time
        (500, False)
        """
        if self.step is not None:
            return self.step, True
        return None if self.after is None else (self.after, False)

    def to_dict(self) -> dict[str, Any]:
        """As an outcome stores it."""
        return {**vars(self), "status": self.status.name.lower()}


def stability(
    steps: Sequence[int],
    validation_accuracy: Sequence[float | int],
    reading: ReadingSpec | None = None,
    failed_at: int | None = None,
) -> Stability:
    """Whether validation accuracy is ≥ 0.95 at grokking and at every evaluation of the next 2,000 steps.

    Evaluations are in the order of their steps; NaN is one that was not made. Of real answers the squared error decides
    (`judged_columns`). A run that fails within 2,000 steps after grokking is not stable.
    """
    reading = reading or ReadingSpec()
    level, span = reading.grokked, reading.stable_steps
    seen = [(step, value) for step, value in zip(steps, validation_accuracy, strict=True) if not isnan(value)]
    grokked = first_step([step for step, _ in seen], [value for _, value in seen], level)
    verdicts = _stay(seen, level, span, failed_at)
    found = next((step for (step, _), stays in zip(seen, verdicts, strict=True) if stays), None)
    known = [step for (step, _), stays in zip(seen, verdicts, strict=True) if stays is False]
    after = max(known, default=None) if found is None else None
    if grokked is None:
        return Stability(StabilityStatus.NO_GROKKING, after=after)
    place = next(i for i, (step, _) in enumerate(seen) if step == grokked)
    window = [(step, value) for step, value in seen if grokked <= step <= grokked + span]
    dips = dips_after(grokked, [step for step, _ in window], [value for _, value in window], level)
    statuses = {True: StabilityStatus.STABLE, False: StabilityStatus.NOT_STABLE, None: StabilityStatus.CENSORED}
    return Stability(statuses[verdicts[place]], found, dips.count, dips.longest, _cadence(seen, grokked, span), after)


def _stay(seen: Evaluations, level: float, span: int, failed_at: int | None) -> list[bool | None]:
    """Whether a run has grokked at each evaluation and stays so; None where it was not seen for long enough."""
    found: list[bool | None] = []
    below, following = inf, inf  # the first evaluation below the level from here on, and the next one
    for begin, value in reversed(seen):
        below = begin if value < level else below
        end = begin + span
        is_left = below <= end or (failed_at is not None and failed_at <= end)
        is_seen = following <= end <= seen[-1][0]
        found.append(False if is_left else True if is_seen else None)
        following = begin
    return found[::-1]


def _cadence(seen: Evaluations, grokked: int, span: int) -> int | None:
    """The largest distance between evaluations from grokking to the end of the window; None if there are none."""
    later = [step for step, _ in seen if step >= grokked]
    gaps = [end - begin for begin, end in pairwise(later) if begin < grokked + span]
    return max(gaps, default=None)
