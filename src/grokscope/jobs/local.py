"""Workers on this machine: one per core with one thread each, or a few for the accelerator.

They share the whole plan, each taking what no other holds, so nothing has to be cut into shards here.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from grokscope.errors import InputError
from grokscope.jobs.stacks import cohorts_of
from grokscope.jobs.worker import BAD_INPUT, TRY_AGAIN
from grokscope.runs import is_remote
from grokscope.runs.plans import brief
from grokscope.specs import Plan

__all__ = ["cores", "run_locally", "stacks_of"]

# While one compiles its stack, another trains; more would only share the same accelerator.
WORKERS_PER_ACCELERATOR = 4
Heard = queue.Queue[tuple["_Worker", str | None]]


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_locally(
    plan: Plan,
    report: Callable[[dict[str, Any]], None],
    workers: int | None = None,
    retries: int = 3,
    patience: float = 3600.0,
) -> bool:
    """Run a plan to its end, or until interrupted; whether it is finished.

    The first Ctrl-C lets the workers store everything, the second ends them at once; the store is valid either way.
    A worker that is killed (the system was out of memory, say), or is silent for `patience` seconds and is then killed
    by us, is started again and continues, so often as `retries` says.
    """
    most = workers or (cores() if plan.device == "cpu" else WORKERS_PER_ACCELERATOR)
    count = min(most, stacks_of(plan))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        path.write_bytes(brief(plan))
        command = [sys.executable, "-m", "grokscope.jobs.worker", "--spec", str(path)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"} if plan.device == "cpu" else dict(os.environ)
        heard: Heard = queue.Queue()
        started = [_Worker(command, environment, heard) for _ in range(count)]
        with _interruptible(started) as asked:
            for line in _lines(heard, started, patience):
                if isinstance(line, dict):
                    report(line)
                elif line.status < 0 and not asked and retries > 0:
                    retries -= 1
                    line.close()
                    report({"notice": f"{line.complaint()}; it is started again, at most {retries} more times"})
                    started[started.index(line)] = _Worker(command, environment, heard)
    for worker in started:
        # A worker that is interrupted before it listens, or for the second time, dies of it: that is no complaint.
        if worker.status == BAD_INPUT or (worker.status not in (0, TRY_AGAIN) and not asked):
            raise InputError(worker.complaint())
    return all(worker.status == 0 for worker in started)


def stacks_of(plan: Plan) -> int:
    """How many workers could find something to do: one run each on a CPU, one cohort on an accelerator."""
    if is_remote(plan.out):  # where nothing is locked: all would train the same runs
        return 1
    if plan.device == "cpu":
        return len(plan.runs)
    return len(cohorts_of(plan.runs))


class _Worker:
    """One child process; it does not hear the terminal's Ctrl-C, which is passed on by us."""

    def __init__(self, command: list[str], environment: dict[str, str], heard: Heard) -> None:
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.streams = (self.process.stdout, self.process.stderr)
        self.errors: list[str] = []
        self.heard_at = time.monotonic()
        self.listeners = [
            threading.Thread(target=self._listen, args=(self.streams[0], heard), daemon=True),
            threading.Thread(target=self.errors.extend, args=(self.streams[1],), daemon=True),
        ]
        for listener in self.listeners:
            listener.start()

    @property
    def status(self) -> int:
        """Its exit status, once it has ended."""
        return self.process.wait()

    def close(self) -> None:
        """Wait for its end, and hear what it still has to say."""
        self.process.wait()
        for listener, stream in zip(self.listeners, self.streams, strict=True):
            listener.join()
            stream.close()

    def _listen(self, stream: TextIO, heard: Heard) -> None:
        for line in stream:
            self.heard_at = time.monotonic()
            heard.put((self, line))
        heard.put((self, None))

    def complaint(self) -> str:
        last = [line.strip() for line in self.errors if line.strip()]
        sentence = last[-1].removeprefix("grokscope: ") if last else "it said nothing"
        return sentence if self.status == BAD_INPUT else f"a worker died (status {self.status}): {sentence}"


def _lines(heard: Heard, workers: list[_Worker], patience: float) -> Iterator[dict[str, Any] | _Worker]:
    """What the workers say, as they say it, and each worker that has fallen silent, until all have."""
    ended: set[_Worker] = set()
    while not ended.issuperset(workers):
        try:
            worker, line = heard.get(timeout=min(1.0, patience))
        except queue.Empty:
            for late in workers:
                if late not in ended and time.monotonic() - late.heard_at > patience:
                    late.process.kill()
            continue
        if line is None:
            ended.add(worker)
            yield worker
        elif line.startswith("{") and "alive" not in (facts := json.loads(line)):
            yield facts


@contextmanager
def _interruptible(workers: list[_Worker]) -> Iterator[list[int]]:
    """Pass the first interruption on; at the second, end the workers. Gives the list of interruptions so far."""
    asked: list[int] = []

    def pass_on(number: int, frame: object) -> None:
        asked.append(number)
        for worker in workers:
            if worker.process.poll() is None:
                worker.process.send_signal(signal.SIGINT if len(asked) == 1 else signal.SIGKILL)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    except BaseException:  # of ours: they are not to outlive it
        if not asked:
            pass_on(signal.SIGTERM, None)
        raise
    finally:
        for worker in workers:
            worker.close()
        for number, handler in before.items():
            signal.signal(number, handler)
