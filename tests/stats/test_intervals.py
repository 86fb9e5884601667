"""Bootstrap, shares and correlation."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from stats_cases import LEADS, PRIMES, few

from grokscope.errors import InputError
from grokscope.stats import bootstrap, cluster_means, clustered_bootstrap, correlation, share, share_that
from paper_tables import CROSS, EXLOSS, TRANSFER


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


def test_the_printed_mean_leads_come_from_the_printed_tables() -> None:
    assert round(np.mean(LEADS)) == 1722
    assert cluster_means(LEADS, PRIMES).mean() == pytest.approx(1740)
    assert [row.grok - row.sync for row in CROSS.values()] == [row.lead for row in CROSS.values()]
    assert np.mean([lead for *_, lead in EXLOSS.values()]) == pytest.approx(-166.667, abs=1e-3)
    assert np.mean([lead for _, _, lead, _ in TRANSFER.values()]) == pytest.approx(2416.667, abs=1e-3)
    assert [grok - sync for grok, sync, _, _ in TRANSFER.values()] == [lead for _, _, lead, _ in TRANSFER.values()]


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
    assert share_that([]) is None
    assert share_that(x > 1 for x in (1, 2, 3)) == share(2, 3)
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
