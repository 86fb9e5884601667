"""Where a plan runs: on this machine, as a SLURM job array, on a Ray cluster.

An executor takes a plan and a function that gets its reports, and returns whether the plan is finished. On a cluster
the plan is cut into shards, and the store has to be reachable from every node.
"""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from grokscope.errors import InputError
from grokscope.jobs.local import cores, run_locally
from grokscope.jobs.shards import Line, Report, Shard, UnfinishedError, drive, shards_of, work_on
from grokscope.runs import is_remote
from grokscope.runs.plans import encode_plan
from grokscope.specs import Plan

__all__ = [
    "Executor",
    "Job",
    "Shard",
    "cores",
    "executor_named",
    "run_locally",
    "run_on_ray",
    "run_on_slurm",
    "shards_of",
]

Executor = Literal["local", "slurm", "ray"]
Ended = Iterator[tuple[Shard, list[Line] | Exception]]
ARRAY = 1000  # jobs of one array: SLURM rejects more unless it is set up for them (MaxArraySize is 1001 by default)


def executor_named(
    name: Executor,
    plan: Plan,
    address: str = "auto",
    partition: str | None = None,
    runs_per_shard: int | None = None,
    memory: int | None = None,
    retries: int = 3,
) -> Callable[..., bool]:
    """The executor of this name, with what it has to know of its cluster."""
    if name == "local":
        return partial(run_locally, retries=retries)
    cut: dict[str, Any] = {"runs_per_shard": runs_per_shard, "memory": memory, "retries": retries}
    if name == "ray":
        return partial(run_on_ray, address=address, **cut)
    if partition is not None:
        cut["slurm_partition"] = partition
    return partial(run_on_slurm, folder=Path("jobs" if is_remote(plan.out) else f"{plan.out}/jobs"), **cut)


@dataclass(frozen=True)
class Job:
    """What one job of an array does; submitit keeps it in the sweep's own folder of jobs."""

    plan: str
    """The shard, as JSON."""

    def __call__(self) -> list[Line]:
        """Train; when asked to stop, store everything first and then let submitit queue the job again."""
        queue_again = signal.getsignal(signal.SIGUSR2)  # submitit's own handler of preemption and time limits
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
    report: Report,
    folder: Path,
    cluster: str | None = None,
    retries: int = 3,
    runs_per_shard: int | None = None,
    memory: int | None = None,
    minutes: int = 24 * 60,
    at_once: int = 256,
    **parameters: Any,
) -> bool:
    """Run a plan as SLURM job arrays, through submitit; a preempted job stores everything and is queued again.

    `folder` holds submitit's files and has to be seen by every node; `cluster` "local" runs the same jobs on this
    machine. Further parameters (such as `slurm_partition`) go to submitit.
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
    return drive(shards_of(plan, runs_per_shard, memory), partial(_ended_jobs, executor), report, retries)


def _ended_jobs(executor: Any, shards: Sequence[Shard], every: float = 1.0) -> Ended:
    """Each shard as its job ends."""
    jobs = []
    for start in range(0, len(shards), ARRAY):
        with executor.batch():
            jobs += [executor.submit(Job(encode_plan(shard.plan).decode())) for shard in shards[start : start + ARRAY]]
    waiting = dict(zip(shards, jobs, strict=True))
    while waiting:
        for shard in [shard for shard, job in waiting.items() if job.done()]:
            try:
                yield shard, waiting.pop(shard).result()
            except Exception as error:  # of the job, or that it vanished: either way its shard is tried again
                yield shard, _unwrapped(error)
        time.sleep(every if waiting else 0)


def _unwrapped(error: Exception) -> Exception:
    """Bad input stays bad input on its way through submitit, which wraps what a job raises."""
    _, marker, sentence = str(error).rpartition(f"{InputError.__module__}.{InputError.__name__}: ")
    return InputError(sentence.strip().splitlines()[0]) if marker else error


def run_on_ray(
    plan: Plan,
    report: Report,
    address: str = "auto",
    retries: int = 3,
    runs_per_shard: int | None = None,
    memory: int | None = None,
) -> bool:
    """Run a plan on a Ray cluster that is already there, one task for each shard; whether it is finished.

    A task takes one core, or one GPU. Ray starts a task again, elsewhere if need be, when its process or its node dies;
    one that fails otherwise is tried again by us.
    """
    try:
        import ray
    except ImportError:
        raise InputError("the executor ray needs Ray: install grokscope[ray]") from None
    mine = not ray.is_initialized()
    try:
        if mine:
            ray.init(address=address, log_to_driver=False)
    except (ConnectionError, ValueError) as error:
        raise InputError(f"there is no Ray cluster at {address}: {error}") from None
    try:
        wanted = {"num_cpus": 1} if plan.device == "cpu" else {"num_cpus": 1, "num_gpus": 1}
        task = ray.remote(work_on).options(max_retries=retries, scheduling_strategy="SPREAD", **wanted)
        return drive(shards_of(plan, runs_per_shard, memory), partial(_ended_tasks, ray, task), report, retries)
    finally:
        if mine:
            ray.shutdown()


def _ended_tasks(ray: Any, task: Any, shards: Sequence[Shard]) -> Ended:
    """Each shard as its task ends."""
    waiting = {task.remote(encode_plan(shard.plan).decode()): shard for shard in shards}
    while waiting:
        (done, *_), _ = ray.wait(list(waiting), num_returns=1)
        shard = waiting.pop(done)
        try:
            yield shard, ray.get(done)
        except ray.exceptions.RayTaskError as error:
            yield shard, error.cause if isinstance(error.cause, Exception) else error
        except ray.exceptions.RayError as error:  # the process or the node died too often
            yield shard, error
