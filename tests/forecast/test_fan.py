"""The forecasts of a run at its evaluations so far."""

from dataclasses import replace
from math import isinf

import numpy as np
import pytest
from planted_ends import planted_cases

from grokscope.errors import InputError
from grokscope.forecast import Prefix, forecast_fan, forecast_fans, forecast_to
from grokscope.forecast.benchmark.causal import is_same

RUN = planted_cases(cells=1, seeds=1, never=0)[0].run
LAST = 8000


def test_each_forecast_is_the_one_that_would_have_been_made_then():
    fan = forecast_fan(RUN.until(2000), LAST)
    for one in fan.forecasts:
        [then] = forecast_to([RUN.until(one.step)], [LAST - one.step])
        assert is_same(one, then)
    assert fan.forecasts[0].step >= RUN.memorized
    assert fan.now.step == 2000


def test_what_is_past_stays_as_the_run_grows():
    whole = forecast_fan(RUN.until(3000), LAST)
    for step in (800, 1500, 2300):
        part = forecast_fan(RUN.until(step), LAST)
        past = part.forecasts[:-1]
        assert [one.step for one in past] == [one.step for one in whole.forecasts[: len(past)]]
        assert all(map(is_same, past, whole.forecasts))
        assert part.now.step == step


def test_a_fan_that_is_continued_is_the_whole_one():
    young, whole = forecast_fan(RUN.until(1500), LAST), forecast_fan(RUN.until(3000), LAST)
    [found] = forecast_fans([RUN.until(3000)], [LAST], [young])
    assert [one.step for one in found.forecasts] == [one.step for one in whole.forecasts]
    assert all(map(is_same, found.forecasts, whole.forecasts))


def test_a_fan_ends_where_the_run_grokked_and_advice_is_of_the_present():
    fan = forecast_fan(RUN, LAST)
    assert RUN.grokked is not None
    assert (fan.now.step, fan.now.probability) == (RUN.grokked, 1.0)
    assert {fan.at_level(level)[-1] for level in (0.1, 0.5, 0.9)} == {float(RUN.grokked)}
    assert forecast_fan(RUN.until(RUN.grokked + 1000), LAST).advice.stops is False
    assert forecast_fan(RUN.until(RUN.grokked + 2500), LAST).advice.saves == LAST - RUN.grokked - 2500


def test_a_run_that_has_not_memorised_has_its_present_forecast_alone():
    flat = Prefix(RUN.steps, {**RUN.columns, "train_accuracy": np.zeros(len(RUN.steps))}, RUN.configuration)
    [one] = forecast_fan(flat.until(900), LAST).forecasts
    assert (one.step, one.is_inside) == (900, False)
    unknown = {name: values for name, values in RUN.columns.items() if name != "train_accuracy"}
    assert forecast_fan(Prefix(RUN.steps, unknown, RUN.configuration).until(900), LAST).forecasts[0].step < 400


def test_what_never_comes_is_null_on_a_page():
    fan = forecast_fan(RUN.until(1000), LAST)
    never = replace(fan.now, quantiles={0.1: 10.0, 0.5: 20.0, 0.9: np.inf})
    found = replace(fan, forecasts=(never,)).to_dict()
    assert (found["low"], found["middle"], found["high"]) == ([1010], [1020], [None])
    assert isinf(replace(fan, forecasts=(never,)).at_level(0.9)[0])


def test_many_fans_are_those_of_each_and_a_last_step_is_positive():
    other = planted_cases(cells=2, seeds=1, never=0)[1].run.until(1200)
    both = forecast_fans([RUN.until(1000), other], [LAST, 5000])
    for found, alone in zip(both, (forecast_fan(RUN.until(1000), LAST), forecast_fan(other, 5000)), strict=True):
        assert (found.last, found.step) == (alone.last, alone.step)
        assert all(is_same(*pair) for pair in zip(found.forecasts, alone.forecasts, strict=True))
    with pytest.raises(InputError, match="must be positive"):
        forecast_fan(RUN, 0)
