import numpy as np
import pytest
from planted_ends import planted_cases

from grokscope.errors import InputError
from grokscope.forecast import Forecast
from grokscope.forecast.benchmark import BASELINES, fit_baseline, score_folds, score_forecaster
from grokscope.forecast.benchmark.alarms import FALSE_ALARMS, alarm_questions
from grokscope.forecast.benchmark.scorer import common_steps
from grokscope.forecast.benchmark.thresholds import find_thresholds

CASES = planted_cases(cells=3, seeds=6)


class Oracle:
    """Knows the end of a run by its first validation loss."""

    name, tier = "oracle", 5

    def __init__(self, spread: float = 1.0) -> None:
        self.ends = {case.run.columns["validation_loss"][0]: case.grokked for case in CASES}
        self.spread = spread

    def predict(self, prefixes, horizon):
        return [self.one(run, horizon) for run in prefixes]

    def one(self, run, horizon):
        end = self.ends[run.columns["validation_loss"][0]]
        if end is None:
            return Forecast(run.step, 0.0, horizon, {0.1: np.inf, 0.5: np.inf, 0.9: np.inf}, 5)
        left = float(end - run.step)
        return Forecast(run.step, float(left <= horizon), horizon, {0.1: left, 0.5: left, 0.9: left * self.spread}, 5)


class Constant:
    name, tier = "constant", 0

    def predict(self, prefixes, horizon):
        return [Forecast(run.step, 0.5, horizon, {0.5: 1000.0}, 0) for run in prefixes]


class Multiple:
    """Guesses that the end is a multiple of the step, as if steps were always the same share of the median."""

    name, tier = "multiple", 0

    def __init__(self, times: float) -> None:
        self.times = times

    def predict(self, prefixes, horizon):
        left = [(self.times - 1) * run.step for run in prefixes]
        quantiles = [{0.1: 0.8 * one, 0.5: one, 0.9: 1.2 * one} for one in left]
        return [Forecast(run.step, 0.5, horizon, one, 0) for run, one in zip(prefixes, quantiles, strict=True)]


def test_an_oracle_is_perfect_in_every_score() -> None:
    found = score_forecaster(Oracle(), CASES).values
    for share in ("10%", "25%", "50%", "75%"):
        assert found[f"concordance at {share}"].value == 1
    assert found["AUROC across at 75%"].value == 1
    assert (found["Brier"].value, found["error"].value, found["inside 80 %"].value) == (0, 0, 1)
    assert found["CRPS"].value < 0.1
    assert found["coverage at 1%"].value > 0.9


def test_who_knows_nothing_is_at_chance() -> None:
    found = score_forecaster(Constant(), CASES).values
    assert {found[f"concordance at {share}"].value for share in ("10%", "25%", "50%", "75%")} == {0.5}
    assert found["AUROC across at 50%"].value == 0.5
    assert found["Brier"].value == 0.25
    assert found["coverage at 5%"].value == 0


@pytest.mark.parametrize("times", [1.5, 2, 3, 4, 10])
def test_the_step_of_the_cut_gives_no_timing_away(times: float) -> None:
    found = score_forecaster(Multiple(times), CASES).values
    assert found["error over floor"].value > 2
    assert found["concordance at 25%"].value == 0.5


def test_longer_watched_runs_that_never_grok_raise_no_more_alarms() -> None:
    class Late(Constant):
        """Becomes sure of every run with age: false alarms come with exposure alone."""

        def predict(self, prefixes, horizon):
            return [Forecast(run.step, min(1.0, run.step / 1e5), horizon, {}, 0) for run in prefixes]

    curves = {case: {step: min(1.0, step / 1e5) for step in alarm_questions(case)} for case in CASES}
    found = score_forecaster(Late(), CASES, find_thresholds(CASES, curves)).values
    assert found["coverage at 5%"].value < 0.1
    assert found["false alarms at 5%"].value <= 0.05


def test_thresholds_that_are_given_are_used_and_what_they_do_is_scored() -> None:
    never, always = (score_forecaster(Constant(), CASES, dict.fromkeys(FALSE_ALARMS, one)).values for one in (0.6, 0.4))
    assert (never["coverage at 5%"].value, never["false alarms at 5%"].value) == (0, 0)
    assert (always["coverage at 5%"].value, always["false alarms at 5%"].value) == (1, 1)
    assert "coverage at 5%" not in score_forecaster(Constant(), CASES, {}).values, "without a threshold there is none"
    own = Constant()
    own.alarms = {0.05: 0.4}
    found = score_forecaster(own, CASES)
    assert found.values["coverage at 5%"].value == 1
    assert ("coverage at 1%" in found.values, found.alarms) == (False, {0.05: 0.4})


def test_no_question_comes_after_one_at_a_later_step() -> None:
    """Who remembers what it is shown has seen nothing later of any run when it answers for the first time."""

    class Watcher(Constant):
        def __init__(self) -> None:
            self.steps: list[int] = []

        def predict(self, prefixes, horizon):
            self.steps += [run.step for run in prefixes if len(prefixes) > 1]
            return super().predict(prefixes, horizon)

    watcher = Watcher()
    score_forecaster(watcher, CASES)
    assert len(watcher.steps) > 500
    assert watcher.steps == sorted(watcher.steps)


def test_a_baseline_is_fitted_to_other_folds_only() -> None:
    fitted_to = []

    def fit(cases):
        fitted_to.append({case.cell for case in cases})
        return fit_baseline("clock", cases)

    score_folds(fit, CASES, lambda case: case.cell, "clock", 0)
    cells = {case.cell for case in CASES}
    outer = [one for one in fitted_to if len(one) == len(cells) - 1]
    assert len({*map(frozenset, outer)}) == len(cells), "each cell is left out of one fit"
    assert len(outer) < len(fitted_to), "thresholds are fitted, too"
    for one in fitted_to:
        last = one if one in outer else last
        assert one <= last, "and without the cell that they are for"


def test_baselines_that_read_the_planted_signal_find_it_and_others_do_not() -> None:
    found = {
        name: score_folds(lambda cases, name=name: fit_baseline(name, cases), CASES, lambda case: case.cell, name, 0)
        for name in ("configuration", "validation-loss")
    }
    ranks = {name: scores.values["concordance at 75%"].value for name, scores in found.items()}
    assert ranks["validation-loss"] > 0.8
    assert abs(ranks["configuration"] - 0.5) < 0.01  # runs of a cell have the same
    assert all(baseline.meaning for baseline in BASELINES.values())


def test_intervals_contain_the_value_and_shrink_to_nothing_without_spread() -> None:
    for score in score_forecaster(Oracle(1.1), CASES).values.values():
        if not np.isnan(score.low):
            assert score.low <= score.value + 1e-12
            assert score.value <= score.high + 1e-12


def test_intervals_for_some_runs_alone_are_rejected() -> None:
    class Picky(Constant):
        name = "picky"

        def predict(self, prefixes, horizon):
            easy = {0.1: 0.0, 0.5: 10.0, 0.9: 1e5}
            return [Forecast(run.step, 0.5, horizon, {0.5: 10.0} if run.step > 1000 else easy, 0) for run in prefixes]

    with pytest.raises(InputError, match="picky must give quantiles at the same levels for every run"):
        score_forecaster(Picky(), CASES)


@pytest.mark.parametrize("name", ["CRPS", "Brier", "error"])
def test_no_step_at_which_times_are_scored_depends_on_other_runs(name: str) -> None:
    """Cuts at a share of the cell's median would tell it: a run scored alone would be asked at other steps."""
    cases = [case for case in CASES if case.grokked is not None]
    alone = [score_forecaster(Constant(), [case]).values[name].value for case in cases]
    times = [sum(step < case.end for step in common_steps(cases)) for case in cases]
    together = score_forecaster(Constant(), cases).values[name].value
    assert np.isclose(together, np.average(alone, weights=times))
    assert common_steps(cases)[:4] == [200, 400, 800, 1600]
