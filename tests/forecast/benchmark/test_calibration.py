"""Reliability and coverage, against forecasts that are right by construction and against counts by hand."""

from dataclasses import replace

import numpy as np
import pytest

from grokscope.forecast import Forecast
from grokscope.forecast.benchmark.calibration import EDGES, calibration_of
from grokscope.forecast.cases import Case
from grokscope.forecast.prefix import Prefix

HORIZON = 2000
QUANTILES = {level: 4000 * level for level in (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)}


def case_of(end: int, cell: int, budget: int = 9000, grokked: bool = True) -> Case:
    steps = np.array([0, end])
    columns = {"validation_accuracy": np.array([0.0, float(grokked)]), "train_accuracy": np.ones(2)}
    return Case(Prefix(steps, columns), f"cell {cell}", "planted", "none", budget)


def test_a_forecaster_that_knows_the_distribution_is_calibrated() -> None:
    rng, pairs = np.random.default_rng(0), []
    for place in range(3000):
        chance = float(rng.uniform())
        end = int(rng.uniform(1, HORIZON) if rng.uniform() < chance else rng.uniform(HORIZON + 1, 8000))
        pairs.append((case_of(end, place % 30), Forecast(0, chance, HORIZON, {}, 5)))
    for one in calibration_of(pairs).bins:
        assert one.low <= one.said <= one.high
        assert one.came.low - 0.02 <= one.said <= one.came.high + 0.02
        assert one.came.value == pytest.approx(one.said, abs=0.06)
    assert sum(one.forecasts for one in calibration_of(pairs).bins) == 3000


def test_intervals_of_a_known_distribution_hold_what_they_should_and_narrow_ones_less() -> None:
    rng = np.random.default_rng(1)
    pairs = [
        (case_of(int(rng.uniform(1, 4000)), place % 30), Forecast(0, 0.5, HORIZON, QUANTILES, 5))
        for place in range(3000)
    ]
    for level, share in calibration_of(pairs).coverage:
        assert share.value == pytest.approx(level, abs=0.03)
    narrow = {level: 2000 + 0.5 * (left - 2000) for level, left in QUANTILES.items()}
    for level, share in calibration_of([(case, replace(one, quantiles=narrow)) for case, one in pairs]).coverage:
        assert share.high < level


def test_runs_that_were_not_seen_to_the_horizon_and_ends_of_bins() -> None:
    edge = Forecast(0, EDGES[2], HORIZON, {}, 5)
    pairs = [(case_of(500, 0), edge), (case_of(1500, 0, budget=1500, grokked=False), edge)]
    found = calibration_of(pairs).bins
    assert [one.forecasts for one in found] == [0, 0, 1, 0, 0, 0, 0], "a bin has its lower end; a short budget is out"
    assert found[2].came.value == 1.0
