"""What a scored forecaster is given: copies of prefixes that end at one step, and nothing else.

A prefix is copied, so that no array leads to later rows, and holds the columns of the forecaster's own tier alone. Runs
of all cells come in one batch, in an order that has nothing to do with their ends. A forecaster may use each run alone:
some, which it cannot know beforehand, are predicted again by themselves, and any other answer is an error. What it
answers is copied to plain numbers, so that no object of its own is at work while scores are computed.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from math import isclose
from secrets import SystemRandom

import numpy as np

from grokscope.errors import InputError, require, shown
from grokscope.forecast.cases import Case
from grokscope.forecast.forecast import Forecast, Forecaster
from grokscope.forecast.prefix import Prefix
from grokscope.forecast.tiers import seen_at_tier

__all__ = ["is_same", "predict_at", "prefix_copy"]

CHECKED = 3  # runs of a batch that are predicted again, each by itself


def predict_at(forecaster: Forecaster, cases: Sequence[Case], step: int, horizon: int) -> list[Forecast]:
    """The forecasts of runs that have not grokked by a step, each made from its rows up to then.

    >>> from grokscope.forecast.cases import usable_cases
    >>> from grokscope.forecast.clock import ClockForecaster
    >>> from grokscope.specs import RunSpec
    >>> log = {"step": [0, 100, 200], "train_accuracy": [0.1, 1.0, 1.0], "validation_accuracy": [0.0, 0.1, 0.99]}
    >>> [found] = predict_at(ClockForecaster(), usable_cases([(RunSpec(), log)]), step=150, horizon=1000)
    >>> found.step
    100
    """
    order = sorted(range(len(cases)), key=lambda place: _shuffling(cases[place]))
    found = _answers(forecaster, [cases[place] for place in order], step, horizon)
    if len(order) > 1:
        for place in SystemRandom().sample(range(len(order)), min(CHECKED, len(order))):
            [alone] = _answers(forecaster, [cases[order[place]]], step, horizon)
            rule = f"{forecaster.name} forecasts a run otherwise beside others than alone; each run counts alone"
            require(is_same(alone, found[place]), rule)
    by_case = dict(zip(order, found, strict=True))
    return [by_case[place] for place in range(len(cases))]


def is_same(one: Forecast, other: Forecast) -> bool:
    """Whether two answers are the same, but for rounding.

    >>> is_same(Forecast(0, 0.5, 10, {0.5: 100.0}, 1), Forecast(0, 0.5, 10, {0.5: 101.0}, 1))
    False
    """
    if {*one.quantiles} != {*other.quantiles}:
        return False
    pairs = [(one.probability, other.probability), *((left, other.quantiles[at]) for at, left in one.quantiles.items())]
    return all(isclose(first, second, rel_tol=1e-6, abs_tol=1e-9) for first, second in pairs)


def prefix_copy(run: Prefix, step: int) -> Prefix:
    """A run up to a step in memory of its own.

    >>> whole = Prefix(np.array([0, 100, 200]), {"norm": np.array([3.0, 2.0, 1.0])})
    >>> part = prefix_copy(whole, 100)
    >>> part.columns["norm"].tolist(), part.columns["norm"].base
    ([3.0, 2.0], None)
    """
    part = run.until(step)
    columns: Mapping[str, np.ndarray] = {name: values.copy() for name, values in part.columns.items()}
    return Prefix(part.steps.copy(), columns, dict(part.configuration))


def _shuffling(case: Case) -> bytes:
    """An order that no end is known from: by a digest of the first rows of the run itself, and how it was set."""
    first = [(name, values[:2].tolist()) for name, values in sorted(case.run.columns.items())]
    return sha256(repr((first, sorted(case.run.configuration.items()))).encode()).digest()


def _answers(forecaster: Forecaster, cases: Sequence[Case], step: int, horizon: int) -> list[Forecast]:
    prefixes = [seen_at_tier(prefix_copy(case.run, step), forecaster.tier) for case in cases]
    steps = [run.step for run in prefixes]  # before they are in somebody else's hands
    found = forecaster.predict(prefixes, horizon)
    if len(found) != len(steps):
        raise InputError(f"{forecaster.name} gave {len(found)} forecasts of {len(steps)} runs")
    return [_plain(one, step, horizon, forecaster) for one, step in zip(found, steps, strict=True)]


def _plain(one: Forecast, step: int, horizon: int, forecaster: Forecaster) -> Forecast:
    """The same numbers: those of a run at another step, or for another horizon, would be scored by other rules."""
    require(isinstance(one, Forecast), f"{forecaster.name} must give forecasts (grokscope.forecast.Forecast)", one)
    if (one.step, one.horizon) != (step, horizon):
        asked = f"{forecaster.name} was asked at step {step} for {horizon} steps"
        raise InputError(f"{asked}, and answered at step {shown(one.step)} for {shown(one.horizon)}")
    quantiles = {float(level): float(left) for level, left in one.quantiles.items()}
    return Forecast(step, float(one.probability), horizon, quantiles, forecaster.tier)
