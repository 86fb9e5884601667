"""Worlds drawn from our units: at none and all of n they follow Jeffreys' posterior, in between the bootstrap."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from grokscope.studies import Estimand, Selection, Stratum, rule
from grokscope.studies.estimand import Sample
from grokscope.studies.reduction import mean, total
from grokscope.studies.resampling import support_of

UNITS, DRAWN = 32, 6
RUNS = Selection(("base",))
SIX = Estimand(
    "six units",
    (Stratum("a", RUNS, DRAWN),),
    lambda record: {},
    {"yes": total("yes"), "share": mean("yes"), "size": mean("size")},
    "",
    ("share", ".0%"),
)
ALL, NONE = rule.more_than(1, "yes", operator="="), rule.equals(0, "yes")


def sample(count: int, units: int = UNITS) -> Sample:
    """So many units of which the first have it; their sizes are 1, 2, 3, …"""
    yes, size = (np.arange(units) < count).astype(float), np.arange(1.0, units + 1)
    return Sample({"a": tuple(f"a_s{i}" for i in range(units))}, {"a": {"yes": yes, "size": size}})


@pytest.mark.parametrize(("count", "shown"), [(UNITS, ALL), (0, NONE)])
def test_where_all_or_none_have_it_a_design_varies_as_jeffreys_posterior_says(
    count: int, shown: rule.Condition
) -> None:
    found = support_of(SIX, sample(count), shown)
    worlds = scipy.stats.beta(UNITS + 0.5, 0.5).rvs(100_000, random_state=0) ** DRAWN
    assert found.share.value == found.share.high == 1
    assert found.share.low == pytest.approx(np.quantile(worlds, 0.025), abs=0.08)
    assert np.mean(found.worlds) == pytest.approx(worlds.mean(), abs=0.02)


def test_in_between_half_units_change_little() -> None:
    worlds = np.array(support_of(SIX, sample(16), ALL).worlds)
    drawn = np.random.default_rng(0).binomial(UNITS, 0.5, 100_000) / UNITS
    assert worlds.mean() == pytest.approx(np.mean(drawn**DRAWN), abs=0.01)
    assert np.quantile(worlds, 0.975) == pytest.approx(np.quantile(drawn**DRAWN, 0.975), abs=0.03)


def test_of_all_units_a_share_of_none_is_not_certain_to_be_small() -> None:
    every = replace(SIX, strata=(Stratum("a", RUNS),))
    few, many = (support_of(every, sample(0, units), rule.at_most(0.05, "share")) for units in (16, 256))
    assert few.share.value == many.share.value == 1
    assert np.mean(np.array(few.worlds) >= 0.5) < 0.95  # 0 of 16 leaves 10 % possible
    assert np.mean(np.array(many.worlds) >= 0.5) > 0.98


def test_numbers_that_are_no_yes_or_no_are_drawn_as_they_are() -> None:
    support = support_of(SIX, sample(16), rule.between(1, UNITS, "size"))
    assert support.worlds == (1.0,) * len(support.worlds)
