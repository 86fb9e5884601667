"""What a scored forecaster is given: copies of prefixes that end at one step, and nothing else.

A prefix is copied, so that no array leads to later rows; runs of all cells come in one batch, in an order that has
nothing to do with their ends. A forecaster may use each run alone: some are predicted again by themselves, and another
answer is an error.
"""

from collections.abc import Mapping, Sequence
from math import isclose

import numpy as np

from grokscope.errors import InputError, require
from grokscope.forecast.cases import Case
from grokscope.forecast.forecast import Forecast, Forecaster
from grokscope.forecast.prefix import Prefix

__all__ = ["predict_at", "prefix_copy"]

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
    shown = [prefix_copy(cases[place].run, step) for place in order]
    found = _checked(forecaster.predict(shown, horizon), shown, forecaster.name)
    for place in range(0, len(shown), max(1, len(shown) // CHECKED)):
        if len(shown) > 1:
            [alone] = forecaster.predict([prefix_copy(cases[order[place]].run, step)], horizon)
            same = isclose(alone.probability, found[place].probability, rel_tol=1e-6, abs_tol=1e-9)
            require(
                same, f"{forecaster.name} forecasts a run otherwise beside others than alone; each run counts alone"
            )
    by_case = dict(zip(order, found, strict=True))
    return [by_case[place] for place in range(len(cases))]


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


def _shuffling(case: Case) -> tuple[float, ...]:
    """An order that no end is known from: by the first rows of the run itself."""
    return tuple(float(values[:2].sum()) for _, values in sorted(case.run.columns.items()))


def _checked(found: Sequence[Forecast], shown: Sequence[Prefix], name: str) -> list[Forecast]:
    if len(found) != len(shown):
        raise InputError(f"{name} gave {len(found)} forecasts of {len(shown)} runs")
    for one in found:
        require(isinstance(one, Forecast), f"{name} must give forecasts (grokscope.forecast.Forecast)", one)
    return list(found)
