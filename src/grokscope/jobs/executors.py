"""Where a plan runs: on this machine, as a SLURM job array, on a Ray cluster.

An executor takes a plan and a function that gets its reports, and returns whether the plan is finished.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

from grokscope.jobs.local import cores, run_locally
from grokscope.jobs.ray import run_on_ray
from grokscope.jobs.shards import Shard, shards_of
from grokscope.jobs.slurm import run_on_slurm
from grokscope.runs import is_remote
from grokscope.specs import Plan

__all__ = [
    "Executor",
    "Shard",
    "cores",
    "executor_named",
    "run_locally",
    "run_on_ray",
    "run_on_slurm",
    "shards_of",
]

Executor = Literal["local", "slurm", "ray"]


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
    folder = Path("jobs") if is_remote(plan.out) else Path(plan.out) / "jobs"
    more: dict[str, Any] = {} if partition is None else {"slurm_partition": partition}
    return partial(run_on_slurm, folder=folder, **cut, **more)
