"""A sweep on a real SLURM: whatever happens to its jobs, node and controller, the local executor's bytes come out."""

import contextlib
import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from slurm import Slurm, missing
from small_runs import Count, contents, seeds

from grokscope.jobs.executors import run_locally, run_on_slurm
from grokscope.runs import run_name
from grokscope.specs import Plan

pytestmark = [pytest.mark.cluster, pytest.mark.faults, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]
RUNS = seeds(24)
PATIENCE = 180.0  # seconds; SLURM checks time limits, which are whole minutes, twice a minute


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The same sweep by the local executor, when nothing happens to it."""
    path = tmp_path_factory.mktemp("straight")
    assert run_locally(Plan(str(path), RUNS), lambda line: None)
    return contents(path)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """One node of two cores on loopback."""
    pytest.importorskip("submitit")
    if absent := missing():
        pytest.skip(f"SLURM needs {', '.join(absent)}: sudo apt-get install slurm-wlm munge")
    made = Slurm(tmp_path_factory.mktemp("slurm"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(made.configuration))
        try:
            made.start()
            yield made
        finally:
            made.stop()


@dataclass
class Sweep:
    """A sweep on the cluster, and somebody who does something to it meanwhile."""

    slurm: Slurm
    folder: Path
    strike: Callable[["Sweep"], None]
    heard: list[dict[str, Any]] = field(default_factory=list)
    written: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    """Of each run, the ends that were seen in its folder."""
    failures: list[BaseException] = field(default_factory=list)

    @property
    def store(self) -> Path:
        return self.folder / "runs"

    @property
    def notices(self) -> list[str]:
        return [line["notice"] for line in self.heard if "notice" in line]

    def go(self, **options: Any) -> None:
        """Run it to its end."""
        over = threading.Event()
        hands = [threading.Thread(target=self._strike), threading.Thread(target=self._look, args=(over,))]
        for hand in hands:
            hand.start()
        try:
            chosen = {"slurm_partition": "low", "runs_per_shard": 6, "ask_every": 1.0, "minutes": 10, **options}
            assert run_on_slurm(Plan(str(self.store), RUNS), self.heard.append, self.folder / "jobs", **chosen)
        finally:
            over.set()
            for hand in hands:
                hand.join()
        assert not self.failures, self.failures

    def _strike(self) -> None:
        try:
            self.strike(self)
        except BaseException as error:
            self.failures.append(error)

    def _look(self, over: threading.Event) -> None:
        last = False
        while not last:
            last = over.wait(0.1)
            for path in self.store.glob("*/outcome.json"):
                found = path.stat()
                self.written.setdefault(path.parent.name, set()).add((found.st_ino, found.st_mtime_ns))

    def wait_for(self, what: Callable[[], Any], name: str) -> Any:
        """What is waited for, once it is there."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if found := what():
                return found
            time.sleep(0.1)
        raise AssertionError(f"waited in vain for {name}")

    def writer(self) -> tuple[int, str]:
        """A process that writes a run when some have ended, and its job."""
        return self.wait_for(self._writer, "a job that writes a run")

    def _writer(self) -> tuple[int, str] | None:
        if sum(1 for _ in self.store.glob("*/outcome.json")) < 2:
            return None
        for lock in self.store.glob("*/lock"):
            try:
                process = int(json.loads(lock.read_bytes())["process"])
                words = Path(f"/proc/{process}/environ").read_bytes().decode().split("\0")
            except (OSError, ValueError):
                continue
            known = dict(word.partition("=")[::2] for word in words)
            if "SLURM_ARRAY_JOB_ID" in known:
                return process, f"{known['SLURM_ARRAY_JOB_ID']}_{known['SLURM_ARRAY_TASK_ID']}"
        return None

    def slow_writer(self) -> tuple[int, str]:
        """A writer that stands still, so that its job cannot end too early; a signal from SLURM continues it."""
        process, job = self.writer()
        os.kill(process, signal.SIGSTOP)
        return process, job

    def wait_for_requeue(self, job: str) -> None:
        """Wait until SLURM has queued a job again, which it starts ten seconds later."""
        words = ["--noheader", "--states=all", f"--jobs={job}", "--Format=RestartCnt"]
        self.wait_for(lambda: self.slurm.command("squeue", *words).split() == ["1"], f"job {job} back in the queue")

    def state(self, job: str) -> str:
        return self.slurm.command("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T").strip()


def arrays(sweep: Sweep) -> None:
    """Nothing happens; the jobs are one array."""
    _, job = sweep.writer()
    assert job.endswith(("_0", "_1"))


def time_limit_near(sweep: Sweep) -> None:
    """A job is warned that its time ends soon, as SLURM does up to half a minute early: it queues itself again."""
    _, job = sweep.slow_writer()
    sweep.wait_for_requeue(job)


def time_limit_hit(sweep: Sweep) -> None:
    """A job hangs until its time is over, is not warned before, and SLURM kills it."""
    process, job = sweep.slow_writer()

    def is_over() -> bool:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGSTOP)
        return sweep.state(job) == "TIMEOUT"

    sweep.wait_for(is_over, "the end of the time limit")


def cancelled(sweep: Sweep) -> None:
    """Somebody cancels a job."""
    _, job = sweep.slow_writer()
    sweep.slurm.command("scancel", job)


def preempted(sweep: Sweep) -> None:
    """A job of a higher partition takes the node; SLURM queues ours again."""
    _, job = sweep.slow_writer()
    sweep.slurm.command("sbatch", "--partition=high", "--cpus-per-task=2", "--output=/dev/null", "--wrap=sleep 2")
    sweep.wait_for_requeue(job)


def node_down(sweep: Sweep) -> None:
    """The node goes down and comes back."""
    _, job = sweep.slow_writer()
    node = f"nodename={sweep.slurm.node}"
    sweep.slurm.command("scontrol", "update", node, "state=down", "reason=test")
    sweep.wait_for_requeue(job)
    sweep.slurm.command("scontrol", "update", node, "state=resume")


def controller_restarted(sweep: Sweep) -> None:
    """The controller is away for some seconds while jobs run and end."""
    sweep.writer()
    sweep.slurm.stop_controller()
    sweep.wait_for(lambda: any("does not answer" in notice for notice in sweep.notices), "a notice")
    sweep.slurm.start_controller()
    sweep.slurm.wait_until_ready()


AGAIN = r"shard \d is tried again: job \d+_\d left the queue without a result \(state: {state}\)"


@pytest.mark.parametrize(
    ("strike", "options", "notices"),
    [
        (arrays, {}, []),
        (time_limit_near, {"minutes": 1, "slurm_signal_delay_s": 5}, []),
        (time_limit_hit, {"minutes": 1, "slurm_signal_delay_s": 0}, [AGAIN.format(state="timeout")]),
        (cancelled, {}, [AGAIN.format(state="cancelled")]),
        (preempted, {}, []),
        (node_down, {}, []),
        (controller_restarted, {}, ["SLURM's controller does not answer, waiting: .*", ".* answers again"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_bytes_are_those_of_the_local_executor(
    strike: Callable[[Sweep], None],
    options: dict[str, Any],
    notices: list[str],
    slurm: Slurm,
    tmp_path: Path,
    expected: dict[str, object],
    injected: Count,
    capfd: pytest.CaptureFixture[str],
) -> None:
    slurm.wait_until_ready()
    sweep = Sweep(slurm, tmp_path, strike)
    sweep.go(**options)
    injected(strike is not arrays)
    assert contents(sweep.store) == expected
    assert {run: len(ends) for run, ends in sweep.written.items()} == {run_name(spec): 1 for spec in RUNS}
    assert len(sweep.notices) == len(notices), sweep.notices
    for found, wanted in zip(sweep.notices, notices, strict=True):
        assert re.fullmatch(wanted, found)
    assert capfd.readouterr() == ("", ""), "submitit prints nothing"
