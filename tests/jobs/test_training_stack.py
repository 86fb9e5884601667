"""What a stack of runs measures and keeps while it trains."""

from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from grokscope.errors import InputError
from grokscope.jobs import Stopped, run_all
from grokscope.runs import (
    Measuring,
    Reading,
    Run,
    Store,
    measure_checkpoints,
)
from grokscope.specs import Cadence, RunSpec
from grokscope.training.state import State
from recorded_runs import ADD, FORK, MEASURES, MULT, S3, STEPS, folder


def test_what_is_measured_while_training_is_what_is_measured_of_the_checkpoints(recorded: Store) -> None:
    for spec in (ADD, MULT, FORK):
        run = Run(folder(recorded, spec))
        for suffix, how in (("", Reading()), ("@sum", Reading(by="sum")), ("@additive", Reading(basis="additive"))):
            again = [row for part in measure_checkpoints(run, ["fsd"], how) for row in part]
            during = run.folder.log("measures")
            assert [row["step"] for row in during] == [row["step"] for row in again]
            if suffix and spec is not MULT:  # an addition's answers are its sums, and its basis is the additive one
                assert not any(suffix in column for row in during for column in row)
                continue
            for one, other in zip(during, again, strict=True):
                assert one[f"fsd{suffix}"] == pytest.approx(other["fsd"], abs=1e-6), (spec.task, suffix)


def test_readings_that_a_task_does_not_have_are_left_out(recorded: Store) -> None:
    columns = set(folder(recorded, S3).log("measures")[0])
    assert {"fsd", "paper_restricted"} <= columns
    assert not any("@" in column for column in columns)


def test_measuring_changes_neither_logs_nor_states(recorded: Store, tmp_path: Path) -> None:
    other = Store(tmp_path)
    run_all([ADD], other, compiled=False)
    for name in ("log.jsonl", f"state-{STEPS:08d}.safetensors"):
        assert (folder(recorded, ADD).path / name).read_bytes() == (folder(other, ADD).path / name).read_bytes()
    assert not (folder(other, ADD).path / "measures.jsonl").exists()


@pytest.mark.parametrize("stop_at", range(1, 6))
def test_measures_survive_any_interruption(stop_at: int, recorded: Store, tmp_path: Path) -> None:
    other, calls = Store(tmp_path), iter(range(100))
    with pytest.raises(Stopped):
        run_all([ADD], other, compiled=False, measuring=Measuring(MEASURES), should_stop=lambda: next(calls) == stop_at)
    run_all([ADD], other, compiled=False, measuring=Measuring(MEASURES))
    for name in ("log.jsonl", "measures.jsonl"):
        assert (folder(other, ADD).path / name).read_bytes() == (folder(recorded, ADD).path / name).read_bytes()


AFTERWARDS = ("trig@final", "update_spectrum", "attention_updates")
MANY = replace(ADD, checkpoints=Cadence(every=1))


def with_afterwards(path: Path, specs: list[RunSpec], always: tuple[str, ...] = ("fsd",), **options: Any) -> Store:
    store = Store(path)
    run_all(specs, store, compiled=False, measuring=Measuring(always, afterwards=AFTERWARDS), **options)
    return store


def test_what_is_measured_afterwards_is_what_is_measured_of_the_stored_run(tmp_path: Path) -> None:
    store = with_afterwards(tmp_path, [MANY])
    run, measured = Run(folder(store, MANY)), folder(store, MANY).record().checkpoints
    assert measured["step"] == list(range(STEPS + 1)) == list(run.steps)
    again = [row for part in measure_checkpoints(run, ["trig"], Reading(reference=STEPS)) for row in part]
    assert measured["trig@final"] == pytest.approx([row["trig"] for row in again], rel=1e-5)
    updates = [row for part in measure_checkpoints(run, AFTERWARDS[1:]) for row in part]
    for column in ("update_gap", "attention_gap_23", "attention_top_share"):
        expected = [row[column] for row in updates]
        assert measured[column] == pytest.approx(expected, rel=1e-5, nan_ok=True)
        assert isnan(measured[column][9])
        assert not isnan(measured[column][10])
    assert "fsd" in measured


def test_a_run_that_was_stopped_begins_anew_for_what_is_measured_afterwards(tmp_path: Path) -> None:
    whole = with_afterwards(tmp_path / "whole", [MANY])
    calls = iter(range(100))
    with pytest.raises(Stopped):
        with_afterwards(tmp_path / "stopped", [MANY], should_stop=lambda: next(calls) == 7)
    again = with_afterwards(tmp_path / "stopped", [MANY])
    for which in ("log", "measures"):
        assert folder(again, MANY).log(which) == folder(whole, MANY).log(which)


def test_without_stored_weights_and_on_any_task_the_same_is_measured_afterwards(tmp_path: Path) -> None:
    """A task without a basis has no key modes, and a fork's first checkpoint is its own."""
    latin = replace(MANY, task="latin7")
    stored, bare = (with_afterwards(tmp_path / keep, [MANY, latin], keep=keep) for keep in ("weights", "none"))
    assert folder(stored, MANY).log("measures") == folder(bare, MANY).log("measures")
    assert not folder(bare, MANY).checkpoints("weights")
    measured = folder(bare, latin).record().checkpoints
    assert "update_gap" in measured
    assert not any(column.startswith("trig") for column in measured)
    forks = folder(with_afterwards(tmp_path / "fork", [ADD, FORK]), FORK).record().checkpoints
    assert forks["step"][0] == 6
    assert len(forks["trig@final"]) == len(forks["step"])


def test_an_unknown_measure_is_rejected_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no measure 'fds'; did you mean 'fsd'"):
        run_all([ADD], Store(tmp_path / "new"), measuring=Measuring(("fds@sum",)))
    with pytest.raises(InputError, match="no run can be read as 'fsd@foo'"):
        run_all([ADD], Store(tmp_path / "new"), measuring=Measuring(("fsd@foo",)))
    with pytest.raises(InputError, match="there is no measure 'trigg'; did you mean 'trig'"):
        run_all([ADD], Store(tmp_path / "new"), measuring=Measuring(afterwards=("trigg@final",)))
    assert not (tmp_path / "new").exists()


def test_keeping_forks_stores_the_listed_states_and_nothing_else(recorded: Store, tmp_path: Path) -> None:
    other = Store(tmp_path)
    run_all([ADD, FORK], other, compiled=False, keep="forks")
    names = {path.name for path in folder(other, ADD).path.iterdir()}
    always = {"format", "log.jsonl", "spec.json", "outcome.json", "manifest.json"}
    assert names == {*always, "state-00000006.safetensors"}
    assert (folder(other, FORK).path / "log.jsonl").read_bytes() == (
        folder(recorded, FORK).path / "log.jsonl"
    ).read_bytes()


def test_states_that_are_not_stored_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    monkeypatch.setattr(State, "row", lambda state, slot: taken.append(slot) or {})
    run_all([ADD], Store(tmp_path), compiled=False, keep="none")
    assert not taken


def test_keeping_forks_still_continues_after_a_stop(recorded: Store, tmp_path: Path) -> None:
    other, calls = Store(tmp_path), iter(range(100))
    with pytest.raises(Stopped):
        run_all([ADD], other, compiled=False, keep="forks", should_stop=lambda: next(calls) == 5)
    assert folder(other, ADD).latest_state() is not None
    evaluated: list[int] = []
    run_all([ADD], other, compiled=False, keep="forks", report=lambda progress: evaluated.append(progress.step))
    assert 0 not in evaluated
    assert (folder(other, ADD).path / "log.jsonl").read_bytes() == (
        folder(recorded, ADD).path / "log.jsonl"
    ).read_bytes()
    assert list(folder(other, ADD).checkpoints("state")) == [6]


def test_a_run_that_was_asked_for_more_later_keeps_all_its_columns(recorded: Store, tmp_path: Path) -> None:
    calls = iter(range(100))
    with pytest.raises(Stopped):
        run_all(
            [ADD], Store(tmp_path), compiled=False, measuring=Measuring(("fsd",)), should_stop=lambda: next(calls) == 5
        )
    run_all([ADD], Store(tmp_path), compiled=False, measuring=Measuring(("fsd", "rank")))
    measured = folder(Store(tmp_path), ADD).record().checkpoints
    assert {"fsd", "rank"} <= set(measured)
    assert len(measured["rank"]) == len(measured["step"])
