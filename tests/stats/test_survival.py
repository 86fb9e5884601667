"""Kaplan–Meier and log-rank."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from stats_cases import few

from grokscope.errors import InputError
from grokscope.stats import estimate_median, kaplan_meier, logrank, median_time, share
from paper_tables import TRANSFER

# (time, whether the event came); few distinct times, so that ties and all of one kind occur
waits = st.lists(st.tuples(st.integers(-3, 6), st.booleans()), min_size=1, max_size=25)


def product_limit(pairs: list[tuple[int, bool]], time: float) -> float:
    """S(time) straight from its definition."""
    survival = 1.0
    for at in sorted({t for t, came in pairs if came and t <= time}):
        waiting = sum(t >= at for t, _ in pairs)
        survival *= 1 - sum(t == at and came for t, came in pairs) / waiting
    return survival


def textbook_logrank(pairs: list[tuple[int, bool]], groups: list[int]) -> tuple[float, int]:
    """χ² from a loop over event times, the last group left out, as books do."""
    names = sorted(set(groups))
    z, v = np.zeros(len(names)), np.zeros((len(names), len(names)))
    for at in sorted({t for t, came in pairs if came}):
        n = np.array([sum(t >= at and g == name for (t, _), g in zip(pairs, groups, strict=True)) for name in names])
        d = np.array(
            [sum((t, c, g) == (at, True, name) for (t, c), g in zip(pairs, groups, strict=True)) for name in names]
        )
        z += d - d.sum() * n / n.sum()
        if n.sum() > 1:
            factor = d.sum() * (n.sum() - d.sum()) / (n.sum() - 1)
            v += factor * (np.diag(n / n.sum()) - np.outer(n, n) / n.sum() ** 2)
    return float(z[:-1] @ np.linalg.solve(v[:-1, :-1], z[:-1])), len(names) - 1


@given(waits)
@few
def test_kaplan_meier_equals_its_definition_and_scipy(pairs: list[tuple[int, bool]]) -> None:
    times, came = [t for t, _ in pairs], [c for _, c in pairs]
    found = kaplan_meier(times, came)
    data = scipy.stats.CensoredData.right_censored(times, [not c for c in came])
    for time in range(-4, 8):
        assert found.at(time) == pytest.approx(product_limit(pairs, time), abs=1e-12)
        assert found.at(time) == pytest.approx(float(scipy.stats.ecdf(data).sf.evaluate(time)), abs=1e-12)
    assert found.events.sum() + found.censored == len(pairs)
    assert found.at_risk.tolist() == [sum(t >= at for t in times) for at in found.times]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=20))
@few
def test_without_censoring_it_is_the_share_still_waiting(times: list[int]) -> None:
    found = kaplan_meier(times, [True] * len(times))
    for time in range(-1, 8):
        assert found.at(time) == pytest.approx(sum(t > time for t in times) / len(times), abs=1e-12)
    assert found.median.value == sorted(times)[(len(times) - 1) // 2]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20, unique=True))
@few
def test_without_censoring_the_band_is_clopper_and_pearsons(times: list[int]) -> None:
    found = kaplan_meier(times, [True] * len(times), level=0.9)
    for time, low, high in zip(found.times, found.low, found.high, strict=True):
        expected = share(sum(bool(t > time) for t in times), len(times), 0.9)
        assert (low, high) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_the_band_has_the_moments_of_a_product_of_betas() -> None:
    # Drawn: the product over events of Beta(at risk, 1), and for the lower end one more of the runs that are left.
    when, came = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), np.array([True, False, True, True, False, True, False])
    found = kaplan_meier(when, came)
    generator = np.random.default_rng(1)
    draws = [generator.beta(at_risk, 1, 200_000) for at_risk in (7, 5, 4, 2)]
    for place, left in enumerate((6, 4, 3, 1)):
        product = np.prod(draws[: place + 1], axis=0)
        assert found.high[place] == pytest.approx(np.quantile(product, 0.975), abs=0.01)
        lower = product * generator.beta(left, 1, 200_000)
        assert found.low[place] == pytest.approx(np.quantile(lower, 0.025), abs=0.01)


def test_a_median_lies_between_order_statistics() -> None:
    # Hettmansperger and Sheather (1986): of ten values, [x₂, x₉] covers 97.9 % and [x₃, x₈] 89.1 %.
    values = [3.0, 14.0, 15.0, 26.0, 35.0, 58.0, 79.0, 89.0, 93.0, 97.0]
    found = estimate_median(values)
    part = (0.978516 - 0.95) / (0.978516 - 0.890625)
    weight = 8 * part / (2 + 6 * part)
    ends = (14 + weight * (15 - 14), 93 - weight * (93 - 89))
    assert (found.value, found.items) == (46.5, 10)
    assert (found.low, found.high) == (pytest.approx(ends[0], abs=1e-4), pytest.approx(ends[1], abs=1e-4))
    mirrored = estimate_median([-value for value in values])
    assert (mirrored.low, mirrored.high) == (pytest.approx(-found.high), pytest.approx(-found.low))
    assert math.isnan(estimate_median(values[:5]).low)  # even the extremes of five values cover only 93.75 %
    with pytest.raises(InputError, match="at least one"):
        estimate_median([])


@pytest.mark.parametrize("is_censored", [False, True])
def test_eight_values_cover_their_median(is_censored: bool) -> None:
    generator = np.random.default_rng(6)
    covered = 0
    for _ in range(1500):
        times, limits = generator.normal(size=8), generator.normal(1.2, 1, size=8) if is_censored else math.inf
        median = kaplan_meier(np.minimum(times, limits), times <= limits).median
        covered += median.low <= 0 <= median.high
    assert 0.935 <= covered / 1500 <= 0.975  # an end that no event bounds leaves 97.5 %


def test_the_median_and_its_interval_are_where_the_curves_cross_a_half() -> None:
    # Freireich's 6-MP arm: median 23 weeks; no upper end, for too few events are left.
    times = [6, 6, 6, 7, 10, 13, 16, 22, 23, 6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    found = kaplan_meier(times, [True] * 9 + [False] * 12)
    assert [round(value, 3) for value in found.survival] == [0.857, 0.807, 0.753, 0.69, 0.627, 0.538, 0.448]
    assert (found.median.value, found.median.high) == (23, math.inf)
    assert 10 <= found.median.low <= 13
    placebo = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]
    median = kaplan_meier(placebo, [True] * 21).median
    assert (median.value, median.low) == (8, 4)
    assert 11 < median.high < 12  # between the 15th and the 16th of 21


def test_a_curve_that_does_not_reach_a_half_has_no_median() -> None:
    assert kaplan_meier([1, 2, 3], [True, False, False]).median.value == math.inf
    assert kaplan_meier([1, 2], [False, False]).median.value == math.inf
    alone = kaplan_meier([7], [True])
    assert alone.median.value == 7
    assert math.isnan(alone.median.low)
    assert math.isnan(alone.median.high)
    with pytest.raises(InputError, match="at least one"):
        kaplan_meier([], [])


def test_a_median_lead_counts_runs_that_never_synchronised() -> None:
    # Table 11's Z_p control: two seeds never synchronise. Dropped, the median lead would be −1,450; it is lower.
    lags = [-lead if lead is not None else 10_000 for *_, lead in TRANSFER.values()]
    came = [lead is not None for *_, lead in TRANSFER.values()]
    assert np.median([lag for lag, c in zip(lags, came, strict=True) if c]) == 1450
    assert kaplan_meier(lags, came).median.value == 2200


@pytest.mark.parametrize(("seed", "size"), [(0, 2), (1, 3), (2, 4)])
def test_logrank_equals_the_textbook(seed: int, size: int) -> None:
    generator = np.random.default_rng(seed)
    groups = generator.integers(0, size, size=40).tolist()
    times = (generator.exponential(size=40) * (1 + np.array(groups)) * 5).astype(int).tolist()
    came = (generator.random(40) < 0.8).tolist()
    found = logrank(times, came, groups)
    statistic, degrees = textbook_logrank(list(zip(times, came, strict=True)), groups)
    assert (found.statistic, found.degrees) == (pytest.approx(statistic), degrees)
    assert found.p_value == pytest.approx(scipy.stats.chi2.sf(statistic, degrees))
    assert sum(found.observed.values()) == sum(came)
    assert sum(found.expected.values()) == pytest.approx(sum(came))


def test_logrank_of_two_groups_is_scipys() -> None:
    generator = np.random.default_rng(9)
    times, came, groups = generator.exponential(size=30), generator.random(30) < 0.7, [0] * 15 + [1] * 15
    halves = [scipy.stats.CensoredData.right_censored(times[s], ~came[s]) for s in (slice(15), slice(15, 30))]
    theirs = scipy.stats.logrank(*halves)
    ours = logrank(times, came, groups)
    assert ours.statistic == pytest.approx(theirs.statistic**2)
    assert ours.p_value == pytest.approx(theirs.pvalue)


@given(waits, st.permutations(range(25)))
@few
def test_logrank_does_not_know_the_order_of_runs_or_groups(pairs: list[tuple[int, bool]], order: list[int]) -> None:
    pairs = [*pairs, (0, True), (1, False)]
    groups = [f"g{i % 3}" for i in range(len(pairs))]
    shuffled = [i for i in order if i < len(pairs)] + list(range(25, len(pairs)))
    columns = [[t for t, _ in pairs], [c for _, c in pairs], groups]
    plain = logrank(*columns)
    other = logrank(*[[values[i] for i in shuffled] for values in columns])
    assert other.degrees == plain.degrees
    assert other.p_value == pytest.approx(plain.p_value)
    assert other.observed == plain.observed


def test_groups_that_never_meet_cannot_be_compared() -> None:
    apart = logrank([1, 1, 5, 5], [False, False, True, True], ["a", "a", "b", "b"])
    assert math.isnan(apart.statistic)
    assert (apart.degrees, apart.p_value) == (0, 1.0)
    with pytest.raises(InputError, match="two groups, got 1"):
        logrank([1, 2], [True, True], ["a", "a"])


def test_two_groups_have_one_degree_of_freedom_in_either_order() -> None:
    """Rounding once gave two groups a second degree of freedom, which changed p and made it depend on the order."""
    draws = np.random.default_rng(5)
    for _ in range(300):
        sizes = draws.integers(3, 33, size=2)
        times = [100 * draws.integers(1, 151, size=size) for size in sizes]
        pooled, groups = np.concatenate(times), ["a"] * sizes[0] + ["b"] * sizes[1]
        found = logrank(pooled, [True] * len(pooled), groups)
        turned = logrank(pooled[::-1], [True] * len(pooled), groups[::-1])
        assert found.degrees == turned.degrees == 1
        assert found.p_value == pytest.approx(turned.p_value, rel=1e-9)
        assert found.p_value == pytest.approx(scipy.stats.logrank(*times).pvalue, rel=1e-9)


def test_a_time_that_was_not_reached_is_later_than_all_others() -> None:
    assert median_time([200, None, 100, 300]) == 250
    assert median_time([200, None, None]) == math.inf
    assert math.isnan(median_time([]))
