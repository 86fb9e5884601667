"""Whether probabilities mean what they say: how often it came, of all forecasts that said about as much.

Of the same forecasts as errors and Brier scores, at steps 200, 400, 800, … of all runs, those count whose run was seen
to the horizon. Intervals are 95 % percentiles over resamples of cells.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan

import numpy as np

from grokscope.forecast.benchmark.cell_means import Score, Summed, mean_over_cells
from grokscope.forecast.benchmark.probabilities import inside_interval
from grokscope.forecast.cases import Case
from grokscope.forecast.forecast import Forecast

__all__ = ["EDGES", "LEVELS", "Bin", "Calibration", "calibration_of"]

EDGES = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)
"""Of the bins of probabilities, each with its lower end: narrow where a run is all but sure."""
LEVELS = ((0.25, 0.75), (0.1, 0.9), (0.05, 0.95))
"""Ends of the intervals whose coverage is shown: 50, 80 and 90 %."""
Pairs = Sequence[tuple[Case, Forecast]]


@dataclass(frozen=True)
class Bin:
    """Forecasts that say about the same."""

    low: float
    """Least probability."""
    high: float
    """Greatest probability; not included but in the last bin."""
    forecasts: int
    """How many."""
    said: float
    """Their mean probability; NaN of none."""
    came: Score
    """The share of them after which the run grokked within the horizon."""


@dataclass(frozen=True)
class Calibration:
    """What was said, and what came."""

    bins: tuple[Bin, ...]
    """From the lowest probabilities to the highest."""
    coverage: tuple[tuple[float, Score], ...]
    """The share of times that an interval should hold, and the share that it does."""


def calibration_of(pairs: Pairs) -> Calibration:
    """Reliability in bins, and coverage of intervals; cells are those of the cases.

    >>> [one.forecasts for one in calibration_of([]).bins], calibration_of([]).coverage[0][0]
    ([0, 0, 0, 0, 0, 0, 0], 0.5)
    """
    known = [(case, one) for case, one in pairs if one.step + one.horizon <= case.budget]
    places = np.searchsorted(EDGES[1:-1], [one.probability for _, one in known], side="right")
    bins = tuple(
        _bin(low, high, [pair for pair, place in zip(known, places, strict=True) if place == number])
        for number, (low, high) in enumerate(pairwise(EDGES))
    )
    return Calibration(bins, tuple((round(high - low, 6), _coverage(pairs, (low, high))) for low, high in LEVELS))


def _bin(low: float, high: float, pairs: Pairs) -> Bin:
    said = float(np.mean([one.probability for _, one in pairs])) if pairs else float("nan")
    return Bin(low, high, len(pairs), said, _mean(pairs, _has_come))


def _has_come(case: Case, forecast: Forecast) -> float:
    return float(case.grokked is not None and case.end <= forecast.step + forecast.horizon)


def _coverage(pairs: Pairs, ends: tuple[float, float]) -> Score:
    return _mean(pairs, lambda case, one: inside_interval(one, case.end, case.grokked is not None, ends))


def _mean(pairs: Pairs, of_one: Callable[[Case, Forecast], float]) -> Score:
    cells: dict[str, list[float]] = {}
    for case, forecast in pairs:
        if not isnan(value := of_one(case, forecast)):
            cells.setdefault(case.cell, []).append(value)
    sums: list[Summed] = [(sum(values), float(len(values))) for values in cells.values()]
    return mean_over_cells(sums)
