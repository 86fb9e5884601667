"""Workers on this machine: one per core with one thread each, or a few for the accelerator.

They share the whole plan, each taking what no other holds, so nothing has to be cut into shards here.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from grokscope.errors import InputError
from grokscope.jobs.stacks import plan_stacks
from grokscope.jobs.worker import BAD_INPUT, TRY_AGAIN
from grokscope.runs import is_remote, keep_plan, open_store
from grokscope.specs import Plan

__all__ = ["cores", "run_locally", "useful_workers"]

# While one compiles its stack, another trains; more would only share the same accelerator.
WORKERS_PER_ACCELERATOR = 4
Reports = queue.Queue[tuple["_Worker", str | None]]


def cores() -> int:
    """Cores this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_locally(
    plan: Plan,
    report: Callable[[dict[str, Any]], None],
    workers: int | None = None,
    retries: int = 3,
    patience: float = 3600.0,
) -> bool:
    """Run a plan to its end, or until interrupted; whether it is finished. Workers read it in its store.

    The first Ctrl-C lets the workers store everything, the second ends them at once; the store is valid either way.
    A worker that is killed (the system was out of memory, say), or is silent for `patience` seconds and is then killed
    by us, is started again and continues, at most `retries` times.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.specs import RunSpec
    >>> small = {"layers": 1, "width": 8, "heads": 1, "mlp_width": 16, "steps": 2, "batch_size": 4}
    >>> spec = RunSpec("add_mod5").with_values(small)
    >>> with TemporaryDirectory() as folder:
    ...     run_locally(Plan(folder, (spec,)), lambda line: None)
    True
    """
    most = workers or (cores() if plan.device == "cpu" else WORKERS_PER_ACCELERATOR)
    with open_store(plan.out) as store:
        name = keep_plan(plan, store)
    command = [sys.executable, "-m", "grokscope.jobs.worker", "--store", plan.out, "--plan", name]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"} if plan.device == "cpu" else dict(os.environ)
    reports: Reports = queue.Queue()
    started = [_Worker(command, environment, reports) for _ in range(min(most, useful_workers(plan)))]
    with _interruptible(started) as requests:
        for line in _lines(reports, started, patience):
            if isinstance(line, dict):
                report(line)
            elif line.status < 0 and not requests and retries > 0:
                retries -= 1
                line.close()
                report({"notice": f"{line.last_error()}; it is started again, at most {retries} more times"})
                started[started.index(line)] = _Worker(command, environment, reports)
    for worker in started:
        # A worker that is interrupted before it listens, or for the second time, dies of it: that is no error.
        if worker.status == BAD_INPUT or (worker.status not in (0, TRY_AGAIN) and not requests):
            raise InputError(worker.last_error())
    return all(worker.status == 0 for worker in started)


def useful_workers(plan: Plan) -> int:
    """How many workers could find something to do: one run each on a CPU, one stack of runs on an accelerator."""
    if is_remote(plan.out):  # where nothing is locked: all would train the same runs
        return 1
    if plan.device == "cpu":
        return len(plan.runs)
    return len(plan_stacks(plan.runs))


class _Worker:
    """One child process; it does not hear the terminal's Ctrl-C, which is passed on by us."""

    def __init__(self, command: list[str], environment: dict[str, str], reports: Reports) -> None:
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.streams = (self.process.stdout, self.process.stderr)
        self.errors: list[str] = []
        self.last_report = time.monotonic()
        self.listeners = [
            threading.Thread(target=self._listen, args=(self.streams[0], reports), daemon=True),
            threading.Thread(target=self.errors.extend, args=(self.streams[1],), daemon=True),
        ]
        for listener in self.listeners:
            listener.start()

    @property
    def status(self) -> int:
        """Its exit status, once it has ended."""
        return self.process.wait()

    def close(self) -> None:
        """Wait for its end and for its last lines."""
        self.process.wait()
        for listener, stream in zip(self.listeners, self.streams, strict=True):
            listener.join()
            stream.close()

    def _listen(self, stream: TextIO, reports: Reports) -> None:
        for line in stream:
            self.last_report = time.monotonic()
            reports.put((self, line))
        reports.put((self, None))

    def last_error(self) -> str:
        """Its last line on standard error, as a sentence."""
        last = [line.strip() for line in self.errors if line.strip()]
        sentence = last[-1].removeprefix("grokscope: ") if last else "it gave no reason"
        return sentence if self.status == BAD_INPUT else f"a worker died (status {self.status}): {sentence}"


def _lines(reports: Reports, workers: list[_Worker], patience: float) -> Iterator[dict[str, Any] | _Worker]:
    """What the workers report, as it arrives, and each worker that has ended, until all have."""
    ended: set[_Worker] = set()
    while not ended.issuperset(workers):
        try:
            worker, line = reports.get(timeout=min(1.0, patience))
        except queue.Empty:
            for late in workers:
                if late not in ended and time.monotonic() - late.last_report > patience:
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
    requests: list[int] = []

    def pass_on(number: int, frame: object) -> None:
        requests.append(number)
        for worker in workers:
            if worker.process.poll() is None:
                worker.process.send_signal(signal.SIGINT if len(requests) == 1 else signal.SIGKILL)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield requests
    except BaseException:  # of ours: they are not to outlive it
        if not requests:
            pass_on(signal.SIGTERM, None)
        raise
    finally:
        for worker in workers:
            worker.close()
        for number, handler in before.items():
            signal.signal(number, handler)
