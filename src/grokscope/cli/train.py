"""`grokscope train`, `resume` and `fork`: runs are planned, trained with a progress bar, and told as a story."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import torch
import tyro

from grokscope.cli.progress import Execute, run_with_progress
from grokscope.errors import InputError, shown
from grokscope.files import named, write_atomically
from grokscope.jobs import reject_impossible
from grokscope.jobs.executors import Executor, executor_named
from grokscope.jobs.trackers import Word
from grokscope.runs import (
    BusyError,
    Run,
    Store,
    is_remote,
    kept_plans,
    open_runs,
    open_store,
)
from grokscope.runs.runs import SUMMARIZED
from grokscope.specs import Cadence, Fork, Plan, RunSpec, Training
from grokscope.tasks import named_task, pinned_task_name
from grokscope.training.devices import is_available
from grokscope.view.summary import summarize_run

__all__ = [
    "INTERRUPTED",
    "Device",
    "base_spec",
    "device_named",
    "fork",
    "resume",
    "run_plan",
    "seeds_of",
    "train",
    "write_plan",
]

Device = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["float32", "tf32", "bf16"]
Keep = Literal["weights", "state", "forks", "none"]
Track = tuple[Word, ...]
INTERRUPTED = 75
MOST_STORIES = 100


def train(
    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")],
    out: Path,
    seeds: str = "0",
    weight_decay: tuple[float, ...] = (1.0,),
    steps: int = 8000,
    train_fraction: float = 0.3,
    measure_every: int = 100,
    checkpoint_every: int = 500,
    keep: Keep = "weights",
    device: Device = "auto",
    precision: Precision = "float32",
    spec: Path | None = None,
    deterministic: bool = False,
    stop_after_grokking: int | None = None,
    fork_points: tuple[int, ...] = (),
    track: Track = (),
    plan_only: Path | None = None,
) -> None:
    """Train runs of a task, one for each seed and weight decay, and store them.

    Example: grokscope train add_mod97 --seeds 0:16 --weight-decay 1.0 --steps 8000 --out runs/first

    Args:
        task: What to learn, as `grokscope tasks` lists it.
        out: The folder for the results; runs that are already there and finished are not trained again.
        seeds: A seed, a list (0,1,42) or a range (0:16, the end left out).
        weight_decay: One or more values of λ.
        steps: Optimiser steps of each run.
        train_fraction: Share of all pairs that is trained on.
        measure_every: Steps between measurements.
        checkpoint_every: Steps between checkpoints.
        keep: What checkpoints hold: weights (and full states to continue from), every full state, full states at
            listed steps only, or none.
        device: Where to train; auto takes CUDA if there is one, else one worker per core. mps must be named: it is
            written to do without float64 and has not been tried on the hardware.
        precision: float32 is the reference; tf32 and bf16 are faster.
        spec: A JSON file with a run's spec; its fields hold wherever the options above are left at their defaults.
        deterministic: Refuse any operation whose result may differ between two runs on one accelerator.
        stop_after_grokking: End a run this many steps after it groks. Leads are then biased: FSD can cross later.
        fork_points: Steps whose full state is kept, for forks to begin at without training up to there again.
        track: Mirror the logs to wandb, tensorboard or trackio; one that fails costs a warning, never a run.
        plan_only: Write the plan to this file, to be run by `python -m grokscope.jobs.worker --spec FILE`.
    """
    named_task(task)
    base, usual = base_spec(spec), base_spec(None)
    one = replace(
        base,
        task=pinned_task_name(task),
        train_fraction=base.train_fraction if train_fraction == usual.train_fraction else train_fraction,
        training=base.training if steps == usual.training.steps else replace(base.training, steps=steps),
        checkpoints=_with_points(_cadence(base.checkpoints, checkpoint_every, usual.checkpoints), fork_points),
        measurements=_cadence(base.measurements, measure_every, usual.measurements),
        precision=base.precision if precision == usual.precision else precision,
    )
    decays = (base.training.weight_decay,) if weight_decay == (usual.training.weight_decay,) else weight_decay
    runs = tuple(
        replace(seeded, training=replace(seeded.training, weight_decay=decay))
        for seeded in ([one] if seeds == "0" else [one.with_seed(seed) for seed in seeds_of(seeds)])
        for decay in decays
    )
    place = device_named(device, elsewhere=plan_only is not None)
    plan = Plan(str(out), runs, place, keep, stop_after_grokking, deterministic=deterministic)
    if plan_only is not None:
        write_plan(plan, plan_only)
        return
    if stop_after_grokking is not None:
        print("note: runs end early after grokking, so leads computed from them are biased", file=sys.stderr)
    run_plan(plan, track)


def resume(
    out: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")],
    device: Device = "auto",
    keep: Keep = "weights",
    stop_after_grokking: int | None = None,
    executor: Executor = "local",
    address: str = "auto",
    partition: str | None = None,
    runs_per_shard: int | None = None,
    memory_gib: float | None = None,
    retries: int = 3,
    track: Track = (),
) -> None:
    """Continue every unfinished run of a folder from its newest whole state, as its plan says.

    Example: grokscope resume runs/first

    Args:
        out: A folder of runs, or a remote address.
        device: Where to train; auto is where the plan says, and exact continuation needs the device the runs began on.
        keep: As it was given to `train`, for runs that no plan of the folder names.
        stop_after_grokking: As it was given to `train`, for runs that no plan of the folder names.
        executor: Where workers are: on this machine, or on a cluster, as for `grokscope sweep`.
        address: Of the Ray cluster.
        partition: Of the SLURM cluster.
        runs_per_shard: As it was given to `sweep`: on an accelerator exact continuation needs the same shards.
        memory_gib: As it was given to `sweep`, likewise.
        retries: How often a cluster's shard that dies is tried again.
        track: Mirror the logs to wandb, tensorboard or trackio, from where they stopped.
    """
    memory, place = bytes_of(memory_gib), device_named(device, elsewhere=executor != "local")
    with open_store(out, only=("format", *SUMMARIZED)) as store:
        if not is_remote(out):
            open_runs(out)  # refuses what is not there
        known = kept_plans(store)
        plans = [plan for plan in known if not all(map(store.is_finished, plan.runs))]
        planned = {spec for plan in known for spec in plan.runs}
        others = tuple(run.spec for run in store if not run.outcome.is_finished and run.spec not in planned)
    if device != "auto":
        plans = [replace(plan, device=place) for plan in plans]
    if others:
        plans.append(Plan(out, others, place, keep, stop_after_grokking))
    for plan in plans:  # whole plans: what is finished leaves its slot empty, and the others keep theirs
        cut = (address, partition, runs_per_shard, memory, retries)
        run_plan(plan, track, None if executor == "local" else executor_named(executor, plan, *cut))
    if not plans:
        print(f"every run in {out} is finished")


def bytes_of(memory_gib: float | None) -> int | None:
    """An accelerator's memory, as a person tells it."""
    if memory_gib is not None and not 0 < memory_gib < 2**20:
        raise InputError(f"memory_gib must be a number of GiB above 0, got {memory_gib}")
    return None if memory_gib is None else int(memory_gib * 2**30)


def fork(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    out: Path,
    at: int,
    weight_decay: tuple[float, ...] = (),
    steps: int | None = None,
    reset_moments: bool = False,
    device: Device = "auto",
    stop_after_grokking: int | None = None,
    track: Track = (),
) -> None:
    """Continue a stored run from one of its steps, once for each weight decay; all else stays as it was.

    Example: grokscope fork add_mod97_s0 --at 1000 --weight-decay 1 2 3 --out runs/first

    Args:
        run: The run's name, hash, or the beginning of either.
        out: The folder it is stored in; the forks go there too.
        at: The step to fork at.
        weight_decay: One or more values of λ for the branches; the parent's if not given.
        steps: The last step; the parent's if not given.
        reset_moments: Start Adam's moments anew instead of keeping them.
        device: Where to train.
        stop_after_grokking: End a branch this many steps after it groks.
        track: Mirror the logs to wandb, tensorboard or trackio.
    """
    parent = open_runs(out)[run]
    last = parent.spec.training.steps if steps is None else steps
    origin = Fork(parent.spec.content_hash, at, "reset" if reset_moments else "kept")
    branches = tuple(
        replace(parent.spec, fork=origin, training=replace(parent.spec.training, weight_decay=decay, steps=last))
        for decay in weight_decay or (parent.spec.training.weight_decay,)
    )
    run_plan(Plan(str(out), branches, device_named(device), stop_after_grokking=stop_after_grokking), track)


def seeds_of(text: str) -> list[int]:
    """The seeds that `0`, `0,1,42`, `0:16` or `0:4,42` stand for.

    >>> seeds_of("0:4,42")
    [0, 1, 2, 3, 42]
    """
    found: list[int] = []
    for part in text.split(","):
        low, colon, high = part.strip().partition(":")
        numbers = [low, high] if colon else [low]
        if not all(number.isascii() and number.isdigit() and len(number) < 19 for number in numbers):
            raise InputError(f"seeds must be numbers such as 0, 0,1,42 or 0:16, got {shown(text)}")
        if colon and not 0 < int(high) - int(low) <= 100_000:
            raise InputError(f"a range of seeds must be increasing and of at most 100,000, got {shown(part)}")
        found += range(int(low), int(high)) if colon else [int(low)]
    return list(dict.fromkeys(found))


def write_plan(plan: Plan, path: Path) -> None:
    """Write a plan for a worker, and say how to run it."""
    reject_impossible(plan.runs, Store(plan.out), "cpu")  # its own device may be elsewhere
    if path.exists():
        raise InputError(f"{named(path)} exists already; nothing was overwritten")
    write_atomically(path, (plan.to_json() + "\n").encode())
    print(f"wrote a plan of {len(plan.runs):,} runs; run it with: python -m grokscope.jobs.worker --spec {path}")


def base_spec(path: Path | None) -> RunSpec:
    """The run's spec in a file, or the one that `train` begins with."""
    if path is None:
        return RunSpec(training=Training(steps=8000))
    try:
        return RunSpec.from_json(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the spec {named(path)} cannot be read: {error}") from None


def _cadence(stored: Cadence, every: int, usual: Cadence) -> Cadence:
    return stored if every == usual.every else replace(stored, every=every)


def _with_points(cadence: Cadence, points: tuple[int, ...]) -> Cadence:
    return replace(cadence, at=tuple(sorted({*cadence.at, *points}))) if points else cadence


def device_named(name: Device, *, elsewhere: bool = False) -> str:
    """The device to use; `auto` is CUDA where there is one. What is to be run elsewhere needs no device here."""
    if name != "auto" and not elsewhere and not is_available(name):
        raise InputError(f"device {name} was asked for, and there is none; use cpu or auto")
    return ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name


def run_plan(plan: Plan, track: Track = (), execute: Execute | None = None) -> None:
    """Train a plan with a progress bar, here or by the executor given, then say what happened."""
    finished = run_with_progress(plan, track, execute)
    if is_remote(plan.out) or len(plan.runs) > MOST_STORIES:
        print(f"{len(plan.runs):,} runs; see `grokscope status {plan.out}`")
    else:
        for spec in plan.runs:
            print(summarize_run(Run(Store(plan.out).locate(spec))))
    if not finished:
        print(f"stopped; everything is stored: continue with `grokscope resume {plan.out}`")
        sys.exit(INTERRUPTED)
    for spec in plan.runs if not is_remote(plan.out) else ():
        folder = Store(plan.out).locate(spec)
        if not folder.outcome.is_finished and folder.is_held():
            raise BusyError(f"{folder.name} is being written by {folder.owner}")
