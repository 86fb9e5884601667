"""Every fault of processes and files, really injected: kills, preemption, full disks, flipped bits, two writers."""

import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import SMALL, Count, contents, seeds

from grokscope.cli import run
from grokscope.errors import InputError
from grokscope.files import DamagedError
from grokscope.jobs import Stopped, run_all
from grokscope.jobs.executors import run_locally
from grokscope.jobs.worker import BAD_INPUT, TRY_AGAIN
from grokscope.runs import (
    BusyError,
    RunFolder,
    Store,
    keep_plan,
    run_name,
)
from grokscope.runs.doctor import examine
from grokscope.specs import Cadence, Fork, Plan, RunSpec, Training
from grokscope.training.checkpoint import load_tensors

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]
THREE = seeds(3)


def straight(path: Path, specs: tuple[RunSpec, ...], **options: Any) -> dict[str, object]:
    """The store of runs that nothing happened to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        run_all(specs, Store(path), compiled=False, **options)
    return contents(path)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    return straight(tmp_path_factory.mktemp("straight"), THREE)


def written(folder: Path, plan: Plan) -> Path:
    path = folder / "plan.json"
    path.write_text(plan.to_json())
    return path


def worker(plan: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "grokscope.jobs.worker", "--spec", str(plan)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished_by(plan: Path) -> int:
    """The exit status of a worker that nothing happens to."""
    process = worker(plan)
    process.communicate(timeout=120)
    return process.returncode


# 1 and 2: kill -9, wherever it falls, saves included.

KILLER = """
    import json, os, random, signal, sys, time
    from grokscope.jobs.worker import main

    plan, kills = sys.argv[1], int(sys.argv[2])
    sys.stdout = open(os.devnull, "w")
    statuses, chance = [], random.Random(0)
    while not statuses or statuses[-1] != 0:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = main(["--spec", plan])
            finally:
                os._exit(status)
        if statuses.count(-9) < kills:
            time.sleep(chance.uniform(0.03, 0.3))
            os.kill(child, signal.SIGKILL)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    sys.stderr.write(json.dumps(statuses))
"""


def test_killed_at_fifty_random_points(tmp_path: Path, injected: Count) -> None:
    spec = replace(SMALL, training=Training(steps=600, batch_size=16), checkpoints=Cadence(every=20, at=(77,)))
    runs = seeds(8, spec)
    plan = written(tmp_path, Plan(str(tmp_path / "runs"), runs))
    command = [sys.executable, "-c", textwrap.dedent(KILLER), str(plan), "50"]
    statuses = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stderr)
    kills = statuses.count(-signal.SIGKILL)
    injected(kills)
    assert kills == 50, "too quick to be killed so often: train longer"
    assert set(statuses) == {0, -signal.SIGKILL}
    assert contents(tmp_path / "runs") == straight(tmp_path / "straight", runs)


# 3 and 5: a fork that changes nothing; a run that is not a number.


def test_a_fork_that_changes_nothing_is_its_parent_through_kills(tmp_path: Path, injected: Count) -> None:
    child = replace(SMALL, fork=Fork(SMALL.content_hash, 10))
    plan = written(tmp_path, Plan(str(tmp_path / "runs"), (SMALL, child)))
    for _ in range(2):
        process = worker(plan)
        for _ in range(3):
            process.stdout.readline()
        process.kill()
        process.communicate()
        injected()
    assert finished_by(plan) == 0
    store = Store(tmp_path / "runs")
    parent, fork = (store.find(run_name(spec)) for spec in (SMALL, child))
    ends = [load_tensors(folder.checkpoints("state")[30]) for folder in (parent, fork)]
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
    assert parent.log()[1:] == fork.log()


def test_a_run_that_diverges_leaves_the_others_alone(
    tmp_path: Path, injected: Count, expected: dict[str, object]
) -> None:
    wild = replace(SMALL, training=replace(SMALL.training, learning_rate=1e25, weight_decay=0.0))
    injected()
    run_all((THREE[0], wild, *THREE[1:]), Store(tmp_path), compiled=False)
    found = contents(tmp_path)
    assert {name: value for name, value in found.items() if not name.startswith(run_name(wild))} == expected
    assert Store(tmp_path).find(run_name(wild)).outcome.failed_at is not None


# 6: a full disk, really full.


def test_a_full_disk(small_disk: Path, tmp_path: Path, injected: Count, expected: dict[str, object]) -> None:
    store, ballast = small_disk / "runs", small_disk / "ballast"
    plan = Plan(str(store), THREE)
    store.mkdir()
    for left in (10_000, 60_000, 120_000):
        ballast.write_bytes(bytes(shutil.disk_usage(small_disk).free - left))
        injected()
        process = worker(written(tmp_path, plan))
        _, errors = process.communicate(timeout=120)
        assert process.returncode == BAD_INPUT
        assert "No space left on device" in errors
        assert "bytes are free there" in errors
        ballast.unlink()
    assert run_locally(plan, lambda line: None, workers=1)
    assert contents(store) == expected


# 7 and 17: files that are truncated, empty, flipped, swapped or gone.


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[random.Random(0).randrange(len(content))] ^= 1 << 3
    path.write_bytes(bytes(content))


def swapped(path: Path) -> None:
    other = next(p for p in path.parent.glob(f"{path.name[:5]}*{path.suffix}") if p != path)
    path.write_bytes(other.read_bytes())


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "flipped": flipped,
    "gone": Path.unlink,
}
FILES = [
    "weights-00000010.safetensors",
    "state-00000030.safetensors",
    "log.jsonl",
    "outcome.json",
    "spec.json",
    "manifest.json",
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("finished")
    straight(path, (SMALL,))
    keep_plan(Plan(str(path), (SMALL,)), Store(path))
    return path


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", [*DAMAGE, "swapped"])
def test_doctor_names_damage_and_mends_it_to_the_last_byte(
    damage: str, file: str, finished: Path, tmp_path: Path, injected: Count, capsys: pytest.CaptureFixture[str]
) -> None:
    if damage == "swapped" and not file.startswith("weights"):
        pytest.skip("there is only one of its kind")
    store = tmp_path / "runs"
    shutil.copytree(finished, store)
    before, victim = contents(store), store / run_name(SMALL) / file
    (swapped if damage == "swapped" else DAMAGE[damage])(victim)
    injected()
    if damage == "gone" and file == "outcome.json":
        assert not list(examine(Store(store))), "that is a run which has not ended"
    else:
        with pytest.raises(SystemExit) as left:
            run(["doctor", str(store)])
        assert left.value.code == 1
        assert run_name(SMALL) in capsys.readouterr().out
        assert run(["doctor", str(store), "--repair"]) == 0
    run_all([SMALL], Store(store), compiled=False)
    assert contents(store) == before
    assert run(["doctor", str(store)]) == 0


# 8: a pickle.


class Bomb:
    """What runs a command when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.trace),)


def test_a_pickle_is_rejected_and_never_run(finished: Path, tmp_path: Path, injected: Count) -> None:
    shutil.copytree(finished, tmp_path / "runs")
    path = tmp_path / "runs" / run_name(SMALL) / "state-00000030.safetensors"
    path.write_bytes(pickle.dumps(Bomb(tmp_path / "exploded")))
    injected()
    with pytest.raises(DamagedError):
        load_tensors(path)
    assert [finding.run for finding in examine(Store(tmp_path / "runs"))] == [run_name(SMALL)]
    assert not (tmp_path / "exploded").exists()


# 9 to 11: two writers, dead workers, preemption, a dead driver.


def test_the_second_of_two_writers_learns_who_the_first_is(tmp_path: Path, injected: Count) -> None:
    process = worker(
        written(tmp_path, Plan(str(tmp_path / "runs"), seeds(1, replace(SMALL, training=Training(steps=2000)))))
    )
    process.stdout.readline()
    folder: RunFolder = next(iter(Store(tmp_path / "runs")))
    injected()
    with pytest.raises(BusyError, match=f"is being written by process {process.pid} on "), folder.lock():
        pass
    process.kill()
    process.communicate()
    injected()
    with folder.lock():
        pass


def test_workers_are_killed_and_the_executor_starts_others(tmp_path: Path, injected: Count) -> None:
    runs = seeds(6, replace(SMALL, training=Training(steps=300, batch_size=16)))
    plan, heard, killed = Plan(str(tmp_path / "runs"), runs), [], []

    def strike(line: dict[str, Any]) -> None:
        heard.append(line)
        if line.get("step") in (50, 150) and len(killed) < 3:
            owner = Store(plan.out).find(line["run"]).owner
            if owner:
                killed.append(int(owner.split()[1]))
                os.kill(killed[-1], signal.SIGKILL)
                injected()

    assert run_locally(plan, strike, workers=2, retries=5)
    assert len(killed) == 3
    assert sum("notice" in line for line in heard) == len(set(killed))
    assert contents(tmp_path / "runs") == straight(tmp_path / "straight", runs)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT])
def test_a_preempted_worker_stores_everything_and_asks_to_be_queued_again(
    number: signal.Signals, tmp_path: Path, injected: Count, expected: dict[str, object]
) -> None:
    plan = written(tmp_path, Plan(str(tmp_path / "runs"), THREE))
    process = worker(plan)
    process.stdout.readline()
    process.stdout.readline()
    process.send_signal(number)
    injected()
    began = time.monotonic()
    process.communicate(timeout=60)
    assert process.returncode == TRY_AGAIN
    assert time.monotonic() - began < 30, "within a scheduler's grace period"
    assert finished_by(plan) == 0
    assert contents(tmp_path / "runs") == expected


DRIVER = """
    import sys
    from pathlib import Path
    from grokscope.jobs.executors import run_locally
    from grokscope.specs import Plan

    run_locally(Plan.from_json(Path(sys.argv[1]).read_text()), lambda line: print(line, flush=True), workers=2)
"""


def test_a_driver_dies_and_another_goes_on(tmp_path: Path, injected: Count, expected: dict[str, object]) -> None:
    plan = Plan(str(tmp_path / "runs"), THREE)
    command = [sys.executable, "-c", textwrap.dedent(DRIVER), str(written(tmp_path, plan))]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    driver.stdout.readline()
    driver.kill()
    driver.communicate()
    injected()
    while not run_locally(plan, lambda line: None, workers=1) or not all(map(Store(plan.out).is_finished, THREE)):
        time.sleep(0.5)  # the dead driver's workers, until they notice
    assert contents(tmp_path / "runs") == expected


# 14 and 18: hostile names; other formats.


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a\0b", "x.", "$(touch x)", "<img onerror=alert(1)>", "; rm -rf ."]
)
def test_a_hostile_task_is_rejected_and_nothing_is_written(name: str, tmp_path: Path, injected: Count) -> None:
    injected()
    before = sorted(tmp_path.rglob("*"))
    assert run(["train", name, "--out", str(tmp_path / "runs")]) == BAD_INPUT
    assert sorted(tmp_path.rglob("*")) == before


def test_another_format_is_rejected_with_both_versions(finished: Path, tmp_path: Path, injected: Count) -> None:
    shutil.copytree(finished, tmp_path / "runs")
    (tmp_path / "runs" / run_name(SMALL) / "format").write_text("grokscope run 7\n")
    injected()
    with pytest.raises(InputError, match=r"format 'grokscope run 7', .* reads 'grokscope run 1'"):
        list(Store(tmp_path / "runs"))
    (finding,) = examine(Store(tmp_path / "runs"), repair=True)
    assert not finding.mended


def test_a_run_from_before_formats_were_written_down_is_read_and_continued(tmp_path: Path, injected: Count) -> None:
    calls = iter(range(100))
    with pytest.raises(Stopped):
        run_all([SMALL], Store(tmp_path / "runs"), should_stop=lambda: next(calls) == 2, compiled=False)
    (tmp_path / "runs" / run_name(SMALL) / "format").unlink()
    injected()
    run_all([SMALL], Store(tmp_path / "runs"), compiled=False)
    found, wanted = contents(tmp_path / "runs"), straight(tmp_path / "straight", (SMALL,))
    del wanted[f"{run_name(SMALL)}/format"]
    assert found == wanted
