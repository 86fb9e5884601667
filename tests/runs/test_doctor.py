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
