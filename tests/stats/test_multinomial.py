from collections import Counter
from fractions import Fraction
from itertools import product
from math import comb, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope.stats.multinomial import critical_peak, peak_tail


def even(kinds: int) -> tuple[float, ...]:
    return (1 / kinds,) * kinds


@given(st.integers(1, 6), st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_the_tail_equals_counting_every_outcome(neurons: int, weights: list[int]) -> None:
    chances = [Fraction(weight, sum(weights)) for weight in weights]
    law: Counter[int] = Counter()
    for choice in product(range(len(weights)), repeat=neurons):
        law[max(Counter(choice).values())] += prod((chances[mode] for mode in choice), start=Fraction(1))
    for peak in range(neurons + 2):
        expected = float(sum(chance for count, chance in law.items() if count >= peak))
        assert peak_tail(peak, neurons, tuple(map(float, chances))) == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize(("neurons", "modes"), [(512, 48), (512, 6), (128, 65), (3, 2)])
def test_the_far_tail_keeps_its_digits(neurons: int, modes: int) -> None:
    # Past one half a single mode can hold the peak: then the tail is a sum of binomial ones.
    for peak in sorted({neurons // 2 + 1, neurons * 3 // 4, neurons}):
        terms = (comb(neurons, count) * (modes - 1) ** (neurons - count) for count in range(peak, neurons + 1))
        exact = Fraction(modes * sum(terms), modes**neurons)
        assert peak_tail(peak, neurons, even(modes)) == pytest.approx(float(exact), rel=1e-10, abs=1e-300)


def test_the_critical_peak_is_the_least() -> None:
    for neurons, modes in ((512, 48), (64, 6), (10, 3)):
        peak = critical_peak(neurons, even(modes))
        assert peak_tail(peak, neurons, even(modes)) <= 0.05 < peak_tail(peak - 1, neurons, even(modes))
    assert critical_peak(2, even(2)) == 3  # two neurons can prove nothing
