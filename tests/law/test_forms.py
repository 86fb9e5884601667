"""The forms of the law."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from law_cases import DECAYS, cells, few, grokked, intervention, mean_steps, noisy_runs, values

from grokscope.errors import InputError
from grokscope.law import FormName, first_passage_steps, fit_law


@given(cells)
@few
def test_forms_equal_library_fits(table: dict[float, int]) -> None:
    runs = [grokked(decay, 100 * steps) for decay, steps in table.items()]
    decays, steps = mean_steps(runs)
    assert values(fit_law(runs, "mean")) == pytest.approx([np.mean(decays * steps)])
    [constant], *_ = np.linalg.lstsq(1 / decays[:, None], steps, rcond=None)
    assert values(fit_law(runs, "inverse")) == pytest.approx([constant])
    line = np.polyfit(1 / decays, steps, 1)
    assert values(fit_law(runs, "offset")) == pytest.approx(line.tolist(), abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_free_exponent_equals_curve_fit(seed: int) -> None:
    runs = noisy_runs(seed)
    decays, steps = mean_steps(runs)
    expected, _ = scipy.optimize.curve_fit(
        lambda x, c, a: c * x**-a, decays, steps, p0=[3000, 1], xtol=1e-14, ftol=1e-14
    )
    assert values(fit_law(runs, "power")) == pytest.approx(expected.tolist(), rel=1e-5)


@pytest.mark.parametrize(
    ("form", "law", "expected"),
    [
        ("mean", lambda decay, norm: 3000 / decay, [3000]),
        ("inverse", lambda decay, norm: 3000 / decay, [3000]),
        ("power", lambda decay, norm: 3000 * decay**-0.7, [3000, 0.7]),
        ("offset", lambda decay, norm: 3000 / decay + 250, [3000, 250]),
        ("first_passage", lambda decay, norm: math.log(norm / 23.5) / (0.2 * 1e-3 * decay), [0.2, 23.5]),
    ],
)
def test_an_exact_law_is_found_and_its_left_out_cells_are_predicted(
    form: FormName, law: Callable[..., float], expected: list[float]
) -> None:
    runs = [
        grokked(decay, law(decay, norm), task=task, norm_at_fork=norm)
        for (task, norm), decay in itertools.product({"add_mod53": 60.0, "add_mod97": 52.0}.items(), DECAYS)
    ]
    fit = fit_law(runs, form)
    assert values(fit) == pytest.approx(expected, rel=1e-6)
    assert fit.r_squared == pytest.approx(1)
    assert fit.left_out_error == pytest.approx(0, abs=1e-6)
    assert fit.predict(4.0, 55.0) == pytest.approx(law(4.0, 55.0), rel=1e-6)


def test_first_passage_with_a_known_threshold_explains_different_norms_with_one_parameter() -> None:
    norms = {0: 40.0, 1: 60.0, 2: 90.0}
    runs = [
        grokked(decay, first_passage_steps(norm, 23.5, decay, efficiency=0.25), draw, norm_at_fork=norm)
        for (draw, norm), decay in itertools.product(norms.items(), DECAYS)
    ]
    fit = fit_law(runs, "first_passage", threshold_norm=23.5)
    assert values(fit) == pytest.approx([0.25])
    # Averaged over draws the law still holds: log‖W‖ is averaged, not ‖W‖; so no draw left out moves it.
    assert (fit.parameters["efficiency"].low, fit.parameters["efficiency"].high) == pytest.approx((0.25, 0.25))
    assert fit.predict(2.0, 60.0) == pytest.approx(first_passage_steps(60.0, 23.5, 2.0, efficiency=0.25))


def test_a_threshold_is_not_identified_by_one_norm() -> None:
    # The paper's own remark (§6): any (‖W‖, τ) with the same ratio yields the same fit.
    with pytest.raises(InputError, match="2 parameters, which 5 cells do not determine"):
        fit_law(intervention(), "first_passage")
    with pytest.raises(InputError, match="norm_at_fork"):
        fit_law([grokked(1.0, 3000)], "first_passage", threshold_norm=23.5)


@given(cells, st.sampled_from(["mean", "inverse", "power", "offset"]), st.floats(0.1, 10), st.permutations(range(6)))
@few
def test_scaling_steps_scales_the_constant_and_nothing_else(
    table: dict[float, int], form: FormName, factor: float, order: list[int]
) -> None:
    plain = fit_law([grokked(decay, steps) for decay, steps in table.items()], form)
    rows = [list(table.items())[i] for i in order if i < len(table)]
    other = fit_law([grokked(decay, factor * steps) for decay, steps in rows], form)
    expected = [factor * plain.parameters["constant"].value]
    expected += [factor * value.value for name, value in plain.parameters.items() if name == "offset"]
    expected += [value.value for name, value in plain.parameters.items() if name == "exponent"]
    assert values(other) == pytest.approx(expected, rel=1e-4, abs=1e-6)
    if len(set(table.values())) > 1 and plain.r_squared < 0.999:
        assert other.r_squared == pytest.approx(plain.r_squared, abs=1e-6)
