"""How a run ended, as a type."""

import pytest

from grokscope.runs import RunOutcome
from grokscope.runs.outcome import CODES, ENDINGS, NOT_MEMORIZED, describe_ending
from grokscope.timeline import Outcome

EVALUATIONS = {
    "step": [0, 100, 200, 300],
    "train_accuracy": [0.1, 1.0, 1.0, 1.0],
    "validation_accuracy": [0.1, 0.2, 0.99, 1.0],
}


STAYS = {"status": "censored", "step": None, "dips": 0, "longest_dip": 0, "cadence": 100, "after": 100}


def test_events_are_those_of_the_evaluations() -> None:
    found = RunOutcome.from_evaluations(EVALUATIONS, stopped_early=True, provenance={"commit": "abc"})
    assert found == RunOutcome("grokked", None, True, 100, 200, stability=STAYS, provenance={"commit": "abc"})
    assert found.is_finished
    assert RunOutcome.from_evaluations(EVALUATIONS, failed_at=250).outcome == "diverged"


def test_unfinished_is_the_default() -> None:
    assert not RunOutcome().is_finished
    assert RunOutcome().to_dict()["outcome"] == "unfinished"


def test_stored_and_read_it_is_the_same() -> None:
    for found in (
        RunOutcome("never", memorized=100, trigger={"fired_at": 300, "restored_at": None}),
        RunOutcome("grokked", control={"changes": []}, layout={"slot": 1}, undefined={"0": "why"}),
    ):
        assert RunOutcome.from_dict(found.to_dict()) == found
    assert RunOutcome("never", trigger={"fired_at": 300, "restored_at": None}).fired_at == 300
    assert "control" not in RunOutcome("never").to_dict()


@pytest.mark.parametrize("outcome", Outcome)
def test_an_outcome_has_the_words_of_the_page_without_its_marks(outcome: Outcome) -> None:
    assert describe_ending(outcome.name.lower(), 100) == str(outcome).rstrip(" †‡")
    assert RunOutcome(outcome.name.lower(), memorized=100).ending in ENDINGS


def test_what_never_memorised_is_not_unstable() -> None:
    assert RunOutcome("unstable").ending == NOT_MEMORIZED
    assert RunOutcome("never").ending == "not grokked"
    assert RunOutcome().ending == "unfinished"


def test_codes_are_the_names_of_timelines() -> None:
    assert {*CODES} == {"unfinished", *(one.name.lower() for one in Outcome)}


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"outcome": None}, "an outcome does not name how the run ended"),
        ({"outcome": 3}, "an outcome does not name how the run ended"),
        ({"outcome": "exploded"}, "an outcome is one of unfinished, grokked, .*, got 'exploded'"),
        ({"grokked": "soon"}, "an outcome's 'grokked' is not a step"),
        ({"memorized": True}, "an outcome's 'memorized' is not a step"),
        ({"failed_at": 1.5}, "an outcome's 'failed_at' is not a step"),
        ({"stopped_early": 1}, "an outcome's 'stopped_early' is neither true nor false"),
        ({"trigger": [300]}, "an outcome's 'trigger' is not an object with named fields"),
        ({"control": "none"}, "an outcome's 'control' is not an object with named fields"),
        ({"stability": {"status": "stable", "step": "soon"}}, "an outcome's 'stability' does not say"),
        ({"provenance": None}, "an outcome's 'provenance' is not an object with named fields"),
    ],
)
def test_a_field_of_another_type_is_rejected(parts: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        RunOutcome.from_dict({"outcome": "never"} | parts)
