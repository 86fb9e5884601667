"""How a run ended."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timeline_cases import shares

from grokscope.specs import ReadingSpec
from grokscope.timeline import Outcome, outcome


@pytest.mark.parametrize(
    ("train", "validation", "failed_at", "expected"),
    [
        ([0.1, 1.0, 1.0], [0.1, 0.2, 0.95], None, Outcome.GROKKED),
        ([0.1, 1.0, 1.0], [0.1, 0.96, 0.5], None, Outcome.GROKKED),  # 0.5 is not below a half
        ([0.1, 1.0, 1.0], [0.1, 0.96, 0.4999], None, Outcome.UNSTABLE_AFTER),
        ([0.1, 1.0, 1.0, 1.0], [0.1, 0.96, 0.1, 1.0], None, Outcome.UNSTABLE_AFTER),  # at any later checkpoint
        ([0.1, 0.2, 0.1], [0.1, 0.97, 0.97], None, Outcome.GROKKED),  # ‡ is for those that never grokked
        ([0.1, 1.0, 0.9], [0.1, 0.2, 0.3], None, Outcome.NEVER),
        ([0.1, 1.0, 0.8999], [0.1, 0.2, 0.3], None, Outcome.UNSTABLE),
        ([0.1, 0.2, 1.0], [0.1, 0.2, 0.9499], None, Outcome.NEVER),
        ([0.1, 1.0, 1.0], [0.1, 1.0, 1.0], 150, Outcome.DIVERGED),
        ([0.1, 1.0, 1.0], [0.1, 1.0, 1.0], 0, Outcome.DIVERGED),
        ([1.0], [1.0], None, Outcome.GROKKED),
    ],
)
def test_outcomes_follow_the_audits_rules(
    train: list[float], validation: list[float], failed_at: int | None, expected: Outcome
) -> None:
    steps = [100 * i for i in range(len(train))]
    assert outcome(steps, train, validation, failed_at) == expected


def test_the_reading_sets_what_counts_as_grokked() -> None:
    lenient, early = ReadingSpec(grokked=0.6), ReadingSpec(grokked=0.4)
    assert outcome([0, 100], [1.0, 1.0], [0.1, 0.7], None) == Outcome.NEVER
    assert outcome([0, 100], [1.0, 1.0], [0.1, 0.7], None, lenient) == Outcome.GROKKED
    # Only what comes later can be a collapse, not the grokking itself.
    assert outcome([0, 100, 200], [1.0, 1.0, 1.0], [0.1, 0.45, 0.6], None, early) == Outcome.GROKKED


@given(shares, st.lists(st.floats(0, 1), min_size=12, max_size=12))
def test_every_run_ends_in_one_way(validation: list[float], train: list[float]) -> None:
    steps = [500 * i for i in range(len(validation))]
    train = train[: len(validation)]
    found = outcome(steps, train, validation, None)
    reached = [i for i, value in enumerate(validation) if value >= 0.95]
    if not reached:
        assert found == (Outcome.UNSTABLE if train[-1] < 0.9 else Outcome.NEVER)
    elif any(value < 0.5 for value in validation[reached[0] :]):
        assert found == Outcome.UNSTABLE_AFTER
    else:
        assert found == Outcome.GROKKED


def test_outcomes_are_sentences() -> None:
    assert [str(kind) for kind in Outcome] == [
        "grokked",
        "grokked, then unstable †",
        "unstable ‡",
        "not grokked",
        "diverged",
    ]


def test_a_last_measurement_that_is_no_number_means_diverged() -> None:
    assert outcome([0, 100], [0.1, float("nan")], [0.1, float("nan")], None) is Outcome.DIVERGED
