"""Dips after grokking."""

from math import nan

import pytest
from hypothesis import given
from timeline_cases import shares

from grokscope.timeline import Dips, Outcome, dips_after, first_step, outcome


@pytest.mark.parametrize(
    ("grokked", "validation", "expected"),
    [
        (None, [0.1, 0.2, 0.1, 0.3], Dips(0, 0)),
        (100, [0.1, 1.0, 0.5, 1.0], Dips(0, 0)),  # one half is not below one half
        (100, [0.1, 1.0, 0.4, 1.0], Dips(1, 100)),
        (100, [0.1, 1.0, 0.4, 0.3], Dips(1, 100)),  # it has not recovered by the last evaluation
        (100, [0.1, 1.0, 1.0, 0.3], Dips(1, 0)),
        (0, [1.0, 0.1, 1.0, 0.3], Dips(2, 100)),
        (100, [0.1, 1.0, nan, 1.0], Dips(0, 0)),
    ],
)
def test_dips_are_counted_and_the_longest_is_measured(
    grokked: int | None, validation: list[float], expected: Dips
) -> None:
    assert dips_after(grokked, [0, 100, 200, 300], validation) == expected


@given(shares)
def test_a_run_has_dips_where_it_counts_as_unstable_after_grokking(validation: list[float]) -> None:
    steps = [100 * i for i in range(len(validation))]
    ended = outcome(steps, [1.0] * len(steps), validation, None)
    dips = dips_after(first_step(steps, validation, 0.95), steps, validation)
    assert (dips.count > 0) == (ended is Outcome.UNSTABLE_AFTER)
    assert dips.longest <= steps[-1]
