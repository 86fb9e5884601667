"""No forecaster is shown what comes later, who a run is, or anything but its own rows."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
from planted_ends import planted_cases

from grokscope.errors import InputError
from grokscope.forecast import Forecast, Prefix
from grokscope.forecast.benchmark import BASELINES, fit_baseline, predict_at
from grokscope.forecast.benchmark.causal import is_same, prefix_copy
from grokscope.forecast.cases import Case
from grokscope.forecast.hazard import HazardForecaster
from grokscope.forecast.signals import SIGNALS

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


@pytest.mark.parametrize("name", ["hazard-0", "hazard-2", "hazard-5", "all-signals"])
def test_our_own_forecasters_answer_from_signals_as_from_copies_of_prefixes(name: str) -> None:
    forecaster = fit_baseline(name, CASES)
    assert isinstance(forecaster, HazardForecaster)
    assert all(SIGNALS[signal][0] <= forecaster.tier for signal in forecaster.signals)
    for step in (100, 750, 1300):
        here = [case for case in CASES if case.end > step]
        copied = predict_at(forecaster, here, step, 2000)
        for one, other in zip(copied, forecaster.predict_known(here, step, 2000), strict=True):
            assert is_same(one, other)
            assert one.step == other.step


def test_a_copy_leads_to_no_later_row() -> None:
    part = prefix_copy(CASES[0].run, 500)
    for values in (part.steps, *part.columns.values()):
        assert values.base is None
        assert len(values) == 6


class Spy:
    """Notes what it is shown."""

    name, tier = "spy", 5

    def __init__(self) -> None:
        self.shown: list[Prefix] = []

    def predict(self, prefixes, horizon):
        self.shown += prefixes
        return [Forecast(run.step, 0.5, horizon, {}, 5) for run in prefixes]


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


class BatchQuantiles(Spy):
    """Gives the probability for each run alone, and the quantiles by the batch."""

    name = "batcher"

    def predict(self, prefixes, horizon):
        return [Forecast(run.step, 0.5, horizon, {0.5: 1e3 + len(prefixes)}, 5) for run in prefixes]


class WhereChecked(Spy):
    """Honest at the first, and at every third of the batch."""

    name = "careful"

    def predict(self, prefixes, horizon):
        every, n = max(1, len(prefixes) // 3), len(prefixes)
        honest = [n == 1 or place % every == 0 for place in range(n)]
        return [
            Forecast(run.step, 0.5 if one else 0.6, horizon, {}, 5)
            for run, one in zip(prefixes, honest, strict=True)
        ]  # fmt: skip


@pytest.mark.parametrize("forecaster", [BatchQuantiles(), WhereChecked()], ids=lambda one: one.name)
def test_no_part_of_an_answer_and_no_place_of_a_batch_escapes_the_check(forecaster: Spy) -> None:
    def ask_often() -> None:
        for step in (100, 200, 300, 400):
            predict_at(forecaster, CASES, step, 2000)

    with pytest.raises(InputError, match="otherwise beside others than alone"):
        ask_often()


class Chooser(Spy):
    """Answers for another horizon than it was asked, of which no end is known."""

    name = "chooser"

    def predict(self, prefixes, horizon):
        return [Forecast(run.step, 0.5, 10**9, {}, 5) for run in prefixes]


def test_neither_the_step_nor_the_horizon_is_the_forecasters_to_choose() -> None:
    with pytest.raises(InputError, match="chooser was asked at step 500 for 2000 steps"):
        predict_at(Chooser(), CASES, 500, 2000)


class Lazy(Forecast):
    """Reads the end of the run from the function that asks for its median."""

    @property
    def median(self) -> float:
        return float(inspect.currentframe().f_back.f_locals["case"].end)


def test_an_answer_is_copied_to_plain_numbers() -> None:
    class Late(Spy):
        def predict(self, prefixes, horizon):
            return [Lazy(run.step, np.float64(0.5), horizon, {0.5: 7.0}, 5) for run in prefixes]

    for case, found in zip(CASES, predict_at(Late(), CASES, 500, 2000), strict=True):
        assert case.end != 7
        assert (type(found), type(found.probability), found.median) == (Forecast, float, 7)


class Emptier(Spy):
    name = "emptier"

    def predict(self, prefixes, horizon):
        prefixes.clear()
        return []


def test_the_batch_that_is_given_is_not_the_scorers_own() -> None:
    with pytest.raises(InputError, match="emptier gave 0 forecasts of 40 runs"):
        predict_at(Emptier(), CASES, 500, 2000)


@pytest.mark.parametrize("tier", range(6))
def test_a_forecaster_is_shown_the_columns_of_its_tier_alone(tier: int) -> None:
    spy = Spy()
    spy.tier = tier
    predict_at(spy, CASES, 500, 2000)
    allowed = [
        set(),
        {"train_loss", "train_accuracy"},
        {"norm"},
        set(),
        set(),
        {"validation_loss", "validation_accuracy"},
    ]
    assert {name for run in spy.shown for name in run.columns} == set.union(*allowed[: tier + 1])


def test_columns_that_were_not_measured_do_not_order_a_batch_by_its_source() -> None:
    cases = [
        replace(case, run=replace(case.run, columns={"a": np.full(len(case.run.steps), np.nan), **case.run.columns}))
        for case in CASES
    ]
    spy, turned = Spy(), Spy()
    predict_at(spy, cases, 500, 2000)
    predict_at(turned, sorted(cases, key=lambda case: case.end), 500, 2000)
    first, second = ([run.columns["validation_loss"][:2].tolist() for run in one.shown] for one in (spy, turned))
    assert first[: len(cases)] == second[: len(cases)]
