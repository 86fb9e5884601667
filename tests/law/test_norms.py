"""The norm at which runs grok, and how fast it falls."""

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from law_cases import few, intervention

from grokscope.errors import InputError
from grokscope.law import first_passage_steps, fit_law, norm_decay, threshold_norm
from paper_tables import FORK_NORM, RANK, THRESHOLD_NORM


def test_eq_3_needs_the_learning_rate_and_a_fifth_of_it() -> None:
    # As printed, with e^{−λt}, Eq. 3 gives less than one step.
    assert math.log(FORK_NORM / THRESHOLD_NORM) == pytest.approx(0.793, abs=1e-3)
    assert first_passage_steps(FORK_NORM, THRESHOLD_NORM, weight_decay=1.0) == pytest.approx(793, abs=1)
    fit = fit_law(intervention(), "first_passage", threshold_norm=THRESHOLD_NORM)
    constant = fit_law(intervention(), "inverse").parameters["constant"].value
    efficiency = fit.parameters["efficiency"].value
    assert efficiency == pytest.approx(1000 * math.log(FORK_NORM / THRESHOLD_NORM) / constant)
    assert first_passage_steps(FORK_NORM, THRESHOLD_NORM, 1.0, efficiency=0.22) == pytest.approx(3600, abs=10)
    along = [row for row in RANK if 1000 <= row[0] <= 4000]
    decay = norm_decay([row[0] for row in along], [row[3] for row in along], weight_decay=1.0)
    assert round(decay.efficiency, 2) == 0.25  # printed: ≈ 0.2, for forks whose norms are not printed
    assert efficiency == pytest.approx(decay.efficiency, rel=0.05)


def test_a_norm_that_decays_exactly_has_its_rate() -> None:
    steps = np.arange(1000, 4000, 100)
    found = norm_decay(steps, 52 * np.exp(-0.2 * 1e-3 * 3.0 * (steps - 1000)), weight_decay=3.0)
    assert (found.rate, found.efficiency, found.r_squared) == pytest.approx((6e-4, 0.2, 1.0))


def test_a_decay_rate_is_numpys_slope() -> None:
    generator = np.random.default_rng(0)
    steps, norms = np.arange(20) * 100, np.exp(generator.normal(size=20))
    found = norm_decay(steps, norms, weight_decay=2.0, learning_rate=0.01)
    assert found.rate == pytest.approx(-np.polyfit(steps, np.log(norms), 1)[0])
    assert found.efficiency == pytest.approx(found.rate / 0.02)
    assert found.r_squared == pytest.approx(np.corrcoef(steps, np.log(norms))[0, 1] ** 2)


def test_rates_and_passages_reject_what_has_none() -> None:
    assert math.isnan(norm_decay([0, 100], [5.0, 5.0], 1.0).r_squared)
    with pytest.raises(InputError, match="two steps"):
        norm_decay([100], [5.0], 1.0)
    with pytest.raises(InputError, match="norms must be numbers"):
        norm_decay([100, 200], [5.0, math.nan], 1.0)
    with pytest.raises(InputError, match="no norm decays"):
        first_passage_steps(50.0, 20.0, 0.0)
    with pytest.raises(InputError, match="threshold_norm must be positive"):
        first_passage_steps(50.0, 0.0, 1.0)


@given(st.lists(st.floats(1, 100), min_size=2, max_size=8), st.floats(0.1, 10))
@few
def test_the_variation_of_norms_does_not_know_their_unit(norms: list[float], factor: float) -> None:
    plain = threshold_norm(norms)
    scaled = threshold_norm([factor * norm for norm in norms])
    assert scaled.variation == pytest.approx(plain.variation, abs=1e-9)
    assert scaled.mean.value == pytest.approx(factor * plain.mean.value)
    assert plain.variation == pytest.approx(scipy.stats.variation(norms), abs=1e-12)
    with pytest.raises(InputError, match="positive"):
        threshold_norm([*norms, 0.0])
