"""Sign test and Holm."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stats_cases import LEADS, PRIMES, few

from grokscope.errors import InputError
from grokscope.stats import cluster_means, holm, sign_test
from paper_tables import EXLOSS, TRANSFER

numbers = st.lists(st.integers(-5, 5), min_size=1, max_size=12)
shares = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def test_the_printed_sign_tests() -> None:
    nine, six = sign_test(LEADS), sign_test([lead for _, _, lead, _ in TRANSFER.values()])
    assert (nine.positive, nine.p_value) == (9, 2 * 2.0**-9)
    assert (six.positive, six.p_value) == (6, 0.03125)
    # What the paper does not say: over its five primes nothing can be below this.
    assert sign_test(cluster_means(LEADS, PRIMES)).p_value == 0.0625
    # Its restricted loss ties eight times of nine: one sign says nothing.
    exloss = sign_test([lead for *_, lead in EXLOSS.values()])
    assert (exloss.positive, exloss.negative, exloss.zero, exloss.p_value) == (0, 1, 8, 1.0)


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


def test_holm_rejects_what_is_no_p_value() -> None:
    assert holm([]).tolist() == []
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        holm([0.5, 1.5])
