"""Laws by maximum likelihood."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from law_cases import DECAYS, grokked, intervention, late, noisy_runs, values

from grokscope.errors import InputError
from grokscope.law import Ending, ForkedRun, FormName, constants_met, fit_censored, fit_law


def some_censored(seed: int) -> list[ForkedRun]:
    """Runs of a law whose budget of 2,600 steps cuts off the slow ones."""
    runs = noisy_runs(seed, draws=8, sigma=0.3)
    return [
        late(float(run.weight_decay), 2600, int(run.draw)) if (run.steps_to_grok or 0) > 2600 else run for run in runs
    ]


def test_table_9_is_met_by_constants_that_are_not_the_papers() -> None:
    # Seen every 500 steps, all five branches agree with one C/λ: the misfit at λ ≥ 4 is the looks', as the paper
    # says, and no floor can be seen in it. But 3,600 is not such a constant.
    low, high = constants_met(intervention()) or (math.nan, math.nan)
    assert (low, high) == (pytest.approx(2500), pytest.approx(3000))
    assert low < values(fit_censored(intervention()))[0] <= high


def test_frequent_evaluations_and_no_censoring_give_the_log_normal_fit() -> None:
    runs = [replace(run, cadence=0.01) for run in noisy_runs(9)]
    products = np.log([run.weight_decay * (run.steps_to_grok or 0) for run in runs])
    fit = fit_censored(runs)
    assert fit.parameters["constant"].value == pytest.approx(math.exp(products.mean()), rel=1e-4)
    assert fit.spread == pytest.approx(products.std(), rel=1e-4)
    assert fit.aic == pytest.approx(4 - 2 * fit.log_likelihood)


@pytest.mark.parametrize("seed", range(3))
def test_intervals_and_late_runs_give_scipys_censored_fit(seed: int) -> None:
    runs = some_censored(seed)
    assert any(run.ending is Ending.CENSORED for run in runs)
    seen = [run for run in runs if run.steps_to_grok is not None]
    intervals = [
        [math.log(run.weight_decay * (run.steps_to_grok - run.cadence)), math.log(run.weight_decay * run.steps_to_grok)]
        for run in seen
        if run.steps_to_grok is not None
    ]
    right = [math.log(run.weight_decay * run.watched) for run in runs if run.steps_to_grok is None]
    mean, deviation = scipy.stats.norm.fit(scipy.stats.CensoredData(interval=intervals, right=right))
    fit = fit_censored(runs)
    assert fit.parameters["constant"].value == pytest.approx(math.exp(mean), rel=1e-3)
    assert fit.spread == pytest.approx(deviation, rel=1e-3)


@pytest.mark.parametrize(
    ("form", "law", "expected"),
    [("power", lambda d: 3000 * d**-0.7, [3000, 0.7]), ("offset", lambda d: 3000 / d + 250, [3000, 250])],
)
def test_dropping_late_runs_bends_the_law_and_counting_them_does_not(
    form: FormName, law: Callable[..., float], expected: list[float]
) -> None:
    generator = np.random.default_rng(0)
    runs = []
    for draw, decay in itertools.product(range(150), (0.5, *DECAYS)):
        exact = law(decay) * math.exp(0.3 * generator.normal())
        seen = 100 * math.ceil(exact / 100)
        runs.append(grokked(decay, seen, draw) if seen <= 3500 else late(decay, 3500, draw))
    fit = fit_censored(runs, form)
    assert values(fit)[0] == pytest.approx(expected[0], rel=0.06)
    assert values(fit)[1] == pytest.approx(expected[1], rel=0.25)
    assert fit.spread == pytest.approx(0.3, rel=0.1)
    dropped = fit_law(runs, form)
    assert fit.predict(0.5) == pytest.approx(law(0.5), rel=0.06)
    assert dropped.predict(0.5) < 0.8 * law(0.5)


def test_the_truer_form_has_the_lower_aic() -> None:
    generator = np.random.default_rng(1)
    runs = [
        grokked(decay, 100 * math.ceil((3000 / decay + 600) * math.exp(0.1 * generator.normal()) / 100), draw)
        for draw, decay in itertools.product(range(12), DECAYS)
    ]
    plain, offset = (fit_censored(runs, form) for form in ("inverse", "offset"))
    assert offset.aic < plain.aic - 4
    assert offset.log_likelihood >= plain.log_likelihood


@pytest.mark.parametrize(("form", "name"), [("inverse", "constant"), ("power", "constant"), ("power", "exponent")])
def test_censored_intervals_leave_out_one_draw_at_a_time(form: FormName, name: str) -> None:
    runs = some_censored(3)
    found = fit_censored(runs, form).parameters[name]
    scale = math.log if name == "constant" else float
    others = [
        fit_censored([run for run in runs if run.draw != left_out], form).parameters[name].value
        for left_out in range(8)
    ]
    deviation = math.sqrt(7 / 8 * sum((scale(found.value) - scale(value)) ** 2 for value in others))
    half = scipy.stats.t.ppf(0.975, 7) * deviation
    expected = (scale(found.value) - half, scale(found.value) + half)
    assert (scale(found.low), scale(found.high)) == pytest.approx(expected, abs=1e-4)
    assert found.items == 8


def test_a_law_that_rests_on_one_draw_has_no_interval() -> None:
    alone = fit_censored(noisy_runs(1, draws=1)).parameters["constant"]
    assert math.isnan(alone.low)
    rests_on_one = [grokked(1.0, 3000), grokked(2.0, 1500), late(1.0, 7000, 1), late(2.0, 7000, 1)]
    assert math.isnan(fit_censored(rests_on_one, "power").parameters["exponent"].low)
    offset = fit_censored(noisy_runs(1), "offset").parameters["offset"]
    assert (math.isnan(offset.low), offset.items) == (True, 6)


def test_a_censored_law_needs_runs_that_grokked() -> None:
    with pytest.raises(InputError, match="inverse needs 1 values of λ"):
        fit_censored([late(1.0, 7000), late(2.0, 7000)])
    with pytest.raises(InputError, match="offset needs 2 values of λ"):
        fit_censored([grokked(1.0, 3000), late(2.0, 7000)], "offset")
    assert constants_met([grokked(1.0, 3000), grokked(2.0, 3000)]) is None
