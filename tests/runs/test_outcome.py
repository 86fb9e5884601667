"""How a run ended, as a type."""

import pytest

from grokscope.runs import RunOutcome

EVALUATIONS = {
    "step": [0, 100, 200, 300],
    "train_accuracy": [0.1, 1.0, 1.0, 1.0],
    "validation_accuracy": [0.1, 0.2, 0.99, 1.0],
}


def test_events_are_those_of_the_evaluations() -> None:
    found = RunOutcome.from_evaluations(EVALUATIONS, stopped_early=True, provenance={"commit": "abc"})
    assert found == RunOutcome("grokked", None, True, 100, 200, provenance={"commit": "abc"})
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


@pytest.mark.parametrize("parts", [{}, {"outcome": 3}, {"outcome": "never", "grokked": "soon"}])
def test_what_names_no_ending_or_no_step_is_rejected(parts: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="an outcome"):
        RunOutcome.from_dict(parts)
