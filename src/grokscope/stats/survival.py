"""Times of events, some censored: Kaplan–Meier and log-rank."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, nan
from statistics import median

import numpy as np
import scipy.stats

from grokscope.errors import InputError
from grokscope.shapes import Bool, Float, Int
from grokscope.stats.beta_product import median_interval, survival_band
from grokscope.stats.intervals import Estimate
from grokscope.stats.numbers import Flags, Numbers, column, flags, require_level, same_length

__all__ = ["LogRank", "Survival", "estimate_median", "kaplan_meier", "logrank", "median_time"]

ROUNDING = 1e-12  # a half reached up to the rounding of a product is reached


@dataclass(frozen=True)
class Survival:
    """The share of runs whose event has not yet happened, as a staircase over the times of events."""

    times: Float[np.ndarray, " times"]
    """Times at which at least one event happened, rising."""
    at_risk: Int[np.ndarray, " times"]
    """Runs without the event just before each."""
    events: Int[np.ndarray, " times"]
    """Events at each."""
    survival: Float[np.ndarray, " times"]
    """S(t) from each time on; 1 before the first."""
    low: Float[np.ndarray, " times"]
    """Lower end of its pointwise interval."""
    high: Float[np.ndarray, " times"]
    """Upper end of the same."""
    median: Estimate
    """First time at which S ≤ 1/2, infinite where that is not reached; an end that no event bounds is infinite too."""
    censored: int
    """Runs whose event was not observed."""

    def at(self, time: float | int) -> float:
        """S at any time."""
        place = int(np.searchsorted(self.times, time, side="right"))
        return float(self.survival[place - 1]) if place else 1.0


@dataclass(frozen=True)
class LogRank:
    """Whether groups have equal times."""

    statistic: float
    """χ²; NaN where no two groups are ever at risk at one time, so that they cannot be compared."""
    degrees: int
    """Its degrees of freedom: groups that are at risk together, less one."""
    p_value: float
    """Chance of at least this χ² if they do."""
    observed: dict[Hashable, int]
    """Events in each group."""
    expected: dict[Hashable, float]
    """Events each would have if all had the same hazard."""


def kaplan_meier(times: Numbers, observed: Flags, level: float = 0.95) -> Survival:
    """S(t) = Π_{tᵢ ≤ t} (1 − dᵢ/nᵢ) with right-censoring (Kaplan and Meier, 1958).

    The pointwise interval is the beta product's (Fay, Brittain and Proschan, 2013), which without censoring is Clopper
    and Pearson's; Greenwood's covers as little as a half at the ends of S. The median's is an interpolated order
    statistic of the same product. A run censored at the time of an event is still at risk there. Times may be negative:
    a lag −lead is censored where a run never synchronised.

    >>> kaplan_meier([100, 200, 300, 400], [True, True, False, True]).survival
    array([0.75, 0.5 , 0.  ])
    """
    when, happened = column(times, "times"), flags(observed)
    same_length(times=when, observed=happened)
    require_level(level)
    if len(when) == 0:
        raise InputError("Kaplan–Meier needs at least one time, got none")
    at = np.unique(when[happened])
    waiting, events = _counts(at, when, happened)
    survival = np.cumprod(1 - events / waiting)
    low, high = survival_band(at, when, happened, level)
    median = _median_estimate(_first(at, survival), when, happened, level)
    return Survival(at, waiting, events, survival, low, high, median, int((~happened).sum()))


def estimate_median(values: Numbers, level: float = 0.95) -> Estimate:
    """The median with its interval by order statistics, interpolated between them; fewer than six values have none.

    >>> estimate_median([3, 1, 2, 6, 5, 4]).value
    3.5
    """
    found = column(values)
    require_level(level)
    if len(found) == 0:
        raise InputError("a median needs at least one value, got none")
    return _median_estimate(float(np.median(found)), found, np.ones(len(found), dtype=bool), level)


def median_time(times: Iterable[float | int | None]) -> float:
    """The median of times, of which one that was not reached is later than all others; NaN without any.

    >>> median_time([300, None, 100]), median_time([None])
    (300.0, inf)
    """
    found = [inf if time is None else float(time) for time in times]
    return median(found) if found else nan


def logrank(times: Numbers, observed: Flags, groups: Sequence[Hashable]) -> LogRank:
    """Log-rank test of any number of groups (Mantel, 1966), for right-censored times.

    At each event's time t a group is expected to have d·nₖ/n of the d events; Z sums observed − expected, and its
    covariance is hypergeometric: d(n − d)/(n − 1) · (nₖ/n)(δₖₗ − nₗ/n). χ² = Zᵀ V⁻ Z with rank(V) degrees of freedom.

    >>> logrank([1, 2, 3, 4], [True] * 4, ["a", "b", "a", "b"]).p_value > 0.05
    True
    """
    when, happened = column(times, "times"), flags(observed)
    same_length(times=when, observed=happened, groups=groups)
    names = list(dict.fromkeys(groups))
    if len(names) < 2:
        raise InputError(f"log-rank compares at least two groups, got {len(names)}")
    at = np.unique(when[happened])
    inside = [np.array([group == name for group in groups]) for name in names]
    counts = [_counts(at, when[mask], happened[mask]) for mask in inside]
    waiting, events = (np.stack(part).astype(np.float64) for part in zip(*counts, strict=True))
    n, d = waiting.sum(axis=0), events.sum(axis=0)
    part = waiting / n
    difference = (events - d * part).sum(axis=1)
    spread = d * (n - d) / np.maximum(n - 1, 1)  # the last run at risk decides nothing
    covariance = np.diag((spread * part).sum(axis=1)) - np.einsum("t,kt,lt->kl", spread, part, part)
    # Rows sum to zero, so the last group adds nothing but rounding, which could pass for another degree of freedom.
    covariance, difference = covariance[:-1, :-1], difference[:-1]
    degrees = int(np.linalg.matrix_rank(covariance, hermitian=True))
    seen = {name: int(total) for name, total in zip(names, events.sum(axis=1), strict=True)}
    expected = {name: float(total) for name, total in zip(names, (d * part).sum(axis=1), strict=True)}
    if degrees == 0:
        return LogRank(np.nan, 0, 1.0, seen, expected)
    statistic = float(difference @ np.linalg.pinv(covariance, hermitian=True) @ difference)
    return LogRank(statistic, degrees, float(scipy.stats.chi2.sf(statistic, degrees)), seen, expected)


def _counts(
    at: Float[np.ndarray, " times"], when: Float[np.ndarray, " items"], happened: Bool[np.ndarray, " items"]
) -> tuple[Int[np.ndarray, " times"], Int[np.ndarray, " times"]]:
    """Runs at risk just before each time, and events at it."""
    waiting = len(when) - np.searchsorted(np.sort(when), at, side="left")
    event_times = np.sort(when[happened])
    sides = (np.searchsorted(event_times, at, side=side) for side in ("right", "left"))
    return waiting, next(sides) - next(sides)


def _first(at: Float[np.ndarray, " times"], survival: Float[np.ndarray, " times"]) -> float:
    """The first time at which a falling curve is at most a half."""
    reached = survival <= 0.5 + ROUNDING
    return float(at[reached.argmax()]) if reached.any() else np.inf


def _median_estimate(
    value: float, when: Float[np.ndarray, " items"], happened: Bool[np.ndarray, " items"], level: float
) -> Estimate:
    """A median with its interval; NaN where neither end is known."""
    low, high = median_interval(when, happened, level)
    return Estimate(value, *((nan, nan) if low == -inf and high == inf else (low, high)), len(when), level)
