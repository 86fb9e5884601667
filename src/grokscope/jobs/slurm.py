"""A plan as SLURM job arrays, through submitit.

A job that is asked to stop stores everything. Whether it then comes back is decided once: near its time limit it queues
itself again; a preempted job, or one of a failed node, is queued again by SLURM; and the driver submits again what has
left the queue without a result. The controller is asked for the jobs' states (`squeue`), because accounting, which
submitit would ask, is missing on many clusters. What a job reports is a JSON file: submitit keeps results as pickles,
and none of them is loaded here.
"""

import contextlib
import io
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from grokscope.errors import InputError, for_shell
from grokscope.files import read_json, write_json
from grokscope.jobs.shards import Ended, Line, Report, Shard, UnfinishedError, drive, shards_of, work_on
from grokscope.jobs.worker import TRY_AGAIN
from grokscope.runs.plans import encode_plan
from grokscope.specs import Plan

__all__ = ["Job", "Queue", "run_on_slurm"]

ARRAY = 1000  # jobs of one array: SLURM rejects more unless it is set up for them (MaxArraySize is 1001 by default)
LONGEST_OUTAGE = 3600.0  # seconds for which a controller that does not answer is waited for before a submission
LIVE = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
LIVE |= {"REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"}


@dataclass(frozen=True)
class Job:
    """What one job of an array does; submitit keeps it in the sweep's own folder of jobs."""

    plan: str
    """The shard, as JSON."""
    answer: str
    """The file in which the driver finds its reports, or what failed."""

    def __call__(self) -> None:
        """Train, and write the answer."""
        try:
            write_json(Path(self.answer), {"reports": self._train()})
        except Exception as error:
            write_json(Path(self.answer), {"failed": str(error), "is_input": isinstance(error, InputError)})
            raise

    def _train(self) -> list[Line]:
        """Train; when the time limit is near, or another job writes these runs, let submitit queue the job again."""
        queue_again = signal.getsignal(signal.SIGUSR2)  # submitit's handler
        try:
            return work_on(self.plan)
        except UnfinishedError as error:
            if signal.SIGTERM in error.requested:  # preempted, cancelled or out of time, and SLURM knows which
                raise SystemExit(TRY_AGAIN) from None
            if error.was_cancelled or not callable(queue_again):
                raise
            queue_again(signal.SIGUSR2, None)
            raise

    def checkpoint(self) -> Any:
        """The same job: where to continue is written in the store."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(Job(self.plan, self.answer))


def run_on_slurm(
    plan: Plan,
    report: Report,
    folder: Path,
    cluster: str | None = None,
    retries: int = 3,
    runs_per_shard: int | None = None,
    memory: int | None = None,
    minutes: int = 24 * 60,
    at_once: int = 256,
    ask_every: float = 10.0,
    **parameters: Any,
) -> bool:
    """Run a plan as SLURM job arrays; a preempted or timed-out job stores everything and is queued again.

    `folder` holds submitit's files and has to be seen by every node; `cluster` "local" runs the same jobs on this
    machine. The controller is asked every `ask_every` seconds. Further parameters (such as `slurm_partition`) go to
    submitit.

    Example::

        run_on_slurm(plan, print, Path("runs/wide/jobs"), slurm_partition="gpu")
    """
    try:
        import submitit

        executor = submitit.AutoExecutor(folder=folder, cluster=cluster)
    except ImportError:
        raise InputError("the executor slurm needs submitit: install grokscope[slurm]") from None
    except RuntimeError as error:
        raise InputError(f"jobs cannot be submitted from here: {error}") from None
    executor.update_parameters(
        name="grokscope",
        timeout_min=minutes,
        cpus_per_task=1,
        gpus_per_node=0 if plan.device == "cpu" else 1,
        slurm_array_parallelism=at_once,
        **parameters,
    )
    queue = Queue(report, ask_every) if executor.cluster == "slurm" else None
    shards = shards_of(plan, runs_per_shard, memory)
    try:
        return drive(plan, shards, partial(_ended_jobs, executor, folder, queue), report, retries)
    except KeyboardInterrupt:
        place = for_shell(plan.out)
        known = f"`grokscope status {place}` counts their runs, `grokscope cancel {place}` ends them"
        report({"notice": f"the jobs that were submitted go on: {known}"})
        raise


class Queue:
    """The user's jobs as SLURM's controller knows them; asked now and then, and silent while it does not answer."""

    def __init__(self, report: Report, every: float = 10.0) -> None:
        self._report, self._every = report, every
        self._asked, self._answered = float("-inf"), True
        self._absent: set[str] = set()

    def ended(self, jobs: Collection[str]) -> dict[str, str]:
        """The state of each of these jobs that two answers in a row do not call waiting or running."""
        if time.monotonic() - self._asked < self._every:
            return {}
        states = self._states()
        if states is None:
            return {}
        mine = {job: states.get(job, ("UNKNOWN", "")) for job in jobs}
        gone = {job: state for job, (state, _) in mine.items() if state not in LIVE}
        self._report({"jobs": _count_states(state for job, state in mine.items() if job not in gone)})
        twice = {job: state for job, state in gone.items() if job in self._absent}
        self._absent = set(gone) - set(twice)
        return twice

    def wait(self, longest: float = LONGEST_OUTAGE) -> None:
        """Return as soon as the controller answers."""
        until = time.monotonic() + longest
        while self._states() is None:
            if time.monotonic() > until:
                raise InputError(f"SLURM's controller has not answered for {longest / 60:.0f} minutes")
            time.sleep(self._every)

    def _states(self) -> dict[str, tuple[str, str]] | None:
        """The state of every job of this user, and why it waits; None while the controller does not answer."""
        self._asked = time.monotonic()
        words = ["--noheader", "--array", "--states=all", f"--user={os.getuid()}", "--format=%i %T %r"]
        try:
            answer = subprocess.run(["squeue", *words], capture_output=True, text=True, timeout=60, check=True).stdout
        except (OSError, subprocess.SubprocessError) as error:
            if self._answered:
                reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
                self._report({"notice": f"SLURM's controller does not answer, waiting: {reason}"})
            self._answered = False
            return None
        if not self._answered:
            self._report({"notice": "SLURM's controller answers again"})
        self._answered = True
        lines = (line.split(maxsplit=2) for line in answer.splitlines())
        return {job: (state, reason) for job, state, reason in (words for words in lines if len(words) == 3)}


def _count_states(states: Iterable[tuple[str, str]]) -> str:
    """Jobs by state and by the reason why they wait, in SLURM's words.

    >>> _count_states([("RUNNING", "None"), ("PENDING", "BeginTime"), ("RUNNING", "None")])
    'jobs: 2 running, 1 pending (BeginTime)'
    """
    reasons = ((state, reason.partition(",")[0] if state == "PENDING" else "None") for state, reason in states)
    words = (f"{state.lower()}{'' if reason in ('', 'None') else f' ({reason})'}" for state, reason in reasons)
    counts = ", ".join(f"{count} {word}" for word, count in Counter(words).items())
    return counts and f"jobs: {counts}"


def _ended_jobs(executor: Any, folder: Path, queue: Queue | None, shards: Sequence[Shard]) -> Ended:
    """Each shard as its job ends, and None every second while others are waited for."""
    place = folder.resolve() / "answers"
    tasks = [Job(encode_plan(shard.plan).decode(), str(place / f"{uuid4().hex}.json")) for shard in shards]
    jobs = []
    for start in range(0, len(tasks), ARRAY):
        jobs += _submit(executor, queue, tasks[start : start + ARRAY])
    waiting = {shard: (job, Path(task.answer)) for shard, task, job in zip(shards, tasks, jobs, strict=True)}
    while waiting:
        # `done` of a job on SLURM asks `sacct` unless there is a result
        lost = queue.ended([job.job_id for job, _ in waiting.values()]) if queue else {}
        for shard, (job, answer) in list(waiting.items()):
            if job.paths.result_pickle.exists() if queue else job.done():
                del waiting[shard]
                yield shard, _read(answer, job.job_id)
            elif job.job_id in lost:
                del waiting[shard]
                state = lost[job.job_id].lower().replace("_", " ")
                yield shard, RuntimeError(f"job {job.job_id} left the queue without a result (state: {state})")
        yield None
        time.sleep(1 if waiting else 0)


def _submit(executor: Any, queue: Queue | None, tasks: Sequence[Job]) -> list[Any]:
    """One array of jobs."""
    if queue:
        queue.wait()
    try:
        with contextlib.redirect_stderr(io.StringIO()), executor.batch():
            return [executor.submit(task) for task in tasks]
    except RuntimeError as error:  # of submitit
        raise InputError(f"SLURM rejected the jobs: {str(error).strip().splitlines()[-1]}") from None


def _read(answer: Path, job: str) -> list[Line] | Exception:
    """What a job reported, or what failed; a shard without an answer is tried again like any that failed."""
    try:
        found = read_json(answer, dict)
    except (OSError, InputError):
        return RuntimeError(f"job {job} ended without an answer")
    if isinstance(failed := found.get("failed"), str):
        return InputError(failed) if found.get("is_input") is True else RuntimeError(failed)
    reports = found.get("reports")
    if not isinstance(reports, list) or not all(isinstance(line, dict) for line in reports):
        return RuntimeError(f"the answer of job {job} is damaged")
    return reports
