import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from grokscope.errors import InputError
from grokscope.stats import (
    bootstrap,
    cluster_means,
    clustered_bootstrap,
    correlation,
    holm,
    kaplan_meier,
    logrank,
    share,
    sign_test,
)
from paper_tables import ADDITION, CROSS, EXLOSS, TRANSFER

LEADS = [row.lead for row in ADDITION.values()]
PRIMES = [row.modulus for row in ADDITION.values()]
few = settings(max_examples=25, deadline=None)
numbers = st.lists(st.integers(-5, 5), min_size=1, max_size=12)
shares = st.lists(st.floats(0, 1), min_size=1, max_size=8)
# (time, whether the event came); few distinct times, so that ties and all of one kind occur
waits = st.lists(st.tuples(st.integers(-3, 6), st.booleans()), min_size=1, max_size=25)


def exact_mean_distribution(values: list[float]) -> dict[Fraction, Fraction]:
    """The distribution of a resample's mean, by adding one draw after another; nothing is drawn."""
    n = len(values)
    sums: dict[Fraction, Fraction] = {Fraction(0): Fraction(1)}
    for _ in range(n):
        longer: Counter[Fraction] = Counter()
        for total, chance in sums.items():
            for value in values:
                longer[total + Fraction(value)] += chance / n
        sums = dict(longer)
    return {total / n: chance for total, chance in sums.items()}


def exact_quantile(distribution: dict[Fraction, Fraction], level: float) -> float:
    below = Fraction(0)
    for value in sorted(distribution):
        below += distribution[value]
        if below >= Fraction(level):
            return float(value)
    raise AssertionError


# The paper's numbers


def test_the_printed_mean_leads_come_from_the_printed_tables() -> None:
    assert round(np.mean(LEADS)) == 1722
    assert cluster_means(LEADS, PRIMES).mean() == pytest.approx(1740)
    assert [row.grok - row.sync for row in CROSS.values()] == [row.lead for row in CROSS.values()]
    assert np.mean([lead for *_, lead in EXLOSS.values()]) == pytest.approx(-166.667, abs=1e-3)
    assert np.mean([lead for _, _, lead, _ in TRANSFER.values()]) == pytest.approx(2416.667, abs=1e-3)
    assert [grok - sync for grok, sync, _, _ in TRANSFER.values()] == [lead for _, _, lead, _ in TRANSFER.values()]


def test_the_printed_sign_tests() -> None:
    nine, six = sign_test(LEADS), sign_test([lead for _, _, lead, _ in TRANSFER.values()])
    assert (nine.positive, nine.p_value) == (9, 2 * 2.0**-9)
    assert (six.positive, six.p_value) == (6, 0.03125)
    # What the paper does not say: over its five primes nothing can be below this.
    assert sign_test(cluster_means(LEADS, PRIMES)).p_value == 0.0625
    # Its restricted loss ties eight times of nine: one sign says nothing.
    exloss = sign_test([lead for *_, lead in EXLOSS.values()])
    assert (exloss.positive, exloss.negative, exloss.zero, exloss.p_value) == (0, 1, 8, 1.0)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_printed_intervals_are_percentile_bootstraps(seed: int) -> None:
    over_runs = bootstrap(LEADS, seed=seed)
    over_primes = clustered_bootstrap(LEADS, PRIMES, seed=seed)
    assert (round(over_runs.value), round(over_runs.low), round(over_runs.high)) == (1722, 1111, 2333)
    assert (round(over_primes.value), round(over_primes.low), round(over_primes.high)) == (1740, 1240, 2400)
    assert (over_runs.items, over_primes.items) == (9, 5)


@pytest.mark.parametrize(
    ("values", "grid", "printed"),
    [(LEADS, Fraction(500, 9), (1111, 2333)), (cluster_means(LEADS, PRIMES).tolist(), Fraction(20), (1240, 2400))],
)
def test_the_printed_intervals_are_exact_points_of_their_grid(
    values: list[float], grid: Fraction, printed: tuple[int, int]
) -> None:
    # Means of resamples lie on a grid. Were the chance up to an end near 2.5 %, two seeds could give two ends: with
    # B = 10⁵ the nearest is 2.9 standard errors away, so about one seed in 500 prints 1,167 for 1,111.
    distribution = exact_mean_distribution([round(value) for value in values])
    assert all((value / grid).denominator == 1 for value in distribution)
    ends = [exact_quantile(distribution, level) for level in (0.025, 0.975)]
    assert [round(end) for end in ends] == list(printed)
    for end, level in zip(ends, (0.025, 0.975), strict=True):
        before = float(sum(chance for value, chance in distribution.items() if float(value) < end - 1e-6))
        until = float(sum(chance for value, chance in distribution.items() if float(value) <= end + 1e-6))
        error = 2.5 * math.sqrt(0.025 * 0.975 / 100_000)
        assert before < level - error
        assert until > level + error


# Sign test and Holm


@given(numbers)
@few
def test_the_sign_test_is_symmetric_and_equals_counting_all_signs(values: list[int]) -> None:
    found, turned = sign_test(values), sign_test([-value for value in values])
    assert found.p_value == turned.p_value
    assert (found.positive, found.negative, found.zero) == (turned.negative, turned.positive, turned.zero)
    decided = [value for value in values if value != 0]
    distance = abs(2 * sum(value > 0 for value in decided) - len(decided))
    ways = [abs(2 * sum(signs) - len(decided)) >= distance for signs in itertools.product((0, 1), repeat=len(decided))]
    assert found.p_value == pytest.approx(sum(ways) / len(ways))
    assert found.zero == len(values) - len(decided)


def test_infinite_values_have_a_sign_and_nan_has_none() -> None:
    assert sign_test([math.inf, -math.inf, 0.0]).p_value == 1.0
    assert sign_test([-math.inf] * 6).p_value == 0.03125
    with pytest.raises(InputError, match="got nan at place 1"):
        sign_test([1.0, math.nan])


@given(shares)
@few
def test_holm_equals_the_step_down_rule_and_only_raises(p_values: list[float]) -> None:
    found = holm(p_values)
    assert np.all(found >= np.array(p_values) - 1e-15)
    assert found.max() <= 1
    for significance in (0.01, 0.05, 0.2, 0.5):
        # Holm's own words: reject from the smallest on, until one is above significance/(tests left).
        rejected = set()
        for rank, place in enumerate(sorted(range(len(p_values)), key=lambda i: (p_values[i], i))):
            if p_values[place] * (len(p_values) - rank) > significance:
                break
            rejected.add(place)
        assert {int(i) for i in np.flatnonzero(found <= significance)} == rejected


def test_holm_refuses_what_is_no_p_value() -> None:
    assert holm([]).tolist() == []
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        holm([0.5, 1.5])


# Bootstrap


def test_the_bootstrap_equals_a_plain_loop_up_to_chance() -> None:
    values = np.random.default_rng(3).exponential(size=30)
    generator = np.random.default_rng(8)
    medians = [np.median(generator.choice(values, size=30)) for _ in range(20_000)]
    found = bootstrap(values, np.median, seed=5, resamples=20_000, level=0.8)
    assert found.value == np.median(values)
    assert found.low == pytest.approx(np.quantile(medians, 0.1), abs=0.02)
    assert found.high == pytest.approx(np.quantile(medians, 0.9), abs=0.02)


def test_large_samples_are_drawn_in_parts() -> None:
    values = np.random.default_rng(0).normal(size=100_000)
    found = bootstrap(values, seed=0, resamples=300)
    width = 2 * 1.96 * values.std() / math.sqrt(len(values))
    assert found.high - found.low == pytest.approx(width, rel=0.25)


def test_a_seed_gives_the_same_interval_and_another_a_different_one() -> None:
    values = np.random.default_rng(1).normal(size=12)
    first, again, other = (bootstrap(values, seed=seed, resamples=500) for seed in (4, 4, 5))
    assert first == again
    assert first != other


@given(st.lists(st.integers(-100, 100), min_size=2, max_size=6), st.integers(-50, 50), st.integers(1, 7))
@few
def test_intervals_move_and_stretch_with_the_values(values: list[int], shift: int, factor: int) -> None:
    plain = bootstrap(values, seed=0, resamples=200)
    moved = bootstrap([factor * value + shift for value in values], seed=0, resamples=200)
    assert (moved.value, moved.low, moved.high) == pytest.approx(
        tuple(factor * end + shift for end in (plain.value, plain.low, plain.high))
    )


def test_one_item_has_no_interval_and_none_no_mean() -> None:
    alone = bootstrap([5.0], seed=0)
    assert alone.value == 5
    assert math.isnan(alone.low)
    assert math.isnan(alone.high)
    assert math.isnan(clustered_bootstrap([1, 2, 3], [97, 97, 97], seed=0).low)
    with pytest.raises(InputError, match="at least one"):
        bootstrap([], seed=0)
    with pytest.raises(InputError, match="level"):
        bootstrap([1, 2], seed=0, level=1.5)


@given(st.lists(st.tuples(st.integers(-9, 9), st.sampled_from("abc")), min_size=1, max_size=10))
@few
def test_cluster_means_equal_a_loop(pairs: list[tuple[int, str]]) -> None:
    values, clusters = [value for value, _ in pairs], [cluster for _, cluster in pairs]
    expected = []
    for name in sorted(set(clusters), key=clusters.index):
        members = [value for value, cluster in pairs if cluster == name]
        expected.append(sum(members) / len(members))
    assert cluster_means(values, clusters).tolist() == pytest.approx(expected)


def test_columns_must_pair() -> None:
    with pytest.raises(InputError, match="equally long"):
        cluster_means([1, 2], ["a"])
    with pytest.raises(InputError, match="equally long"):
        kaplan_meier([1, 2], [True])


# Shares and correlation


@pytest.mark.parametrize(("successes", "trials"), [(0, 3), (3, 3), (2, 5), (31, 32)])
def test_shares_have_clopper_pearson_intervals(successes: int, trials: int) -> None:
    found = share(successes, trials, 0.9)
    # By definition: the ends are where what was seen, or more extreme, has a chance of 5 %.
    if successes:
        assert scipy.stats.binom.sf(successes - 1, trials, found.low) == pytest.approx(0.05)
    else:
        assert found.low == 0
    if successes < trials:
        assert scipy.stats.binom.cdf(successes, trials, found.high) == pytest.approx(0.05)
    else:
        assert found.high == 1
    assert (found.value, found.items, found.level) == (successes / trials, trials, 0.9)


def test_a_share_of_nothing_is_unknown() -> None:
    nothing = share(0, 0)
    assert math.isnan(nothing.value)
    assert (nothing.low, nothing.high) == (0, 1)
    with pytest.raises(InputError, match=r"\[0, 3\], got 4"):
        share(4, 3)


def test_correlation_equals_its_formula() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=20)
    y = 0.6 * x + generator.normal(size=20)
    found = correlation(x, y)
    r = ((x - x.mean()) * (y - y.mean())).mean() / (x.std() * y.std())
    ends = [math.tanh(math.atanh(r) + sign * 1.959963984540054 / math.sqrt(17)) for sign in (-1, 1)]
    assert (found.value, found.low, found.high) == pytest.approx((r, *ends))


def test_correlation_without_variation_or_room() -> None:
    assert math.isnan(correlation([1, 1, 1, 1], [1, 2, 3, 4]).value)
    assert math.isnan(correlation([1], [2]).value)
    three = correlation([1, 2, 3], [1, 2, 4])
    assert (three.low, three.high) == (-1, 1)


# Censored times


def product_limit(pairs: list[tuple[int, bool]], time: float) -> float:
    """S(time) straight from its definition."""
    survival = 1.0
    for at in sorted({t for t, came in pairs if came and t <= time}):
        waiting = sum(t >= at for t, _ in pairs)
        survival *= 1 - sum(t == at and came for t, came in pairs) / waiting
    return survival


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


def test_the_band_is_scipys_greenwood_band() -> None:
    generator = np.random.default_rng(2)
    times, came = generator.integers(1, 40, size=50), generator.random(50) < 0.7
    times[-1], came[-1] = 50, False  # the last is censored, so that S stays above zero
    found = kaplan_meier(times, came, level=0.9)
    survival = scipy.stats.ecdf(scipy.stats.CensoredData.right_censored(times, ~came)).sf
    band = survival.confidence_interval(0.9, method="log-log")
    np.testing.assert_allclose(found.low, band.low.evaluate(found.times))
    np.testing.assert_allclose(found.high, band.high.evaluate(found.times))


def test_the_median_and_its_interval_are_where_the_curves_cross_a_half() -> None:
    # Freireich's 6-MP arm: median 23 weeks; the log-log band crosses a half at 13 and never.
    times = [6, 6, 6, 7, 10, 13, 16, 22, 23, 6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    found = kaplan_meier(times, [True] * 9 + [False] * 12)
    assert [round(value, 3) for value in found.survival] == [0.857, 0.807, 0.753, 0.69, 0.627, 0.538, 0.448]
    assert (found.median.value, found.median.low, found.median.high) == (23, 13, math.inf)
    placebo = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]
    median = kaplan_meier(placebo, [True] * 21).median
    assert (median.value, median.low, median.high) == (8, 4, 11)


def test_a_curve_that_does_not_reach_a_half_has_no_median() -> None:
    assert kaplan_meier([1, 2, 3], [True, False, False]).median.value == math.inf
    assert kaplan_meier([1, 2], [False, False]).median.value == math.inf
    alone = kaplan_meier([7], [True])
    assert (alone.median.value, alone.median.low, alone.median.high) == (7, 7, math.inf)
    with pytest.raises(InputError, match="at least one"):
        kaplan_meier([], [])


def test_a_median_lead_counts_runs_that_never_synchronised() -> None:
    # Table 11's Z_p control: two seeds never synchronise. Dropped, the median lead would be −1,450; it is lower.
    lags = [-lead if lead is not None else 10_000 for *_, lead in TRANSFER.values()]
    came = [lead is not None for *_, lead in TRANSFER.values()]
    assert np.median([lag for lag, c in zip(lags, came, strict=True) if c]) == 1450
    assert kaplan_meier(lags, came).median.value == 2200


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
