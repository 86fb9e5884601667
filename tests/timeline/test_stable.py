"""The event *stable*, and whether a run that grokked stayed so."""

from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timeline_cases import log

from grokscope.specs import ReadingSpec
from grokscope.timeline import Stability, StabilityStatus, stability, timeline_of

STABLE, NOT, CENSORED, NEVER = (
    StabilityStatus.STABLE,
    StabilityStatus.NOT_STABLE,
    StabilityStatus.CENSORED,
    StabilityStatus.NO_GROKKING,
)
EVERY_500 = [500 * i for i in range(9)]


@pytest.mark.parametrize(
    ("validation", "expected"),
    [
        ([0, 0, 1, 1, 1, 1, 1, 0, 0], Stability(STABLE, 1000, 0, 0, 500)),  # what comes after 2,000 steps is no matter
        ([0, 0, 0.95, 0.95, 0.95, 0.95, 0.95, 1, 1], Stability(STABLE, 1000, 0, 0, 500)),
        ([0, 0, 1, 1, 1, 1, 0.94, 1, 1], Stability(NOT, None, 1, 0, 500, after=3000)),  # the window has both its ends
        ([0, 1, 0, 1, 1, 1, 1, 1, 1], Stability(NOT, 1500, 1, 500, 500)),  # it recovered, and then stayed
        ([0, 1, 0.9, 0.9, 1, 0, 1, 1, 1], Stability(NOT, None, 2, 1000, 500, after=2500)),
        ([0, 0, 0, 0, 0, 1, 1, 1, 1], Stability(CENSORED, None, 0, 0, 500, after=2000)),
        ([1, 1, 1, 1, 1, 0, 0, 0, 0], Stability(STABLE, 0, 0, 0, 500)),
        ([0, 0, 0, 0, 0, 0, 0, 0, 1], Stability(CENSORED, None, 0, 0, None, after=3500)),
        ([0] * 9, Stability(NEVER, after=4000)),
        ([0, 0, 1, nan, 1, 1, 1, 1, 1], Stability(STABLE, 1000, 0, 0, 1000)),  # not evaluated is no dip, and is told
    ],
)
def test_a_run_is_stable_if_every_evaluation_of_the_next_2000_steps_is(
    validation: list[float], expected: Stability
) -> None:
    assert stability(EVERY_500, validation) == expected


def test_a_run_that_ends_within_2000_steps_is_censored_unless_it_had_dipped_before() -> None:
    assert stability([0, 500, 1000, 1500], [0, 1, 1, 1]).status is CENSORED
    assert stability([0, 500, 1000, 1500], [0, 1, 0, 1]).status is NOT
    assert stability([0, 500, 1000, 1500], [0, 1, 1, 1], failed_at=1600).status is NOT
    assert stability([0, 500, 1000, 1500, 2000, 2500], [0, 1, 1, 1, 1, 1], failed_at=2600).status is STABLE


def test_evaluations_that_are_further_apart_than_2000_steps_show_nothing() -> None:
    assert stability([0, 5000, 10000], [0, 1, 1]) == Stability(CENSORED, None, 0, 0, 5000, after=0)


def test_the_time_is_that_of_the_event_or_the_last_known_to_be_none() -> None:
    assert stability(EVERY_500, [0, 1, 0, 1, 1, 1, 1, 1, 1]).time == (1500, True)
    assert stability(EVERY_500, [0, 1, 0, 1, 1, 1, 0, 1, 1]).time == (3000, False)
    assert stability([0, 500], [1, 1]).time is None  # it may have been stable from the start


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.sampled_from([50, 100, 300, 1000]))
def test_it_agrees_with_the_definition_read_word_by_word(validation: list[float], every: int) -> None:
    steps = [every * i for i in range(len(validation))]
    found = stability(steps, validation)

    def stays(begin: int) -> bool:
        window = [value for step, value in zip(steps, validation, strict=True) if begin <= step <= begin + 2000]
        return min(window) >= 0.95 and steps[-1] >= begin + 2000

    assert found.step == next((step for step in steps if stays(step)), None)
    grokked = next((step for step, value in zip(steps, validation, strict=True) if value >= 0.95), None)
    if grokked is None:
        assert found.status is NEVER
    else:
        assert (found.status is STABLE) == stays(grokked)
        assert (found.status is STABLE) == (found.step == grokked)
        assert (found.dips > 0) == (found.status is NOT)


def test_a_timeline_has_it_by_the_readings_thresholds() -> None:
    found = log(validation_accuracy=[0.1, 0.6, 0.6, 0.6, 0.6, 0.6])
    assert timeline_of(found).stable.status is NEVER
    assert timeline_of(found, ReadingSpec(grokked=0.5)).stable == Stability(STABLE, 500, 0, 0, 500)
    assert timeline_of(found, ReadingSpec(grokked=0.5, stable_steps=3000)).stable.status is CENSORED
