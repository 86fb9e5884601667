"""Lines through intervals, all samples at once, against one general minimiser at a time."""

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from grokscope.law import ForkedRun, fit_censored
from grokscope.law.censored import _maxima, _searched_maximum, _times
from grokscope.law.newton import interval_log_likelihoods, most_likely_lines
from grokscope.timeline import Outcome


def intervals(seed: int, runs: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A line seen through intervals; some are open above, one below."""
    generator = np.random.default_rng(seed)
    x = generator.integers(0, 4, runs).astype(float)
    y = 2.0 - 0.5 * x + 0.3 * generator.normal(size=runs)
    after, until = np.floor(y * 5) / 5, np.floor(y * 5) / 5 + 0.2
    until[y > 2.2], after[0] = np.inf, -np.inf
    return np.column_stack([np.ones(runs), x]), after, until


@pytest.mark.parametrize("seed", range(4))
def test_lines_are_those_of_a_general_minimiser(seed: int) -> None:
    design, after, until = intervals(seed)
    weights = np.random.default_rng(seed).multinomial(len(after), np.full(len(after), 1 / len(after)), 3).astype(float)
    found = most_likely_lines(design, after, until, weights, np.array([0.5, 2.0, 0.0]))

    def cost(at: np.ndarray, weight: np.ndarray) -> float:
        normal = scipy.stats.norm(design @ at[1:], np.exp(at[0]))
        return -float(weight @ np.log(normal.cdf(until) - normal.cdf(after)))

    for row, weight in zip(found, weights, strict=True):
        start = np.array([np.log(0.4), 2.0, -0.4])
        one = scipy.optimize.minimize(cost, start, args=(weight,), method="Nelder-Mead", options={"xatol": 1e-8})
        assert row == pytest.approx([np.exp(one.x[0]), *one.x[1:]], abs=2e-4)


def test_far_tails_keep_their_logarithm() -> None:
    found = interval_log_likelihoods(np.array([40.0, -41.0]), np.array([41.0, -40.0]))
    assert found == pytest.approx([scipy.stats.norm.logsf(40)] * 2)


def test_samples_without_a_maximum_are_undefined_and_warn_of_nothing() -> None:
    """One interval, and none: σ falls to 0, or nothing is known."""
    design, after, until = np.ones((2, 1)), np.array([0.0, 5.0]), np.array([1.0, 6.0])
    weights = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    found = most_likely_lines(design, after, until, weights, np.array([1.0, 0.5]))
    assert found[2] == pytest.approx([2.4838, 3.0], abs=1e-3)
    assert np.isnan(found[0]).all() or found[0, 0] < 0.3


@pytest.mark.parametrize("form", ["inverse", "power"])
def test_laws_of_many_weightings_are_those_searched_one_by_one(form: str) -> None:
    generator = np.random.default_rng(7)
    runs = []
    for draw in range(6):
        for decay in (1.0, 2.0, 3.0, 5.0):
            steps = int(np.ceil(3000 / decay * np.exp(0.2 * generator.normal()) / 100)) * 100
            late = steps > 3400
            outcome = Outcome.NEVER if late else Outcome.GROKKED
            runs.append(ForkedRun(decay, None if late else steps, outcome, 100, 3400, draw))
    times = _times(runs)
    weights = generator.multinomial(len(runs), np.full(len(runs), 1 / len(runs)), 5).astype(float)
    best = np.array([np.log(0.2), np.log(3000), *([] if form == "inverse" else [1.0])])
    found = _maxima(form, times, weights)  # type: ignore[arg-type]
    for row, weight in zip(found, weights, strict=True):
        assert row == pytest.approx(_searched_maximum(form, times, weight, best), abs=1e-4)  # type: ignore[arg-type]
    fit = fit_censored(runs, form)  # type: ignore[arg-type]
    assert fit.parameters["constant"].low < fit.parameters["constant"].value < fit.parameters["constant"].high
