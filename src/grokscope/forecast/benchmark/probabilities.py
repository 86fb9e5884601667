"""Whether probabilities and quantiles are right: Brier score, CRPS with censoring, shares inside intervals."""

from math import isfinite, log

import numpy as np

from grokscope.forecast.forecast import Forecast
from grokscope.shapes import Float

__all__ = ["brier", "crps", "inside_interval"]

GRID = np.concatenate([[0.0], np.geomspace(25, 100_000, 80)])
"""Steps left at which the distribution is compared, evenly in logarithms."""


def brier(forecast: Forecast, end: int, came: bool, budget: int) -> float:
    """(p − y)² of grokking within the horizon; NaN where the run's budget ends before it.

    A run that could not have been seen to the horizon does not count, whether it grokked or not: else only runs that
    grokked would be known.

    >>> brier(Forecast(100, 0.75, 1000, {}, 1), end=600, came=True, budget=2000)
    0.0625
    """
    until = forecast.step + forecast.horizon
    if until > budget:
        return float("nan")
    return (forecast.probability - float(came and end <= until)) ** 2


def crps(forecast: Forecast, end: int, came: bool) -> float:
    """∫ (F(s) − 1{T ≤ s})² d log s over steps left from 25 to 100,000; of a run that ended, until its end.

    >>> sure = Forecast(0, 1.0, 1000, {0.05: 999.0, 0.5: 1000.0, 0.95: 1001.0}, 1)
    >>> round(crps(sure, 1000, True), 2), crps(sure, 50_000, True) > 3
    (0.01, True)
    """
    left = end - forecast.step
    reached = _distribution(forecast)
    seen = left >= GRID if not came else np.ones(len(GRID), bool)
    errors = (reached - (left <= GRID if came else 0.0)) ** 2 * seen
    return float(np.sum(errors[1:]) * log(GRID[-1] / GRID[1]) / (len(GRID) - 2))


def inside_interval(forecast: Forecast, end: int, came: bool, ends: tuple[float, float] = (0.1, 0.9)) -> float:
    """1 where the time lies in an interval, by default that of 80 %, 0 where not; NaN where that is not known.

    >>> inside_interval(Forecast(0, 0.5, 100, {0.1: 50.0, 0.9: 500.0}, 1), 200, True)
    1.0
    """
    low, high = (forecast.quantiles.get(level) for level in ends)
    left = end - forecast.step
    if low is None or high is None:
        return float("nan")
    if came:
        return float(low <= left <= high)
    if left > high:
        return 0.0
    # Never is inside an interval without an end, once its beginning has passed; before, what comes is not known.
    return 1.0 if low <= left and not isfinite(high) else float("nan")


def _distribution(forecast: Forecast) -> Float[np.ndarray, " left"]:
    """F at the grid, linear in log s between the quantiles, and level beyond the last finite one."""
    points = [(value, level) for level, value in sorted(forecast.quantiles.items()) if isfinite(value)]
    if not points:
        return np.full(len(GRID), 0.0)
    places = np.log1p([value for value, _ in points])
    return np.interp(np.log1p(GRID), places, [level for _, level in points], left=0.0)
