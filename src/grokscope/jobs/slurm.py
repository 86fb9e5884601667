"""Shards as a SLURM job array, through submitit; a preempted job stores everything and is queued again."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grokscope.errors import InputError
from grokscope.jobs.shards import Shard, UnfinishedError, drive, shards_of, work_on
from grokscope.runs.plans import brief
from grokscope.specs import Plan

__all__ = ["Job", "run_on_slurm"]

ARRAY = 1000  # jobs of one array: SLURM refuses more unless it is set up for them (MaxArraySize is 1001 by default)


@dataclass(frozen=True)
class Job:
    """What one job of the array does; submitit keeps it in the sweep's own folder of jobs."""

    plan: str
    """The shard, as JSON."""

    def __call__(self) -> list[dict[str, Any]]:
        """Train; when asked to stop, store everything first and then let submitit queue the job again."""
        queue_again = signal.getsignal(signal.SIGUSR2)  # submitit's own answer to preemption and time limits
        try:
            return work_on(self.plan)
        except UnfinishedError:
            if callable(queue_again):
                queue_again(signal.SIGUSR2, None)
            raise

    def checkpoint(self) -> Any:
        """The same job: where to continue is written in the store."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(Job(self.plan))


def run_on_slurm(
    plan: Plan,
    report: Callable[[dict[str, Any]], None],
    folder: Path,
    cluster: str | None = None,
    retries: int = 3,
    runs_per_shard: int | None = None,
    memory: int | None = None,
    minutes: int = 24 * 60,
    at_once: int = 256,
    **parameters: Any,
) -> bool:
    """Run a plan as job arrays; whether it is finished.

    `folder` holds submitit's files and has to be seen by every node; `cluster` "local" runs the same jobs on this
    machine. Further parameters (such as `slurm_partition`) go to submitit.
    """
    try:
        import submitit
    except ImportError:
        raise InputError("the executor slurm needs submitit: install grokscope[slurm]") from None
    try:
        executor = submitit.AutoExecutor(folder=folder, cluster=cluster)
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
    shards = shards_of(plan, runs_per_shard, memory)
    return drive(shards, lambda some: _ended(executor, some), report, retries)


def _ended(
    executor: Any, shards: Sequence[Shard], every: float = 1.0
) -> Iterator[tuple[Shard, list[dict[str, Any]] | Exception]]:
    """Each shard as it ends."""
    jobs = []
    for start in range(0, len(shards), ARRAY):
        with executor.batch():
            jobs += [executor.submit(Job(brief(shard.plan).decode())) for shard in shards[start : start + ARRAY]]
    waiting = dict(zip(shards, jobs, strict=True))
    while waiting:
        for shard in [shard for shard, job in waiting.items() if job.done()]:
            job = waiting.pop(shard)
            try:
                yield shard, job.result()
            except Exception as error:  # of the job, or that it vanished: either way its shard is tried again
                yield shard, _told(error)
        time.sleep(every if waiting else 0)


def _told(error: Exception) -> Exception:
    """A refusal stays one on its way through submitit, which wraps what a job raises."""
    text = str(error)
    marker = f"{InputError.__module__}.{InputError.__name__}: "
    return InputError(text.rpartition(marker)[2].strip().splitlines()[0]) if marker in text else error
