from math import nan

import pytest

from grokscope.errors import InputError
from grokscope.runs.foreign_logs import ForeignLog
from grokscope.timeline import Outcome
from grokscope.view.judgment import judge_log

STEPS = [*range(0, 5001, 500)]


def log(validation, **columns):
    return ForeignLog(
        "mine", {"step": STEPS, "validation_accuracy": validation, **columns}, columns.pop("failed", None)
    )


def test_events_are_those_of_our_own_runs():
    train = [0.1, *[1.0] * 10]
    found = judge_log(log([0.0] * 4 + [1.0, 0.3] + [1.0] * 5, train_accuracy=train))
    assert (found.memorized, found.grokked, found.stable.step, found.stable.dips) == (500, 2000, 3000, 1)
    assert found.outcome is Outcome.UNSTABLE_AFTER
    assert found.forecast is None
    assert "Later its validation accuracy fell below one half." in found.sentences


def test_columns_that_were_logged_at_other_steps_do_not_make_a_failure():
    train = [1.0 if step % 1000 == 0 else nan for step in STEPS[:-1]] + [nan]
    found = judge_log(log([0.0] * 11, train_accuracy=train))
    assert found.outcome is Outcome.NEVER
    assert found.forecast is not None


def test_what_was_not_logged_is_not_claimed():
    found = judge_log(log([0.0] * 11))
    assert found.memorized is None
    assert not any("memorised its" in sentence for sentence in found.sentences)
    assert "not known" in found.sentences[-1]


def test_a_failed_run_has_no_forecast():
    failed = ForeignLog("mine", {"step": STEPS, "validation_accuracy": [0.0] * 11}, failed_at=4000)
    assert judge_log(failed).outcome is Outcome.DIVERGED
    assert judge_log(failed).forecast is None


def test_grokking_needs_a_validation_accuracy():
    with pytest.raises(InputError, match="--columns validation_accuracy=NAME"):
        judge_log(ForeignLog("mine", {"step": [0], "train_loss": [1.0]}))
