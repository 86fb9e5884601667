import json
import os
import signal
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grokscope.errors import InputError
from grokscope.jobs import local, run_all
from grokscope.jobs.executors import cores, run_locally
from grokscope.runs import Store
from grokscope.specs import Architecture, Cadence, Plan, RunSpec, Training

FIRST = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=20, batch_size=16),
    checkpoints=Cadence(every=4),
    measurements=Cadence(every=2),
)
RUNS = tuple(FIRST.with_seed(seed) for seed in range(3))


def contents(store: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(path for path in store.glob("*/*") if path.is_file() and path.parent.name != "plans"):
        found[str(path.relative_to(store))] = path.read_bytes()
        if path.name == "outcome.json":  # but for the commit, which may change while tests run
            found[str(path.relative_to(store))] = {**json.loads(path.read_bytes()), "provenance": None, "sha256": None}
    return found


def test_interrupted_and_started_again_it_ends_where_one_process_does(tmp_path: Path) -> None:
    plan = Plan(str(tmp_path / "runs"), RUNS)
    seen: list[dict[str, Any]] = []

    def interrupt(line: dict[str, Any]) -> None:
        seen.append(line)
        if len(seen) == 5:
            os.kill(os.getpid(), signal.SIGINT)

    assert run_locally(plan, interrupt, workers=2) is False
    assert any(not folder.outcome.is_finished for folder in Store(plan.out))
    assert run_locally(plan, seen.append, workers=1) is True
    assert len(seen) == len({(line["run"], line["step"]) for line in seen}) == 33, "each measurement is made once"
    run_all(RUNS, Store(tmp_path / "straight"), compiled=False)
    assert contents(tmp_path / "runs") == contents(tmp_path / "straight")


# The executor itself, with programs in the place of workers.

Fake = Callable[[str], None]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Let workers be a small program; it is called as `program -m grokscope.jobs.worker --store DIR --plan NAME`."""
    monkeypatch.chdir(tmp_path)

    def install(body: str) -> None:
        path = tmp_path / "worker"
        head = f"#!{sys.executable} -IS\nimport json, os, signal, sys, time\n"
        path.write_text(head + textwrap.dedent(body))
        path.chmod(0o755)
        monkeypatch.setattr(local.sys, "executable", str(path))

    return install


PLAN = Plan("runs", RUNS)
SAY = 'print(json.dumps({"process": os.getpid()}), flush=True)\n'


def interrupts(times: int) -> Callable[[dict[str, Any]], None]:
    return lambda line: [os.kill(os.getpid(), signal.SIGINT) for _ in range(times)] and None


@pytest.mark.parametrize(
    ("workers", "device", "expected"),
    [(None, "cpu", min(cores(), 3)), (2, "cpu", 2), (9, "cpu", 3), (None, "cuda", 1)],
)
def test_one_worker_per_core_and_no_more_than_runs(
    workers: int | None, device: str, expected: int, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    fake("""
        print("a warning of some library")
        plan = json.loads(open(f"{sys.argv[-3]}/plans/{sys.argv[-1]}.json").read())
        print(json.dumps({"process": os.getpid(), "plan": plan, "threads": os.environ.get("OMP_NUM_THREADS")}))
    """)
    seen: list[dict[str, Any]] = []
    plan = Plan("runs", RUNS, device)
    assert run_locally(plan, seen.append, workers) is True
    assert len({line["process"] for line in seen}) == len(seen) == expected
    assert {replace(Plan.from_dict(line["plan"]), out="runs") for line in seen} == {plan}
    assert {line["threads"] for line in seen} == {"1" if device == "cpu" else None}


def test_the_first_interruption_lets_workers_finish(fake: Fake) -> None:
    fake(f"signal.signal(signal.SIGINT, lambda *_: sys.exit(75))\n{SAY}time.sleep(60)")
    assert run_locally(PLAN, interrupts(1), workers=1) is False


def test_the_second_ends_them(fake: Fake) -> None:
    fake(f"signal.signal(signal.SIGINT, signal.SIG_IGN)\n{SAY}time.sleep(60)")
    assert run_locally(PLAN, interrupts(2), workers=1) is False


def test_interrupted_before_they_listen_is_no_failure(fake: Fake) -> None:
    fake(f"{SAY}time.sleep(60)")
    assert run_locally(PLAN, interrupts(1), workers=1) is False


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ('sys.stderr.write("grokscope: the disk is full\\n"); sys.exit(2)', r"^the disk is full$"),
        ('raise RuntimeError("a defect")', r"^a worker died \(status 1\): RuntimeError: a defect$"),
        ("os.kill(os.getpid(), signal.SIGKILL)", r"^a worker died \(status -9\): it gave no reason$"),
        ('sys.stderr.write("x" * 10**6); sys.exit(2)', r"^x+$"),
    ],
    ids=["sentence", "defect", "killed", "a flood"],
)
def test_what_ails_a_worker_is_reported(body: str, sentence: str, fake: Fake) -> None:
    fake(body)
    with pytest.raises(InputError, match=sentence):
        run_locally(PLAN, lambda line: None, workers=2)


def test_a_complaint_is_heard_even_after_an_interruption(fake: Fake) -> None:
    fake(f"""
def full(*_):
    sys.stderr.write("grokscope: the disk is full\\n")
    sys.exit(2)

signal.signal(signal.SIGINT, full)
{SAY}time.sleep(60)
""")
    with pytest.raises(InputError, match=r"^the disk is full$"):
        run_locally(PLAN, interrupts(1), workers=1)


def test_signals_mean_again_what_they_meant_before(fake: Fake) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    fake(SAY)
    run_locally(PLAN, lambda line: None, workers=1)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_workers_do_not_outlive_a_failure_of_ours(fake: Fake, tmp_path: Path) -> None:
    trace = tmp_path / "asked"
    fake(f"signal.signal(signal.SIGINT, lambda *_: (open({str(trace)!r}, 'w'), sys.exit(75)))\n{SAY}time.sleep(60)")

    def fail(line: dict[str, Any]) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_locally(PLAN, fail, workers=1)
    assert trace.exists()


def test_a_killed_worker_is_started_again_so_often(fake: Fake, tmp_path: Path) -> None:
    trace = tmp_path / "starts"
    fake(f"""
        with open({str(trace)!r}, "a") as file:
            file.write("x")
        if len(open({str(trace)!r}).read()) < 3:
            os.kill(os.getpid(), signal.SIGKILL)
        {SAY.strip()}
    """)
    seen: list[dict[str, Any]] = []
    assert run_locally(PLAN, seen.append, workers=1) is True
    assert trace.read_text() == "xxx"
    notices = [line["notice"] for line in seen if "notice" in line]
    assert [sentence.partition(";")[0] for sentence in notices] == ["a worker died (status -9): it gave no reason"] * 2


def test_a_worker_that_hangs_is_ended_and_started_again(fake: Fake, tmp_path: Path) -> None:
    trace = tmp_path / "starts"
    fake(f"""
        if not os.path.exists({str(trace)!r}):
            open({str(trace)!r}, "w").close()
            time.sleep(60)
        {SAY.strip()}
    """)
    seen: list[dict[str, Any]] = []
    assert run_locally(PLAN, seen.append, workers=1, patience=1.0) is True
    assert ["process" in line for line in seen] == [False, True]
