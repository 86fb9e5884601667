from math import inf

import numpy as np
from scipy.stats import expon

from grokscope.forecast import LEVELS, Prefix
from grokscope.forecast.survival import LEFT, forecasts_from

RUN = Prefix(np.array([0, 100]), {})


def test_gives_back_the_quantiles_and_probabilities_of_a_known_distribution():
    known = expon(scale=3000)
    [found] = forecasts_from([RUN], known.sf(LEFT)[None], 1234, tier=0)
    assert np.allclose([found.quantiles[level] for level in LEVELS], known.ppf(LEVELS), rtol=0.01)
    assert abs(found.probability - known.cdf(1234)) < 0.01


def test_never_is_infinite_and_already_is_zero():
    never, at_once = np.full(len(LEFT), 0.7), np.zeros(len(LEFT))
    found = forecasts_from([RUN, RUN], np.stack([never, at_once]), 1000, tier=0)
    assert found[0].median == inf
    assert abs(found[0].probability - 0.3) < 1e-12
    assert (found[1].median, found[1].probability) == (0.0, 1.0)


def test_a_run_that_has_grokked_is_certain():
    run = Prefix(np.array([0, 100]), {"validation_accuracy": np.array([0.0, 1.0])})
    [found] = forecasts_from([run], np.ones((1, len(LEFT))), 10, tier=0)
    assert (found.probability, found.median, found.grokked) == (1.0, 0.0, 100)
