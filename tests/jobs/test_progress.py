"""Evaluations, reported as they appear in a folder that somebody else writes."""

from pathlib import Path
from typing import Any

import pytest

from grokscope.jobs import progress as module
from grokscope.jobs import run_all
from grokscope.jobs.progress import StoredProgress
from grokscope.jobs.shards import Ended, drive, shards_of
from grokscope.runs import Store, run_name
from grokscope.specs import Plan
from tiny_runs import TINY

pytestmark = pytest.mark.usefixtures("quick_disk")
OTHER = TINY.with_seed(1)


@pytest.fixture(autouse=True)
def always_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 0.0)
    monkeypatch.setattr(module, "SHARE", float("inf"))


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return Plan(str(tmp_path / "runs"), (TINY, OTHER))


def steps(lines: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(line["run"], line["step"]) for line in lines]


def test_every_evaluation_is_reported_once_as_it_appears(plan: Plan) -> None:
    lines: list[dict[str, Any]] = []
    progress, store = StoredProgress(plan, lines.append), Store(plan.out)
    progress.update()
    assert lines == [], "there is no folder yet"
    log = store.add(TINY)
    for step in (0, 4):
        log.append({"step": step, "train_accuracy": 0.5, "validation_accuracy": None})
        progress.update()
        progress.update()
        assert lines[-1] == {"run": run_name(TINY), "step": step, "last": 8, "row": log.log()[-1]}
    assert steps(lines) == [(run_name(TINY), 0), (run_name(TINY), 4)]
    run_all(plan.runs, store)
    progress.update()
    assert steps(lines)[2:] == [(run_name(TINY), 8), *((run_name(OTHER), step) for step in (0, 4, 8))]


def test_what_a_job_returns_is_reported_unless_the_folder_said_so_before(plan: Plan) -> None:
    lines: list[dict[str, Any]] = []
    progress = StoredProgress(plan, lines.append)
    run_all((TINY,), Store(plan.out))
    progress.update()
    assert len(lines) == 3
    for step in (4, 8):
        progress.report({"run": run_name(TINY), "step": step, "last": 8, "row": {}})
    assert len(lines) == 3
    progress.report({"run": run_name(TINY), "notice": "a sentence"})
    progress.report({"run": run_name(OTHER), "step": 8, "last": 8, "row": {}})
    assert [line.get("step") for line in lines[3:]] == [None, 8]


def test_other_runs_of_the_folder_are_none_of_its_business(plan: Plan) -> None:
    lines: list[dict[str, Any]] = []
    run_all(plan.runs, Store(plan.out))
    StoredProgress(plan.select((OTHER,)), lines.append).update()
    assert {line["run"] for line in lines} == {run_name(OTHER)}


def test_reading_takes_a_small_share_of_the_time(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(module, "EVERY", 2.0)
    monkeypatch.setattr(module, "SHARE", 0.1)
    progress, read = StoredProgress(plan, lambda line: None), list[float]()

    def slow() -> list[Any]:
        read.append(clock[0])
        clock[0] += 1.0
        return []

    assert progress.follower is not None
    monkeypatch.setattr(progress.follower, "update", slow)
    for moment in (100.0, 102.0, 110.9, 111.0):
        clock[0] = moment
        progress.update()
    assert read == [100.0, 111.0]


def test_a_disk_that_is_away_ends_nothing(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    progress = StoredProgress(plan, lambda line: None)
    monkeypatch.setattr(progress.follower, "update", lambda: Path(plan.out, "missing").read_bytes())
    progress.update()


def test_of_a_remote_store_only_what_the_jobs_return_is_reported() -> None:
    lines: list[dict[str, Any]] = []
    progress = StoredProgress(Plan("s3://bucket/runs", (TINY,)), lines.append)
    progress.update()
    progress.report({"run": run_name(TINY), "step": 8, "last": 8, "row": {}})
    assert steps(lines) == [(run_name(TINY), 8)]


def test_a_sweep_shows_its_progress_while_its_jobs_run(plan: Plan) -> None:
    lines: list[dict[str, Any]] = []
    (shard,) = shards_of(plan)

    def start(some: object) -> Ended:
        run_all((TINY,), Store(plan.out))
        yield None
        assert steps(lines) == [(run_name(TINY), step) for step in (0, 4, 8)]
        yield shard, [{"run": run_name(run), "step": 8, "last": 8, "row": {}} for run in plan.runs]

    assert drive(plan, [shard], start, lines.append, retries=0)
    assert steps(lines)[3:] == [(run_name(OTHER), 8)]
