"""Shards on a Ray cluster: one task each, moved to another node when its own is lost."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from grokscope.errors import InputError
from grokscope.jobs.shards import Shard, drive, shards_of, work_on
from grokscope.runs.plans import brief
from grokscope.specs import Plan

__all__ = ["run_on_ray"]


def run_on_ray(
    plan: Plan,
    report: Callable[[dict[str, Any]], None],
    address: str = "auto",
    retries: int = 3,
    runs_per_shard: int | None = None,
    memory: int | None = None,
) -> bool:
    """Run a plan on a Ray cluster that is already there; whether it is finished.

    A task takes one core, or one GPU. Ray starts a task again when its process or its node dies; one that fails
    otherwise is tried again by us. The store has to be reachable from every node.
    """
    try:
        import ray
    except ImportError:
        raise InputError("the executor ray needs Ray: install grokscope[ray]") from None
    mine = not ray.is_initialized()
    if mine:
        try:
            ray.init(address=address, log_to_driver=False)
        except (ConnectionError, ValueError) as error:
            raise InputError(f"there is no Ray cluster at {address}: {error}") from None
    try:
        wanted = {"num_cpus": 1} if plan.device == "cpu" else {"num_cpus": 1, "num_gpus": 1}
        task = ray.remote(work_on).options(max_retries=retries, scheduling_strategy="SPREAD", **wanted)
        return drive(shards_of(plan, runs_per_shard, memory), lambda shards: _ended(ray, task, shards), report, retries)
    finally:
        if mine:
            ray.shutdown()


def _ended(ray: Any, task: Any, shards: Sequence[Shard]) -> Iterator[tuple[Shard, list[dict[str, Any]] | Exception]]:
    """Each shard as it ends."""
    waiting = {task.remote(brief(shard.plan).decode()): shard for shard in shards}
    while waiting:
        (done, *_), _ = ray.wait(list(waiting), num_returns=1)
        shard = waiting.pop(done)
        try:
            yield shard, ray.get(done)
        except ray.exceptions.RayTaskError as error:
            yield shard, error.cause if isinstance(error.cause, Exception) else error
        except ray.exceptions.RayError as error:  # the process or the node died too often
            yield shard, error
