from math import inf

import pytest

from grokscope.forecast import Forecast, stopping_advice


@pytest.mark.parametrize(
    ("ahead", "budget", "stops", "saves"),
    [
        (Forecast(6000, 0.04, 9000, {0.5: inf}, 5), 15_000, True, 9000),
        (Forecast(6000, 0.05, 9000, {0.5: inf}, 5), 15_000, False, 0),
        (Forecast(6000, 0.0, 9000, {}, 5, outside=("λ = 9",)), 15_000, False, 0),
        (Forecast(6000, 1.0, 9000, {}, 5, grokked=4000), 15_000, True, 9000),
        (Forecast(5900, 1.0, 9000, {}, 5, grokked=4000), 15_000, False, 0),
        (Forecast(15_000, 0.0, 1, {}, 5), 15_000, False, 0),
    ],
)
def test_stops_what_cannot_pay_and_nothing_else(ahead, budget, stops, saves):
    found = stopping_advice(ahead, budget)
    assert (found.stops, found.saves) == (stops, saves)
    assert found.sentence
