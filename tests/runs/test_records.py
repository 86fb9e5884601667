"""Measures taken while training, and what is left of a run when its weights are gone."""

from dataclasses import replace
from math import isnan, nan
from pathlib import Path

import pytest

from grokscope.jobs import Stopped, run_all
from grokscope.runs import (
    Store,
)
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.timeline import Outcome, outcome
from recorded_runs import ADD, S3, STEPS, folder

pytestmark = pytest.mark.usefixtures("quick_disk")


def test_a_record_has_its_timeline_and_values(recorded: Store) -> None:
    record = folder(recorded, ADD).record()
    log = folder(recorded, ADD).log()
    assert record.timeline.last == STEPS
    assert record.at(4, "norm") == log[2]["norm"]
    assert record.at(4, "paper_restricted") == folder(recorded, ADD).log("measures")[1]["paper_restricted"]
    assert isnan(record.at(5, "norm"))
    assert isnan(record.at(4, "nothing"))


@pytest.mark.parametrize(
    ("values", "columns"),
    [
        ([0.0, 1.0, 1.0, 1.0, 1.0, 1.0], (1000, 1000, "stable", 1000)),
        ([0.0, 1.0, 0.3, 1.0, 1.0, 1.0], (1000, None, "not_stable", 3000)),
        ([0.0, 0.0, 0.0, 0.0, 1.0, 1.0], (4000, None, "censored", None)),
    ],
)
def test_stable_is_a_step_of_stable_runs_alone(values: list[float], columns: tuple[object, ...]) -> None:
    log = {"step": [1000 * i for i in range(6)], "train_accuracy": [1.0] * 6, "validation_accuracy": values}
    ended = RunOutcome.from_evaluations(log)
    former = replace(ended, stability={"status": columns[2], "step": columns[3]})  # as earlier versions stored it
    for stored, evaluations in ((RunOutcome(), log), (ended, {}), (former, {})):
        row = RunRecord(RunSpec(), stored, evaluations, {}).summary()
        found = tuple(row[name] for name in ("grokked", "stable", "stability", "stable_from"))
        assert found == columns


def test_restricted_loss_and_group_thresholds_reach_the_timeline() -> None:
    outcome = RunOutcome("grokked")
    log = {
        "step": [0, 100, 200, 300],
        "train_accuracy": [0.1, 1.0, 1.0, 1.0],
        "validation_accuracy": [0.1, 0.1, 0.2, 0.99],
        "fsd": [0.1, 0.6, 0.7, 0.9],
    }
    losses = {"step": [0, 200, 300], "paper_restricted": [4.0, 0.4, 0.1]}
    assert RunRecord(ADD, outcome, log, losses).timeline.restricted.step == 200
    assert RunRecord(ADD, outcome, log, {}).timeline.sync.step == 300
    assert RunRecord(S3, outcome, log, {}).timeline.sync.step == 100
    assert RunRecord(ADD, outcome, log | {"fsd": [nan] * 4}, {}).timeline.sync.step is None


def test_a_record_of_an_unfinished_run_is_what_is_known_so_far(tmp_path: Path) -> None:
    assert Store(tmp_path).locate(ADD).record().outcome == RunOutcome()
    with pytest.raises(Stopped):
        run_all([ADD], Store(tmp_path), compiled=False, should_stop=lambda: True)
    record = folder(Store(tmp_path), ADD).record()
    assert not record.outcome.is_finished
    assert (record.evaluations["step"], record.timeline.last) == ([0], 0)
    assert record.summary()["outcome"] == "unfinished"


def test_an_evaluation_that_is_no_number_after_grokking_is_no_collapse() -> None:
    steps, train = [0, 100, 200, 300], [0.1, 1.0, 1.0, 1.0]
    assert outcome(steps, train, [0.1, 0.99, nan, 0.99], None) == Outcome.GROKKED
    assert outcome(steps, train, [0.1, 0.99, nan, 0.2], None) == Outcome.UNSTABLE_AFTER


def test_what_was_measured_at_checkpoints_is_asked_of_the_record() -> None:
    evaluations = {"step": [0.0, 5.0, 10.0], "fsd": [0.1, 0.1, 0.1], "validation_accuracy": [0.0, 0.5, 1.0]}
    record = RunRecord(ADD, RunOutcome(), evaluations, {"step": [0.0, 10.0, 15.0], "other": [nan, 0.7, 0.9]})
    assert [value for value in record.at_checkpoints("other") if not isnan(value)] == [0.7, 0.9]
    assert (record.first_checkpoint("other", 0.8), record.first_checkpoint("validation_accuracy", 0.9)) == (15, 10)
    assert (record.first_checkpoint("other", 2.0), record.first_checkpoint("nothing", 0.0)) == (None, None)
    read = record.with_fsd("other")
    assert read is not None
    assert read.evaluations == {"step": [10.0], "fsd": [0.7], "validation_accuracy": [1.0]}
    assert record.with_fsd("nothing") is None
