"""Laws fitted to cell means."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from law_cases import grokked, intervention, late, mean_steps, noisy_runs, values

from grokscope.errors import InputError
from grokscope.law import FormName, fit_each_draw, fit_law
from grokscope.law.forms import named_form
from paper_tables import CROSSPRIME, TIMING_FIT


def ways(mean: int, deviation: int, draws: int, sample: bool) -> bool:
    """Whether so many draws on the 100-step grid have this mean and standard deviation, both rounded."""
    grid = range(round(mean - 3 * deviation - 100, -2), round(mean + 3 * deviation + 101, -2), 100)
    for drawn in itertools.combinations_with_replacement(grid, draws):
        if round(np.mean(drawn)) == mean and round(np.std(drawn, ddof=int(sample))) == deviation:
            return True
    return False


def test_table_9_gives_back_its_constant_its_fit_and_every_row() -> None:
    fit = fit_law(intervention(), "mean")
    assert fit.parameters["constant"].value == pytest.approx(3600)
    assert round(fit.r_squared, 2) == 0.81
    printed = [row for row in TIMING_FIT.values() if row[0] is not None]
    assert fit.observed.tolist() == [observed for observed, _, _ in printed]
    assert fit.predicted.tolist() == pytest.approx([predicted for _, predicted, _ in printed])
    assert np.abs(fit.observed - fit.predicted).tolist() == pytest.approx([error for *_, error in printed])
    assert fit.predict(10.0) == pytest.approx(360)


def test_table_9s_stable_branches_are_met_exactly() -> None:
    stable = fit_law(intervention(marks=""), "mean")
    assert (values(stable), stable.r_squared) == ([3000], 1.0)


@pytest.mark.parametrize("modulus", CROSSPRIME)
def test_table_10_gives_back_its_constants_and_fits(modulus: int) -> None:
    means, constant, r_squared = CROSSPRIME[modulus]
    fit = fit_law([grokked(decay, mean) for decay, (mean, _) in means.items()], "mean")
    assert fit.parameters["constant"].value == pytest.approx(constant, abs=0.51)  # 2,727.5 is printed as 2,727
    assert round(fit.r_squared, 2) == r_squared
    least = fit_law([grokked(decay, mean) for decay, (mean, _) in means.items()], "inverse")
    assert abs(least.parameters["constant"].value - constant) > 40  # so the paper's is not least squares


def test_table_10s_2727_is_exact_once_667_is_two_thirds_of_a_thousand() -> None:
    means = {decay: mean for decay, (mean, _) in CROSSPRIME[97][0].items()} | {5.0: 2000 / 3}
    fit = fit_law([grokked(decay, mean) for decay, mean in means.items()], "mean")
    assert round(fit.parameters["constant"].value, 1) == 2727.1
    assert round(fit.predict(5.0)) == 545  # §6, (iii)


@pytest.mark.parametrize(
    ("modulus", "decay", "needs"),
    [
        *[(53, decay, {5}) for decay in (2.0, 3.0, 5.0)],
        *[(97, decay, {4}) for decay in (1.0, 2.0, 3.0)],
        (97, 5.0, {3}),
        (131, 1.0, {5}),
    ],
)
def test_table_10s_deviations_tell_how_many_draws_a_cell_has(modulus: int, decay: float, needs: set[int]) -> None:
    # "Five draws per cell" holds for 53 and 131, not for 97. The deviations are those of a population.
    mean, deviation = CROSSPRIME[modulus][0][decay]
    assert {draws for draws in (3, 4, 5) if ways(mean, deviation, draws, sample=False)} == needs
    if modulus != 97:
        assert not ways(mean, deviation, 5, sample=True)


def test_each_draw_and_cell_counts_as_the_paper_counts() -> None:
    # A cell with fewer draws has the same weight: means of cells, then the mean over cells.
    runs = noisy_runs(1)
    decays, steps = mean_steps(runs)
    fit = fit_law(runs, "mean")
    assert fit.observed.tolist() == pytest.approx(steps.tolist())
    assert values(fit) == pytest.approx([np.mean(decays * steps)])
    assert values(fit) != pytest.approx([np.mean([run.weight_decay * (run.steps_to_grok or 0) for run in runs])])


def test_fits_of_single_draws_are_those_of_their_runs() -> None:
    runs = noisy_runs(2)
    fits = fit_each_draw(runs)
    assert len(fits) == 6
    for (_, draw), fit in fits.items():
        decays, steps = mean_steps([run for run in runs if run.draw == draw])
        constant = np.mean(decays * steps)
        expected = 1 - ((steps - constant / decays) ** 2).sum() / ((steps - steps.mean()) ** 2).sum()
        assert fit.r_squared == pytest.approx(expected)
        assert math.isnan(fit.parameters["constant"].low)


@pytest.mark.parametrize("form", ["mean", "inverse", "power", "offset"])
def test_the_error_out_of_sample_equals_a_loop_over_cells(form: FormName) -> None:
    runs = noisy_runs(3)
    decays, steps = mean_steps(runs)
    errors = []
    for decay, mean in zip(decays, steps, strict=True):
        others = fit_law([run for run in runs if run.weight_decay != decay], form)
        errors.append(abs(others.predict(float(decay)) - mean) / mean)
    fit = fit_law(runs, form)
    assert fit.left_out_error == pytest.approx(np.mean(errors), rel=1e-6)
    assert fit.left_out_error > 0


def test_differences_of_aic_are_those_of_gaussian_likelihoods() -> None:
    runs = noisy_runs(4)
    _, steps = mean_steps(runs)
    found, expected = [], []
    for form in ("inverse", "offset"):
        fit = fit_law(runs, form)
        sigma = math.sqrt(((steps - fit.predicted) ** 2).mean())
        likelihood = scipy.stats.norm.logpdf(steps, fit.predicted, sigma).sum()
        expected.append(2 * (len(fit.parameters) + 1) - 2 * likelihood)
        found.append(fit.aic)
    assert found[1] - found[0] == pytest.approx(expected[1] - expected[0])


def test_intervals_leave_out_one_draw_at_a_time() -> None:
    runs = noisy_runs(5, draws=4)
    constants = []
    for left_out in range(4):
        decays, steps = mean_steps([run for run in runs if run.draw != left_out])
        constants.append(np.mean(decays * steps))
    found = fit_law(runs, "mean", level=0.8).parameters["constant"]
    deviation = math.sqrt(3 / 4 * sum((found.value - constant) ** 2 for constant in constants))
    half = scipy.stats.t.ppf(0.9, 3) * deviation
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half))
    assert found.items == 4


def test_draws_of_two_tasks_are_left_out_apart() -> None:
    one = [replace(run, task="add_mod53", draw=0) for run in noisy_runs(6, draws=1)]
    other = [replace(run, task="add_mod97") for run in noisy_runs(7)]
    fit = fit_law([*one, *other], "mean")
    assert math.isnan(fit.parameters["constant"].low)  # one task has a single draw: nothing can be said
    assert fit.tasks == ("add_mod53",) * 4 + ("add_mod97",) * 4
    both = fit_law([*(replace(run, task="add_mod53") for run in noisy_runs(8, draws=3)), *other], "mean")
    assert both.parameters["constant"].low < both.parameters["constant"].value < both.parameters["constant"].high
    assert both.parameters["constant"].items == 3


def test_laws_reject_what_they_cannot_fit() -> None:
    with pytest.raises(InputError, match="did you mean 'inverse'"):
        named_form("invers")
    with pytest.raises(InputError, match="for first_passage"):
        named_form("power", 23.5)
    with pytest.raises(InputError, match="2 parameters, which 1 cells"):
        fit_law([grokked(1.0, 3000), grokked(1.0, 3100, 1)], "power")
    with pytest.raises(InputError, match="got none of 1"):
        fit_law([late(1.0, 7000)], "mean")
    alone = fit_law([grokked(1.0, 3000)], "mean")
    assert math.isnan(alone.r_squared)
    assert math.isnan(alone.left_out_error)
