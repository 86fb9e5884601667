import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from grokscope.jobs import run_all
from grokscope.runs import RunOutcome, Store, keep_plan
from grokscope.runs.damage import damaged_runs, find_damage
from grokscope.runs.doctor import examine, set_aside
from grokscope.specs import Plan
from tiny_runs import TINY


@pytest.fixture
def store(tmp_path: Path) -> Store:
    torch.set_num_threads(1)
    run_all([TINY], Store(tmp_path), compiled=False)
    return Store(tmp_path)


def test_what_lies_beside_the_runs_is_no_finding(store: Store) -> None:
    keep_plan(Plan(store.address, (TINY,)), store)
    for name in (".index.sqlite", ".stack-0123456789abcdef.lock", "cancelled", "group7.json"):
        (store.path / name).write_bytes(b"{}")
    for name in ("trackers", "jobs"):
        (store.path / name).mkdir()
        (store.path / name / "tensorboard").write_bytes(b"x")
    assert not list(examine(store))
    assert [folder.spec for folder in store] == [TINY]


def test_a_run_that_was_set_aside_is_neither_found_nor_examined(store: Store) -> None:
    (folder,) = store
    (folder.path / "log.jsonl").write_bytes(b"torn")
    assert list(damaged_runs(store)) == [folder.name]
    assert set_aside(store, [folder.name]) == [store.path / f".damaged-{folder.name}"]
    assert not list(store)
    assert not list(examine(store))
    run_all([TINY], store, compiled=False)
    assert store.find(TINY.content_hash).path == store.path / folder.name
    assert damaged_runs(store) == {}


def test_a_log_that_lacks_an_evaluation_is_damaged_until_where_the_run_ended(store: Store) -> None:
    (folder,) = store
    ended = folder.outcome
    assert ended.is_finished
    folder.rewind(4)
    assert "lacks 1 of its records" in str(find_damage(store, folder.name))
    folder.finish(replace(ended, stopped_early=True))
    assert find_damage(store, folder.name) is None
    folder.finish(replace(ended, failed_at=7))
    assert find_damage(store, folder.name) is None
    folder.finish(replace(ended, failed_at=9))
    assert "lacks 1 of its records" in str(find_damage(store, folder.name))


def test_a_run_that_was_only_watched_is_not_mended_by_training(tmp_path: Path) -> None:
    folder = Store(tmp_path).add(replace(TINY, model="somebody's"))
    folder.append({"step": 3, "train_accuracy": 0.5})
    folder.finish(RunOutcome("never"))
    assert not list(examine(Store(tmp_path))), "it was evaluated whenever its owner liked"
    log = folder.path / "log.jsonl"
    log.write_bytes(log.read_bytes()[:-4])
    (finding,) = examine(Store(tmp_path), repair=True)
    assert (finding.remedy, finding.mended) == ("", False)
    assert folder.outcome.is_finished


def test_a_run_that_trains_is_reported_and_left_to_its_writer(store: Store) -> None:
    (folder,) = store
    (folder.path / "log.jsonl").write_bytes(b"torn")
    skipped: list[str] = []
    with folder.lock():
        assert not list(examine(store, repair=True, report=skipped.append))
    assert len(skipped) == 1
    assert f"{folder.name} is being written by process {os.getpid()} on " in skipped[0]
    assert skipped[0].endswith("; it was not examined")
    assert len(list(examine(store, report=skipped.append))) == 1
    assert len(skipped) == 1


def test_a_read_only_folder_is_examined_and_what_cannot_be_repaired_is_said(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_plan(Plan(store.address, (TINY,)), store)
    (folder,) = store
    (folder.path / "outcome.json").write_bytes(b"torn")
    (store.path / "plans" / "0123456789abcdef.json").write_bytes(b"torn")

    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    opens = os.open

    def opened(path: object, flags: int, *rest: object, **more: object) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):  # who runs tests may be root, whom no mode stops
            refuse()
        return opens(path, flags, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", opened)
    for name in ("rename", "unlink", "replace", "mkdir"):
        monkeypatch.setattr(Path, name, refuse)
    assert [finding.mended for finding in examine(store)] == [False, False]
    plan, run = examine(store, repair=True)
    assert "it could not be repaired: " in plan.problem
    assert "it could not be repaired: " in run.problem
    assert "Read-only file system" in run.problem
    assert [plan.mended, run.mended] == [False, False]


def test_a_damaged_plan_is_set_aside(store: Store) -> None:
    plans = store.path / "plans"
    name = keep_plan(Plan(store.address, (TINY,)), store)
    (plans / f"{name}.json").write_bytes(b"torn")
    (finding,) = examine(store, repair=True)
    assert (finding.run, finding.mended) == (f"plans/{name}.json", True)
    assert [path.name for path in plans.iterdir()] == [f".damaged-{name}.json"]
    assert (plans / f".damaged-{name}.json").read_bytes() == b"torn"
    assert not list(examine(store))


def test_a_manifest_that_can_be_worked_out_is_written_again_and_nothing_is_trained(store: Store) -> None:
    (folder,) = store
    before = {path.name: path.read_bytes() for path in folder.path.iterdir()}
    for content in (b"", b"{}", before["manifest.json"].replace(b'"run"', b'"was"'), None):
        path = folder.path / "manifest.json"
        path.unlink() if content is None else path.write_bytes(content)
        (finding,) = examine(store, repair=True)
        assert (finding.remedy, finding.mended) == ("it is written again", True)
        assert {path.name: path.read_bytes() for path in folder.path.iterdir()} == before


def test_an_outcome_that_is_not_what_the_log_says_is_found_in_a_run_of_the_first_format(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).with_name("old_formats") / "finished", tmp_path / "runs")
    store = Store(tmp_path / "runs")
    (folder,) = store
    path = folder.path / "outcome.json"
    facts = json.loads(path.read_bytes()) | {"outcome": "grokked", "grokked": 4}
    del facts["sha256"]
    path.write_text(json.dumps(facts))
    (finding,) = examine(store)
    assert "does not say what the run's log says" in finding.problem


def test_of_a_run_that_ended_early_a_lost_end_of_its_log_is_computed_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run_all([TINY], store, compiled=False)
    (folder,) = store
    ended = replace(folder.outcome, stopped_early=True)
    folder.finish(ended)
    log = folder.path / "log.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    (finding,) = examine(store, repair=True)
    assert "log.jsonl' is not the one with which the run ended" in finding.problem
    assert "opened again at its end" in finding.remedy
    assert [row["step"] for row in folder.log()] == [0, 4]
