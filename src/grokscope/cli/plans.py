"""A plan before it is run: the device it names, what it costs, and its file."""

from pathlib import Path

import torch

from grokscope.cli.options import Device, ExecutorOptions
from grokscope.errors import InputError
from grokscope.files import named, write_atomically
from grokscope.jobs import bytes_per_run, reject_impossible
from grokscope.jobs.costs import cost_of
from grokscope.jobs.executors import cores, shards_of
from grokscope.runs import open_store
from grokscope.specs import Plan
from grokscope.training import cohort_key
from grokscope.training.devices import is_available

__all__ = ["device_here", "estimate", "print_cost", "write_plan"]


def device_here(name: Device, *, elsewhere: bool = False) -> str:
    """The device to use; `auto` is CUDA where there is one. What is run elsewhere needs no device here."""
    if name != "auto" and not elsewhere and not is_available(name):
        raise InputError(f"this machine has no device {name}; use cpu or auto")
    return ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name


def write_plan(plan: Plan, path: Path) -> None:
    """Write a plan for a worker, and say how to run it."""
    with open_store(plan.out) as store:
        reject_impossible(plan.runs, store, "cpu")  # its own device may be elsewhere
    if path.exists():
        raise InputError(f"{named(path)} exists already; nothing was overwritten")
    write_atomically(path, (plan.to_json() + "\n").encode())
    print(f"wrote a plan of {len(plan.runs):,} runs; run it with: python -m grokscope.jobs.worker --spec {path}")


def print_cost(plan: Plan, executor: ExecutorOptions) -> None:
    """Runs, shards, memory, time and disk space of a plan; what cannot be trained is rejected."""
    if executor.executor == "local":
        with open_store(plan.out) as store:
            reject_impossible(plan.runs, store, plan.device, plan.measures)
    shards, cost = shards_of(plan, executor.runs_per_shard, executor.memory), cost_of(plan)
    slots = 1 if plan.device == "cpu" else max(len(shard.plan.runs) for shard in shards)
    each = max(bytes_per_run(cohort_key(shard.plan.runs[0])) for shard in shards)
    print(f"runs      {len(plan.runs):,}, {cost.steps:,} steps in all")
    print(f"shards    {len(shards):,} in {1 + max(shard.wave for shard in shards)} waves")
    print(f"memory    {slots * each / 2**30:,.2f} GiB for {slots} runs at once, without PyTorch's own")
    unit = "one core" if plan.device == "cpu" else "one H200"
    print(f"time      about {_duration(cost.device_seconds)} of {unit}, by measured speeds")
    if executor.executor == "local" and plan.device == "cpu":
        print(f"          {_duration(cost.device_seconds / cores())} on the {cores()} cores of this machine")
    print(f"disk      about {cost.bytes_stored / 1e9:,.3f} GB in {plan.out}")


def estimate(plan: Plan) -> str:
    """What a plan costs, in one sentence."""
    cost, on_cores = cost_of(plan), plan.device == "cpu"
    minutes = cost.device_seconds / (cores() if on_cores else 1) / 60
    place = f"{cores()} cores" if on_cores else "an accelerator like the H200"
    return (
        f"{len(plan.runs):,} runs, {cost.steps:,} optimiser steps in all: about {max(minutes, 1):,.0f} minutes on "
        f"{place} by measured speeds, without compiling and expensive measures, and {cost.bytes_stored / 1e6:,.0f} MB"
    )


def _duration(seconds: float) -> str:
    for name, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {name}"
    return f"{seconds:,.0f} seconds"
