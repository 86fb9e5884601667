"""Reductions of many designs at once are those of each design alone, by other formulas."""

from math import inf, isnan, nan

import numpy as np
import pytest
import scipy.stats

from grokscope.studies import reduction
from grokscope.studies.reduction import Reduction, reduce_all

DRAW = np.random.default_rng(5)
X, Y = DRAW.normal(size=(2, 7, 9)).round(1)  # with ties
X[0, :3], X[1, :] = nan, nan


def reduced(part: Reduction, **columns: np.ndarray) -> np.ndarray:
    return np.asarray(reduce_all({"part": part}, {"a": columns})["part"])


@pytest.mark.parametrize(
    ("part", "by_hand"),
    [
        (reduction.total("x"), np.nansum),
        (reduction.mean("x"), lambda x: np.mean(x[~np.isnan(x)]) if len(x[~np.isnan(x)]) else nan),
        (reduction.median("x"), lambda x: np.median(x[~np.isnan(x)]) if len(x[~np.isnan(x)]) else nan),
        (reduction.spread("x"), lambda x: np.std(x[~np.isnan(x)]) if len(x[~np.isnan(x)]) else nan),
        (reduction.least("x"), lambda x: min(x[~np.isnan(x)], default=nan)),
        (reduction.greatest("x"), lambda x: max(x[~np.isnan(x)], default=nan)),
        (reduction.count("x"), lambda x: (~np.isnan(x)).sum()),
    ],
    ids=lambda one: getattr(one, "how", ""),
)
def test_each_is_what_numpy_gives_of_the_known_numbers(part: Reduction, by_hand: object) -> None:
    found = reduced(part, x=X)
    for row, value in zip(X, found, strict=True):
        assert value == pytest.approx(by_hand(row), nan_ok=True)  # type: ignore[operator]


def test_intervals_are_those_of_a_t_test() -> None:
    low, high = (reduced(one("x"), x=X) for one in (reduction.mean_low, reduction.mean_high))
    for row, *ends in zip(X, low, high, strict=True):
        known = row[~np.isnan(row)]
        if len(known) > 1:
            interval = scipy.stats.ttest_1samp(known, 0).confidence_interval(0.95)
            assert ends == pytest.approx([interval.low, interval.high])
    assert isnan(reduced(reduction.mean_low("x"), x=np.array([1.0])))


def test_correlations_are_spearmans_with_ties() -> None:
    found = reduced(reduction.rank_correlation("x", "y"), x=X, y=Y)
    for x, y, value in zip(X, Y, found, strict=True):
        known = ~np.isnan(x)
        if known.sum() > 2:
            assert value == pytest.approx(scipy.stats.spearmanr(x[known], y[known]).statistic)
    assert isnan(found[1])


def test_a_share_beyond_chance_is_that_over_pairs_of_different_units() -> None:
    x, y = np.array([1.0, 5.0, 3.0, inf]), np.array([2.0, 4.0, 6.0, 8.0])
    own = np.mean(x < y)
    others = np.mean([a < b for i, a in enumerate(x) for j, b in enumerate(y) if i != j])
    assert reduced(reduction.share_beyond_chance("x", "y"), x=x, y=y) == pytest.approx(own - others)


def test_a_step_that_was_never_reached_is_later_than_all_others() -> None:
    steps = np.array([[100.0, inf, 300.0], [inf, inf, 1.0]])
    assert reduced(reduction.median("x"), x=steps).tolist() == [300.0, inf]


def test_strata_count_once_each_and_can_be_chosen() -> None:
    values = {"a": {"x": np.array([1.0, 1.0, 1.0])}, "b": {"x": np.array([5.0])}, "c": {"y": np.array([9.0])}}
    parts = {"over all": reduction.mean("x"), "b": reduction.mean("x", "b"), "strata": reduction.strata_mean("x")}
    found = reduce_all(parts | {"low": reduction.strata_low("x"), "none": reduction.mean("z")}, values)
    assert (found["over all"], found["b"], found["strata"], found["n"]) == (2.0, 5.0, 3.0, 5)
    assert found["low"] < 3
    assert isnan(found["none"])


def test_reductions_that_differ_are_described_differently() -> None:
    one = [
        getattr(reduction, name)("x") for name in ("total", "count", "mean", "median", "least", "greatest", "spread")
    ]
    one += [reduction.mean("y"), reduction.mean("x", "a"), reduction.rank_correlation("x", "y")]
    assert len({part.describe() for part in one}) == len(one)
