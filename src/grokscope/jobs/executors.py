"""Where a plan runs: on this machine, as a SLURM job array, on a Ray cluster.

An executor takes a plan and a function that gets its reports, and returns whether the plan is finished. On a cluster
the plan is cut into shards, and the store has to be reachable from every node.
"""

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from grokscope.errors import InputError
from grokscope.jobs.local import cores, run_locally
from grokscope.jobs.shards import Ended, Report, Shard, drive, shards_of, work_on
from grokscope.jobs.slurm import Job, run_on_slurm
from grokscope.runs import is_remote
from grokscope.runs.plans import encode_plan
from grokscope.specs import Plan

__all__ = [
    "Executor",
    "Job",
    "Shard",
    "cores",
    "executor_named",
    "reject_missing_executor",
    "run_locally",
    "run_on_ray",
    "run_on_slurm",
    "shards_of",
]

Executor = Literal["local", "slurm", "ray"]


LIBRARIES = {"slurm": "submitit", "ray": "ray"}


def reject_missing_executor(name: Executor) -> None:
    """Reject an executor whose library is not installed, before a plan is stored for it.

    >>> reject_missing_executor("local")
    """
    if name in LIBRARIES and find_spec(LIBRARIES[name]) is None:
        what = f"--executor {name} needs {LIBRARIES[name]}"
        raise InputError(f"{what}; install it with: pip install 'grokscope[{name}]'")


def executor_named(
    name: Executor,
    plan: Plan,
    address: str = "auto",
    partition: str | None = None,
    runs_per_shard: int | None = None,
    memory: int | None = None,
    retries: int = 3,
) -> Callable[..., bool]:
    """The executor of this name, with what it has to know of its cluster.

    >>> from grokscope.specs import RunSpec
    >>> executor_named("local", Plan("runs", (RunSpec(),)), retries=5).keywords
    {'retries': 5}
    """
    if name == "local":
        return partial(run_locally, retries=retries)
    cut: dict[str, Any] = {"runs_per_shard": runs_per_shard, "memory": memory, "retries": retries}
    if name == "ray":
        return partial(run_on_ray, address=address, **cut)
    if partition is not None:
        cut["slurm_partition"] = partition
    return partial(run_on_slurm, folder=Path("jobs" if is_remote(plan.out) else f"{plan.out}/jobs"), **cut)


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

    Example::

        run_on_ray(plan, print, address="10.0.0.1:6379")
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
        return drive(plan, shards_of(plan, runs_per_shard, memory), partial(_ended_tasks, ray, task), report, retries)
    finally:
        if mine:
            ray.shutdown()


def _ended_tasks(ray: Any, task: Any, shards: Sequence[Shard]) -> Ended:
    """Each shard as its task ends, and None every second while none does."""
    waiting = {task.remote(encode_plan(shard.plan).decode()): shard for shard in shards}
    while waiting:
        ended, _ = ray.wait(list(waiting), num_returns=1, timeout=1.0)
        if not ended:
            yield None
            continue
        (done,) = ended
        shard = waiting.pop(done)
        try:
            yield shard, ray.get(done)
        except ray.exceptions.RayTaskError as error:
            yield shard, error.cause if isinstance(error.cause, Exception) else error
        except ray.exceptions.RayError as error:  # the process or the node died too often
            yield shard, error
