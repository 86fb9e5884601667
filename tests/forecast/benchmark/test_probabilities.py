from math import inf, isnan, log

import numpy as np
from scipy.stats import expon

from grokscope.forecast import LEVELS, Forecast
from grokscope.forecast.benchmark.probabilities import brier, crps, inside_interval


def forecast(scale, horizon=1000):
    known = expon(scale=scale)
    return Forecast(0, float(known.cdf(horizon)), horizon, {level: float(known.ppf(level)) for level in LEVELS}, 1)


def test_the_true_distribution_has_the_lowest_scores_on_average():
    times = expon(scale=3000).rvs(150, random_state=0)
    means = {
        scale: (
            np.mean([crps(forecast(scale), int(time), True) for time in times]),
            np.mean([brier(forecast(scale), int(time), True, 10**6) for time in times]),
        )
        for scale in (1000, 2000, 3000, 4500, 9000)
    }
    for score in (0, 1):
        assert min(means, key=lambda scale: means[scale][score]) == 3000


def test_a_censored_run_counts_against_early_forecasts_only():
    assert crps(forecast(500), 5000, False) > crps(forecast(5000), 5000, False) > crps(forecast(50_000), 5000, False)
    never = Forecast(0, 0.0, 1000, dict.fromkeys(LEVELS, inf), 1)
    assert crps(never, 5000, False) == 0
    assert abs(crps(never, 5000, True) - log(100_000 / 5000)) < 0.15


def test_a_run_that_was_not_seen_to_the_horizon_does_not_count():
    assert isnan(brier(forecast(500), 300, True, budget=900))
    assert brier(Forecast(0, 1.0, 1000, {}, 1), 300, True, budget=1000) == 0


def test_intervals_hold_what_they_say():
    one = Forecast(100, 0.5, 10, {0.1: 50.0, 0.9: 500.0}, 1)
    assert [inside_interval(one, end, True) for end in (120, 150, 600, 601)] == [0, 1, 1, 0]
    assert isnan(inside_interval(one, 300, False))
    assert inside_interval(one, 700, False) == 0


def test_a_run_that_ended_before_an_interval_began_says_nothing_of_it():
    found = [
        inside_interval(Forecast(0, 0.5, 10, {0.1: low, 0.9: high}, 1), 300, False)
        for low, high in ((50.0, inf), (300.0, inf), (400.0, inf), (inf, inf), (50.0, 200.0), (50.0, 400.0))
    ]
    assert [None if isnan(one) else one for one in found] == [1, 1, None, None, 0, None]


def test_crps_of_steps_is_the_logarithm_between_them():
    """By hand: F leaps from 0 to 1 at 1,000; ∫ d log s from there to T, none after T; to a step of the grid."""
    sure = Forecast(0, 1.0, 1000, {0.0001: 999.999, 0.9999: 1000.0}, 1)
    spacing = log(100_000 / 25) / 79
    for ratio in (1.5, 3.0, 20.0):
        assert abs(crps(sure, int(1000 * ratio), True) - log(ratio)) <= spacing
        assert abs(crps(sure, int(1000 * ratio), False) - log(ratio)) <= spacing
        assert abs(crps(sure, int(1000 / ratio), True) - log(ratio)) <= spacing
    assert crps(sure, 900, False) == 0
