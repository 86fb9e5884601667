import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope.errors import InputError
from grokscope.jobs import bytes_of_stack, run_all, runner, stacks
from grokscope.jobs.executors import Shard, shards_of
from grokscope.jobs.local import useful_workers
from grokscope.jobs.shards import UnfinishedError, drive, work_on
from grokscope.runs import Store, run_name
from grokscope.runs.plans import encode_plan
from grokscope.specs import Fork, Plan, RunSpec
from grokscope.training import cohort_key
from tiny_runs import CHILD, TINY, WIDE

GRANDCHILD = replace(TINY, fork=Fork(CHILD.content_hash, 6))


KINDS = [TINY, WIDE, replace(TINY, task="add_mod11"), CHILD, GRANDCHILD]


def test_every_run_is_in_one_shard_of_its_own_kind_and_after_its_parent() -> None:
    runs = tuple(spec for seed in range(20) for spec in (TINY.with_seed(seed), WIDE.with_seed(seed)))
    plan = Plan("runs", (GRANDCHILD, CHILD, *runs))
    shards = shards_of(plan, runs_per_shard=8)
    assert sorted(run_name(run) for shard in shards for run in shard.plan.runs) == sorted(map(run_name, plan.runs))
    place = {run.content_hash: shard for shard in shards for run in shard.plan.runs}
    for shard in shards:
        assert len(shard.plan.runs) <= 8
        assert len({cohort_key(run) for run in shard.plan.runs}) == 1
        for run in shard.plan.runs:
            assert run.fork is None or place[run.fork.parent].wave < shard.wave
    assert [shard.wave for shard in shards] == sorted(shard.wave for shard in shards)
    assert [shard.number for shard in shards] == list(range(len(shards)))


def test_a_shard_for_an_accelerator_is_as_large_as_its_memory_allows() -> None:
    plan = Plan("runs", tuple(RunSpec().with_seed(seed) for seed in range(300)), device="cuda:9")
    small, large = shards_of(plan, memory=2 * 2**30), shards_of(plan, memory=80 * 2**30)
    assert len(small) > len(large) == 1
    assert max(bytes_of_stack(shard.plan.runs) for shard in small) < 2 * 2**30


@pytest.fixture
def room_for_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor as an accelerator with room for three runs: `cpu:0` has stacks, and `cpu` has none."""
    memory = (bytes_of_stack([TINY], 3) + bytes_of_stack([TINY], 4)) / 2 / stacks.HEADROOM
    monkeypatch.setattr(stacks, "_free_memory", lambda device: int(memory))
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


LONG = replace(TINY, training=replace(TINY.training, steps=20))


MIXED = tuple(spec for seed in range(7) for spec in (TINY.with_seed(seed), LONG.with_seed(seed)))


@pytest.mark.usefixtures("room_for_three")
def test_shards_are_the_stacks_of_the_local_executor_to_the_last_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(str(tmp_path / "one"), (*MIXED, CHILD), device="cpu:0")
    stacks: list[tuple[RunSpec, ...]] = []
    trains = runner._train_stack

    def noted(specs: Sequence[RunSpec], *rest: Any) -> bool:
        stacks.append(tuple(specs))
        return trains(specs, *rest)

    monkeypatch.setattr(runner, "_train_stack", noted)
    run_all(plan.runs, Store(plan.out), device=plan.device, compiled=False)
    assert [len(stack) for stack in stacks] == [3, 3, 1, 3, 3, 1, 1]
    shards = shards_of(plan)
    assert [shard.plan.runs for shard in shards] == stacks
    stacks.clear()
    for shard in reversed(shards[:-1]):  # in any order, but forks last
        run_all(shard.plan.runs, Store(tmp_path / "many"), device=plan.device, compiled=False)
    run_all(shards[-1].plan.runs, Store(tmp_path / "many"), device=plan.device, compiled=False)
    assert sorted(stacks, key=str) == sorted((shard.plan.runs for shard in shards), key=str)
    files = {path.relative_to(plan.out): path for path in Path(plan.out).rglob("*") if path.is_file()}
    assert len(files) > 6 * len(plan.runs)
    for name, path in files.items():
        assert (tmp_path / "many" / name).read_bytes() == path.read_bytes(), name


@pytest.mark.usefixtures("room_for_three")
def test_short_runs_never_idle_in_a_stack_of_long_ones_wherever_they_run() -> None:
    for shard in shards_of(Plan("runs", MIXED), runs_per_shard=100):
        assert len({run.training.steps for run in shard.plan.runs}) == 1
    assert useful_workers(Plan("runs", MIXED, device="cpu:0")) == 2, "one worker for each length"


@pytest.mark.parametrize("size", [0, -1])
def test_a_shard_without_runs_is_rejected(size: int) -> None:
    with pytest.raises(InputError, match=f"at least one run, got runs_per_shard {size}"):
        shards_of(Plan("runs", (TINY,)), size)
    with pytest.raises(InputError, match="retries must be 0 or more, got -1"):
        drive(Plan("runs", (TINY,)), [], lambda shards: iter(()), lambda line: None, retries=-1)


@given(st.lists(st.sampled_from(KINDS), min_size=1, unique=True), st.integers(1, 4))
def test_the_same_plan_is_cut_alike_and_nothing_is_lost(runs: list[RunSpec], size: int) -> None:
    plan = Plan("runs", tuple(runs))
    shards = shards_of(plan, size)
    assert shards == shards_of(plan, size)
    assert {run for shard in shards for run in shard.plan.runs} == set(runs)
    assert sum(len(shard.plan.runs) for shard in shards) == len(runs)


def test_working_on_a_shard_twice_trains_it_once(tmp_path: Path) -> None:
    plan = Plan(str(tmp_path), (TINY, TINY.with_seed(1)))
    lines = work_on(encode_plan(plan).decode())
    assert {(line["run"], line["step"]) for line in lines} == {(run_name(run), 8) for run in plan.runs}
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json*")}
    assert work_on(encode_plan(plan).decode()) == []
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json*")} == before


def test_a_shard_whose_run_another_process_writes_is_not_finished(tmp_path: Path) -> None:
    with Store(tmp_path).add(TINY).lock(), pytest.raises(UnfinishedError, match="1 of its 2 runs are being written"):
        work_on(encode_plan(Plan(str(tmp_path), (TINY, TINY.with_seed(1)))).decode())


def test_a_cancelled_sweep_stops_before_it_begins_and_goes_on_when_reopened(tmp_path: Path) -> None:
    store, plan = Store(tmp_path), encode_plan(Plan(str(tmp_path), (TINY,))).decode()
    store.cancel()
    with pytest.raises(UnfinishedError, match="asked to stop"):
        work_on(plan)
    store.reopen()
    assert len(work_on(plan)) == 1


def test_what_fails_is_tried_again_and_waves_wait(tmp_path: Path) -> None:
    plan = Plan(str(tmp_path), (TINY, WIDE, CHILD))
    shards = shards_of(plan)
    seen: list[list[int]] = []
    lines: list[dict[str, Any]] = []

    def start(some: Sequence[Shard]) -> Iterator[tuple[Shard, list[dict[str, Any]] | Exception]]:
        seen.append([shard.number for shard in some])
        for shard in some:
            lost = shard.number == 1 and len(seen) < 3
            yield shard, OSError("the node is gone") if lost else [{"run": str(shard.number)}]

    assert drive(plan, shards, start, lines.append, retries=2, pause=0)
    assert seen == [[0, 1], [1], [1], [2]]
    assert [line["run"] for line in lines if "run" in line] == ["0", "1", "2"]
    assert [line["notice"] for line in lines if "notice" in line] == ["shard 1 is tried again: the node is gone"] * 2


@pytest.mark.parametrize(
    ("error", "sentence", "attempts"),
    [
        (OSError("gone"), "shard 0 was not finished after 3 attempts: gone", 3),
        (InputError("a bad spec"), "a bad spec", 1),
    ],
)
def test_patience_ends(error: Exception, sentence: str, attempts: int, tmp_path: Path) -> None:
    plan, calls = Plan(str(tmp_path), (TINY,)), []

    def start(some: Sequence[Shard]) -> Iterator[tuple[Shard, Exception]]:
        calls.append(1)
        return ((shard, error) for shard in some)

    with pytest.raises(InputError, match=f"^{sentence}$"):
        drive(plan, shards_of(plan), start, lambda line: None, retries=2, pause=0)
    assert len(calls) == attempts
