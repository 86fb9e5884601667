"""The words for outcomes."""

import pytest

from grokscope.timeline import Outcome
from grokscope.view.outcomes import MARKS, NOT_MEMORIZED, describe_ending, memorized_before


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_is_described_as_the_page_does_without_marks(outcome: Outcome) -> None:
    assert describe_ending(outcome.name.lower(), 100) == str(outcome).rstrip(MARKS)


def test_what_never_memorised_is_not_unstable() -> None:
    assert describe_ending("unstable", None) == NOT_MEMORIZED
    assert describe_ending("never", None) == "never within the budget"
    assert describe_ending("unfinished", None) == "unfinished"


def test_a_fork_memorised_before_it_if_not_after() -> None:
    assert memorized_before(1000, 1000)
    assert not memorized_before(1100, 1000)
    assert not memorized_before(None, 1000)
    assert not memorized_before(0, None)
