"""Measures taken while training, and what is left of a run when its weights are gone."""

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from math import isnan, nan
from pathlib import Path

import pytest

from grokscope.errors import InputError
from grokscope.runs import (
    Measuring,
    Reading,
    Run,
    Store,
    measured,
    run_name,
)
from grokscope.jobs import Stopped, run_all
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord, packed, record_of, save_records, unpacked
from grokscope.specs import Architecture, Cadence, Fork, RunSpec, Training
from grokscope.timeline import Outcome, outcome

STEPS = 12
MEASURES = ("fsd", "paper_restricted", "fsd@sum", "fsd@additive")
ADD = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=2, width=16, heads=2, mlp_width=32),
    training=Training(steps=STEPS, batch_size=16),
    checkpoints=Cadence(every=4, at=(6,)),
    measurements=Cadence(every=2),
)
MULT, S3 = replace(ADD, task="mult_mod7"), replace(ADD, task="S3")
FORK = replace(ADD, fork=Fork(ADD.content_hash, 6), training=replace(ADD.training, weight_decay=3.0))


@pytest.fixture(autouse=True, scope="module")
def quick_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("recorded"))
    run_all(
        [FORK, MULT, S3, ADD], store, compiled=False, measuring=Measuring(MEASURES)
    )  # a fork named before its parent
    return store


def folder(store: Store, spec: RunSpec):  # type: ignore[no-untyped-def]
    return store.find(run_name(spec))


def test_what_is_measured_while_training_is_what_is_measured_of_the_checkpoints(store: Store) -> None:
    for spec in (ADD, MULT, FORK):
        run = Run(folder(store, spec))
        for suffix, how in (("", Reading()), ("@sum", Reading(by="sum")), ("@additive", Reading(basis="additive"))):
            again = [row for part in measured(run, ["fsd"], how) for row in part]
            during = run.folder.log("measures")
            assert [row["step"] for row in during] == [row["step"] for row in again]
            if suffix and spec is not MULT:  # an addition's answers are its sums, and its basis is the additive one
                assert not any(suffix in column for row in during for column in row)
                continue
            for one, other in zip(during, again, strict=True):
                assert one[f"fsd{suffix}"] == pytest.approx(other["fsd"], abs=1e-6), (spec.task, suffix)


def test_readings_that_a_task_does_not_have_are_left_out(store: Store) -> None:
    columns = set(folder(store, S3).log("measures")[0])
    assert {"fsd", "paper_restricted"} <= columns
    assert not any("@" in column for column in columns)


def test_measuring_changes_neither_logs_nor_states(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path)
    run_all([ADD], other, compiled=False)
    for name in ("log.jsonl", f"state-{STEPS:08d}.safetensors"):
        assert (folder(store, ADD).path / name).read_bytes() == (folder(other, ADD).path / name).read_bytes()
    assert not (folder(other, ADD).path / "measures.jsonl").exists()


@pytest.mark.parametrize("stop_at", range(1, 6))
def test_measures_survive_any_interruption(stop_at: int, store: Store, tmp_path: Path) -> None:
    other, calls = Store(tmp_path), iter(range(100))
    with pytest.raises(Stopped):
        run_all([ADD], other, compiled=False, measuring=Measuring(MEASURES), should_stop=lambda: next(calls) == stop_at)
    run_all([ADD], other, compiled=False, measuring=Measuring(MEASURES))
    for name in ("log.jsonl", "measures.jsonl"):
        assert (folder(other, ADD).path / name).read_bytes() == (folder(store, ADD).path / name).read_bytes()


def test_an_unknown_measure_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no measure 'fds'; did you mean 'fsd'"):
        run_all([ADD], Store(tmp_path / "new"), measuring=Measuring(("fds@sum",)))
    with pytest.raises(InputError, match="no run can be read as 'fsd@foo'"):
        run_all([ADD], Store(tmp_path / "new"), measuring=Measuring(("fsd@foo",)))
    assert not (tmp_path / "new").exists()


def test_keeping_forks_stores_the_listed_states_and_nothing_else(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path)
    run_all([ADD, FORK], other, compiled=False, keep="forks")
    names = {path.name for path in folder(other, ADD).path.iterdir()}
    always = {"format", "log.jsonl", "spec.json", "outcome.json", "manifest.json"}
    assert names == {*always, "state-00000006.safetensors"}
    assert (folder(other, FORK).path / "log.jsonl").read_bytes() == (
        folder(store, FORK).path / "log.jsonl"
    ).read_bytes()


def test_keeping_forks_still_continues_after_a_stop(store: Store, tmp_path: Path) -> None:
    other, calls = Store(tmp_path), iter(range(100))
    with pytest.raises(Stopped):
        run_all([ADD], other, compiled=False, keep="forks", should_stop=lambda: next(calls) == 5)
    assert folder(other, ADD).latest_state() is not None
    looked: list[int] = []
    run_all([ADD], other, compiled=False, keep="forks", report=lambda progress: looked.append(progress.step))
    assert 0 not in looked
    assert (folder(other, ADD).path / "log.jsonl").read_bytes() == (folder(store, ADD).path / "log.jsonl").read_bytes()
    assert list(folder(other, ADD).checkpoints("state")) == [6]


def same(one: RunRecord, other: RunRecord) -> None:
    assert one.spec == other.spec
    assert one.outcome == other.outcome
    for part in ("log", "measured"):
        mine, theirs = getattr(one, part), getattr(other, part)
        assert list(mine) == list(theirs)
        for name in mine:
            assert mine[name] == pytest.approx(theirs[name], rel=1e-6, nan_ok=True)


def test_records_survive_packing_and_the_same_ones_give_the_same_bytes(store: Store, tmp_path: Path) -> None:
    records = [record_of(folder(store, spec)) for spec in (ADD, MULT, S3, FORK)]
    save_records(tmp_path / "records.gz", records)
    back = unpacked(tmp_path / "records.gz")
    for one, other in zip(records, back, strict=True):
        same(one, other)
    assert packed(back) == packed(records) == (tmp_path / "records.gz").read_bytes()


def test_a_record_has_its_timeline_and_values(store: Store) -> None:
    record = record_of(folder(store, ADD))
    log = folder(store, ADD).log()
    assert record.timeline.last == STEPS
    assert record.at(4, "norm") == log[2]["norm"]
    assert record.at(4, "paper_restricted") == folder(store, ADD).log("measures")[1]["paper_restricted"]
    assert isnan(record.at(5, "norm"))
    assert isnan(record.at(4, "nothing"))


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


def test_an_unfinished_run_has_no_record(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        run_all([ADD], Store(tmp_path), compiled=False, should_stop=lambda: True)
    with pytest.raises(InputError, match="is not finished"):
        record_of(folder(Store(tmp_path), ADD))


@pytest.mark.parametrize(
    "content",
    [b"", b"no gzip", gzip.compress(b"{}"), gzip.compress(b'{"format": "other"}')],
    ids=["empty", "not compressed", "no format", "another format"],
)
def test_a_damaged_file_of_records_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "records.gz").write_bytes(content)
    with pytest.raises(InputError, match=r"the records .*records.gz' cannot be read"):
        unpacked(tmp_path / "records.gz")


def test_a_run_that_was_asked_for_more_later_keeps_all_its_columns(store: Store, tmp_path: Path) -> None:
    calls = iter(range(100))
    with pytest.raises(Stopped):
        run_all(
            [ADD], Store(tmp_path), compiled=False, measuring=Measuring(("fsd",)), should_stop=lambda: next(calls) == 5
        )
    run_all([ADD], Store(tmp_path), compiled=False, measuring=Measuring(("fsd", "rank")))
    measured = record_of(folder(Store(tmp_path), ADD)).checkpoints
    assert {"fsd", "rank"} <= set(measured)
    assert len(measured["rank"]) == len(measured["step"])


def test_a_look_that_is_no_number_after_grokking_is_no_collapse() -> None:
    steps, train = [0, 100, 200, 300], [0.1, 1.0, 1.0, 1.0]
    assert outcome(steps, train, [0.1, 0.99, nan, 0.99], None) == Outcome.GROKKED
    assert outcome(steps, train, [0.1, 0.99, nan, 0.2], None) == Outcome.UNSTABLE_AFTER


@pytest.mark.parametrize(
    ("part", "change", "sentence"),
    [
        ("log", {"step": None}, "a log has no column 'step'"),
        ("log", {"train_accuracy": [0.5]}, "the columns of a log are not of one length"),
        ("log", {"validation_accuracy": ["high", "high"]}, "'validation_accuracy' of a log holds something that is"),
        ("outcome", {"grokked": None}, "an outcome does not say 'grokked'"),
        ("outcome", {"memorized": "soon"}, "an outcome's 'memorized' is not a step"),
    ],
)
def test_a_record_that_nobody_could_read_is_refused_where_it_is_unpacked(
    tmp_path: Path, part: str, change: dict, sentence: str
) -> None:
    whole = {
        "spec": ADD.to_dict(),
        "outcome": {"outcome": "never", "failed_at": None, "memorized": 100, "grokked": None},
        "log": {"step": [0, 100], "train_accuracy": [0.0, 1.0], "validation_accuracy": [0.0, 0.1]},
        "measured": {},
    }
    for name, value in change.items():
        del whole[part][name]
        if value is not None:
            whole[part][name] = value
    lines = [json.dumps({"format": "grokscope records 1"}), json.dumps(whole)]
    (tmp_path / "changed.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    with pytest.raises(InputError, match=sentence):
        unpacked(tmp_path / "changed.gz")
