"""What a stack of runs measures and keeps while it trains."""

from pathlib import Path

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


def test_an_unknown_measure_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no measure 'fds'; did you mean 'fsd'"):
        run_all([ADD], Store(tmp_path / "new"), measuring=Measuring(("fds@sum",)))
    with pytest.raises(InputError, match="no run can be read as 'fsd@foo'"):
        run_all([ADD], Store(tmp_path / "new"), measuring=Measuring(("fsd@foo",)))
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
