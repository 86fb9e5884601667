"""First steps at which a value reaches a threshold."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timeline_cases import few, log, shares

from grokscope.errors import InputError
from grokscope.timeline import first_step, first_step_below, level_step, timeline_of


@given(shares, st.floats(0, 1))
def test_first_step_equals_a_loop(values: list[float], at_least: float) -> None:
    steps = [100 * i for i in range(len(values))]
    expected = None
    for step, value in zip(steps, values, strict=True):
        if value >= at_least and expected is None:
            expected = step
    assert first_step(steps, values, at_least) == expected


def test_a_threshold_is_reached_by_being_met() -> None:
    assert first_step([0, 100, 200], [0.0, 0.95, 1.0], 0.95) == 100
    assert first_step([0, 100], [0.9499, 0.9499], 0.95) is None
    assert first_step([0, 100, 200], [0.2, 0.99, 0.1], 0.95) == 100  # that it falls again does not matter
    assert first_step([], [], 0.95) is None


def test_nan_reaches_nothing() -> None:
    assert first_step([0, 100, 200], [math.nan, math.nan, 1.0], 0.5) == 200
    assert first_step([0], [math.nan], -1.0) is None


def test_steps_and_values_must_pair() -> None:
    with pytest.raises(ValueError, match="zip"):
        first_step([0, 100], [0.1], 0.5)


@given(shares, st.floats(0, 1), st.integers(0, 4))
@few
def test_a_lasting_crossing_equals_a_loop(values: list[float], at_least: float, persistence: int) -> None:
    steps = [100 * i for i in range(len(values))]
    expected = None
    for i in range(len(values)):
        stays = all(j < len(values) and values[j] >= at_least for j in range(i, i + persistence + 1))
        if stays and expected is None:
            expected = steps[i]
    assert first_step(steps, values, at_least, persistence) == expected
    if persistence == 0:
        assert expected == first_step(steps, values, at_least)


@given(shares, st.floats(0, 1))
@few
def test_asking_for_more_persistence_never_makes_a_crossing_earlier(values: list[float], at_least: float) -> None:
    steps = [100 * i for i in range(len(values))]
    found = [first_step(steps, values, at_least, persistence) for persistence in range(5)]
    late = [math.inf if step is None else step for step in found]
    assert late == sorted(late)


def test_what_was_not_seen_to_last_has_not_lasted() -> None:
    assert first_step([0, 100, 200], [0.1, 0.2, 0.9], 0.8, persistence=1) is None
    assert first_step([0, 100, 200], [0.9, math.nan, 0.9], 0.8, persistence=1) is None
    with pytest.raises(InputError, match="persistence must be at least 0, got -1"):
        first_step([0], [1.0], 0.5, persistence=-1)


@given(shares, st.floats(0, 1), st.integers(0, 2))
@few
def test_falling_to_a_threshold_is_rising_to_it_upside_down(
    values: list[float], at_most: float, persistence: int
) -> None:
    steps = [100 * i for i in range(len(values))]
    below = [1.0 if value <= at_most else 0.0 for value in values]
    assert first_step_below(steps, values, at_most, persistence) == first_step(steps, below, 1.0, persistence)


def test_nan_falls_to_nothing() -> None:
    assert first_step_below([0, 100], [math.nan, 0.5], 0.5) == 100


def test_the_post_grokking_level_is_a_share_of_the_later_mean() -> None:
    steps = [0, 500, 1000, 1500, 2000]
    # After 1,000 the mean is 0.9: the level is 0.855.
    assert level_step(steps, [0.1, 0.86, 0.85, 0.8, 1.0], 1000) == 500
    assert level_step(steps, [0.1, 0.85, 0.854, 0.8, 1.0], 1000) == 2000
    assert level_step(steps, [0.1, 0.85, 0.9, math.nan, 0.9], 1000) == 1000
    assert level_step(steps, [0.1, 0.86, 0.9, 0.8, 1.0], None) is None
    assert level_step(steps, [0.1, 0.86, 0.9, 0.8, 1.0], 2000) is None


def test_the_level_may_be_below_the_threshold_of_synchronisation() -> None:
    columns = log(validation_accuracy=[0.1, 0.2, 0.3, 1.0, 1.0], fsd=[0.1, 0.2, 0.6, 0.62, 0.62])
    found = timeline_of(columns)
    assert (found.sync.step, found.level.step) == (None, 1000)
    assert found.level.lead.steps == 500
