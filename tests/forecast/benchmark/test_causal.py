"""No forecaster is shown what comes later, who a run is, or anything but its own rows."""

from dataclasses import replace

import numpy as np
import pytest
from planted_ends import planted_cases

from grokscope.errors import InputError
from grokscope.forecast import Forecast, Prefix
from grokscope.forecast.benchmark import BASELINES, fit_baseline, predict_at
from grokscope.forecast.benchmark.causal import prefix_copy
from grokscope.forecast.cases import Case

CASES = planted_cases()


def with_another_future(case: Case, after: int, seed: int) -> Case:
    """The same run with every later row altered, and with fewer of them."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers((case.run.steps <= after).sum() + 2, len(case.run.steps)))
    later = case.run.steps[:rows] > after
    columns = {name: values[:rows].copy() for name, values in case.run.columns.items()}
    for values in columns.values():
        values[later] = rng.uniform(0, 0.9, later.sum())
    return replace(case, run=Prefix(case.run.steps[:rows], columns, case.run.configuration))


@pytest.mark.parametrize("name", BASELINES)
def test_later_rows_change_no_forecast(name: str) -> None:
    forecaster = fit_baseline(name, CASES)
    for step in (100, 700, 1300):
        here = [case for case in CASES if case.end > step]
        altered = [with_another_future(case, step, seed) for seed, case in enumerate(here)]
        assert predict_at(forecaster, here, step, 2000) == predict_at(forecaster, altered, step, 2000)


def test_a_copy_leads_to_no_later_row() -> None:
    part = prefix_copy(CASES[0].run, 500)
    for values in (part.steps, *part.columns.values()):
        assert values.base is None
        assert len(values) == 6


class Spy:
    """Notes what it is shown."""

    name, tier = "spy", 0

    def __init__(self) -> None:
        self.shown: list[Prefix] = []

    def predict(self, prefixes, horizon):
        self.shown += prefixes
        return [Forecast(run.step, 0.5, horizon, {}, 0) for run in prefixes]


def test_neither_the_order_nor_the_content_of_a_batch_tells_the_end() -> None:
    spy, turned = Spy(), Spy()
    predict_at(spy, CASES, 500, 2000)
    predict_at(turned, CASES[::-1], 500, 2000)
    first, second = ([run.columns["validation_loss"][:2].tolist() for run in one.shown] for one in (spy, turned))
    assert first[: len(CASES)] == second[: len(CASES)]
    assert {run.step for run in spy.shown} == {500}
    assert not any(
        word in name for run in spy.shown for name in run.configuration for word in ("seed", "steps", "task")
    )


class Ranker(Spy):
    """Looks at the other runs of its batch."""

    name = "ranker"

    def predict(self, prefixes, horizon):
        losses = [run.columns["validation_loss"][-1] for run in prefixes]
        return [
            Forecast(run.step, losses.index(x) / 99, horizon, {}, 0) for run, x in zip(prefixes, losses, strict=True)
        ]


def test_a_forecaster_that_compares_the_runs_of_a_batch_is_rejected() -> None:
    with pytest.raises(InputError, match="ranker forecasts a run otherwise beside others than alone"):
        predict_at(Ranker(), CASES, 500, 2000)


class Short(Spy):
    name = "short"

    def predict(self, prefixes, horizon):
        return super().predict(prefixes, horizon)[1:]


def test_a_forecast_for_every_run_is_needed() -> None:
    with pytest.raises(InputError, match=r"short gave 39 forecasts of 40 runs"):
        predict_at(Short(), CASES, 100, 2000)
