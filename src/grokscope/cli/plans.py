"""A plan: the device it names, what it costs, its file, and its training with a progress bar."""

import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from grokscope.cli.damage import reject_damage
from grokscope.cli.frames import duration
from grokscope.cli.options import Device, ExecutorOptions
from grokscope.cli.progress_bar import TrainingBar
from grokscope.errors import InputError, for_shell, plural
from grokscope.files import named, write_atomically
from grokscope.jobs import bytes_of_stack, find_damaged, prepare_plan, reject_impossible
from grokscope.jobs.costs import cost_of
from grokscope.jobs.executors import cores, executor_named, reject_missing_executor, shards_of
from grokscope.jobs.memory import bytes_of_one
from grokscope.jobs.trackers import Word, mirror_logs, reject_missing
from grokscope.runs import BusyError, Run, RunFolder, Store, is_remote, open_store, run_name
from grokscope.specs import Plan
from grokscope.training.devices import is_available
from grokscope.view.summary import summarize_run

__all__ = [
    "INTERRUPTED",
    "device_here",
    "estimate",
    "finish",
    "print_cost",
    "reject_damaged",
    "run_with_progress",
    "write_plan",
]

INTERRUPTED = 75
LOCAL = ExecutorOptions()
MOST_SENTENCES = 100


def device_here(name: Device, *, elsewhere: bool = False) -> str:
    """The device to use; `auto` is CUDA where there is one. What is run elsewhere needs no device here."""
    if name != "auto" and not elsewhere and not is_available(name):
        raise InputError(f"this machine has no device {name}; use cpu or auto")
    return ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name


def write_plan(plan: Plan, path: Path) -> None:
    """Write a plan for a worker, and say how to run it."""
    with open_store(plan.out) as store:
        reject_impossible(plan.runs, store, "cpu", is_here=False)  # its own device may be elsewhere
    if path.exists():
        raise InputError(f"{named(path)} exists already; nothing was overwritten")
    write_atomically(path, (plan.to_json() + "\n").encode())
    print(
        f"wrote a plan of {plural(len(plan.runs), 'run')}; run it with: python -m grokscope.jobs.worker --spec {path}"
    )


def print_cost(plan: Plan, executor: ExecutorOptions) -> None:
    """Runs, a cluster's shards, memory, time and disk space of a plan; what cannot be trained is rejected."""
    if executor.executor == "local":
        with open_store(plan.out) as store:
            reject_impossible(plan.runs, store, plan.device, plan.measures)
    shards, cost = shards_of(plan, executor.runs_per_shard, executor.memory), cost_of(plan)
    is_alone = plan.device == "cpu"
    slots = 1 if is_alone else max(len(shard.plan.runs) for shard in shards)
    memory = max(
        bytes_of_one(shard.plan.runs[0], "cpu") if is_alone else bytes_of_stack(shard.plan.runs) for shard in shards
    )
    print(f"runs      {len(plan.runs):,}, {cost.steps:,} steps in all")
    if executor.executor != "local":
        print(f"shards    {len(shards):,} in {plural(1 + max(shard.wave for shard in shards), 'wave')}")
    print(f"memory    {memory / 2**30:,.2f} GiB for {plural(slots, 'run')} at once, without PyTorch's own")
    unit = "one core" if plan.device == "cpu" else "one H200"
    print(f"time      about {duration(cost.device_seconds)} of {unit}, by measured speeds")
    if executor.executor == "local" and plan.device == "cpu":
        used = _used_cores(plan)
        print(f"          {duration(cost.device_seconds / used)} on {plural(used, 'core')} of this machine")
    print(f"disk      about {_size(cost.bytes_stored)} in {plan.out}")


def estimate(plan: Plan) -> str:
    """What a plan costs, in one sentence."""
    cost, on_cores = cost_of(plan), plan.device == "cpu"
    used = _used_cores(plan) if on_cores else 1
    place = plural(used, "core") if on_cores else "an accelerator like the H200"
    return (
        f"{plural(len(plan.runs), 'run')}, {cost.steps:,} optimiser steps in all: about "
        f"{duration(max(cost.device_seconds / used, 60))} on {place} by measured speeds, without compiling "
        f"and expensive measures, and {_size(cost.bytes_stored)}"
    )


def _used_cores(plan: Plan) -> int:
    """A run takes one core, so that a few runs leave some idle."""
    return min(cores(), len(plan.runs))


def _size(count: float) -> str:
    """Bytes for people."""
    return f"{count / 1e6:,.0f} MB" if count < 1e9 else f"{count / 1e9:,.1f} GB"


def run_with_progress(plan: Plan, track: Sequence[Word] = (), executor: ExecutorOptions = LOCAL) -> bool:
    """Train a plan's unfinished runs by this executor; whether all of them have ended.

    What cannot be trained is rejected before anything is written; then the plan is stored with its runs, for `resume`.
    """
    if track and is_remote(plan.out):
        raise InputError(f"--track needs a local folder, and {plan.out} is not one")
    reject_missing(track)
    reject_missing_executor(executor.executor)
    is_here = executor.executor == "local"
    waiting_runs = prepare_plan(plan, is_here)
    execute = executor_named(
        executor.executor,
        plan,
        address=executor.cluster or "auto",
        partition=executor.partition,
        runs_per_shard=executor.runs_per_shard,
        memory=executor.memory,
        retries=executor.retries,
    )
    bar = TrainingBar(plan, "starting (compiling takes a while)" if is_here else "waiting for the cluster")
    with bar.shown(), mirror_logs(track, plan.out, waiting_runs, bar.warn):
        if is_finished := execute(plan, bar.report):
            bar.fill()
    bar.conclude()
    return is_finished


def finish(plan: Plan, is_finished: bool) -> None:
    """Print how far a plan's runs are; exit with status 75 if it was interrupted."""
    store, folders = Store(plan.out), list[RunFolder]()
    if not is_remote(plan.out):
        damaged = find_damaged(plan.runs, store)
        folders = [store.locate(spec) for spec in plan.runs if spec not in damaged]
    if 0 < len(folders) <= MOST_SENTENCES:
        print("\n".join(summarize_run(Run(folder)) for folder in folders))
    else:
        print(f"{plural(len(plan.runs), 'run')}; see `grokscope status {for_shell(plan.out)}`")
    if not is_finished:
        print(f"stopped; everything is stored: continue with `grokscope resume {for_shell(plan.out)}`")
        sys.exit(INTERRUPTED)
    for folder in folders:
        if not folder.outcome.is_finished and folder.is_held():
            raise BusyError(f"{folder.name} is being written by {folder.owner}")


def reject_damaged(plan: Plan) -> None:
    """Name the runs of a plan that are damaged, and so were left alone."""
    if is_remote(plan.out):
        return
    damaged = find_damaged(plan.runs, Store(plan.out))
    reject_damage({run_name(spec): why for spec, why in damaged.items()}, plan.out)
