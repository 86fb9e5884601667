"""`grokscope sweep`: many runs, wherever they are trained and stored."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path

from grokscope.cli.arguments import Flag
from grokscope.cli.train import Device, Keep, Precision, Track, base_spec, bytes_of, device_named, run_plan, seeds_of
from grokscope.errors import InputError
from grokscope.files import named
from grokscope.jobs import bytes_per_run, refuse_impossible
from grokscope.jobs.checks import refuse_unmeasurable
from grokscope.jobs.costs import cost_of
from grokscope.jobs.executors import Executor, cores, executor_named, shards_of
from grokscope.runs import open_store
from grokscope.specs import Cadence, Plan, RunSpec
from grokscope.tasks import pinned_task_name
from grokscope.training import cohort_key

__all__ = ["sweep"]


def sweep(
    out: str,
    task: tuple[str, ...] = ("add_mod97",),
    seeds: str = "0",
    weight_decay: tuple[float, ...] = (),
    learning_rate: tuple[float, ...] = (),
    train_fraction: tuple[float, ...] = (),
    batch_size: tuple[int, ...] = (),
    steps: int | None = None,
    measure_every: int | None = None,
    checkpoint_every: int | None = None,
    runs: Path | None = None,
    spec: Path | None = None,
    keep: Keep = "weights",
    measures: tuple[str, ...] = (),
    stop_after_grokking: int | None = None,
    device: Device = "auto",
    precision: Precision | None = None,
    executor: Executor = "local",
    address: str = "auto",
    partition: str | None = None,
    runs_per_shard: int | None = None,
    memory_gib: float | None = None,
    retries: int = 3,
    track: Track = (),
    dry_run: Flag = False,
) -> None:
    """Train every combination of tasks, seeds and settings, on this machine or on a cluster.

    Example: grokscope sweep --task add_mod97 --seeds 0:256 --weight-decay 0.3 1 3 --out runs/decays --dry-run

    Args:
        out: A folder, or an address such as s3://bucket/sweep or file:///mnt/share/sweep, where runs are committed by
            markers because renames are not atomic there.
        task: One or more tasks, as `grokscope tasks` lists them.
        seeds: A seed, a list (0,1,42) or a range (0:256, the end left out).
        weight_decay: One or more values of λ.
        learning_rate: One or more values of η.
        train_fraction: One or more shares of all pairs that are trained on.
        batch_size: One or more numbers of pairs per step.
        steps: Optimiser steps of each run; 15,000 if nothing says otherwise.
        measure_every: Steps between measurements.
        checkpoint_every: Steps between checkpoints.
        runs: A file with one run's spec (JSON) per line, to be trained instead of a grid.
        spec: A JSON file with what all runs of the grid share.
        keep: What checkpoints hold: weights (and full states to continue from), every full state, full states at
            listed steps only, or none.
        measures: Measures to be taken at every checkpoint, by name.
        stop_after_grokking: End a run this many steps after it groks. Leads are then biased, and each such run says so.
        device: Where each run is trained; auto is CUDA if this machine has it.
        precision: float32 is the reference; tf32 and bf16 are faster.
        executor: local: one worker per core or accelerator; slurm: a job array; ray: tasks on a cluster.
        address: Of the Ray cluster.
        partition: Of the SLURM cluster.
        runs_per_shard: Runs that one job or task trains, at most; as many as fit if not given.
        memory_gib: Memory of the cluster's accelerators, where this machine has none like them.
        retries: How often a shard or worker that dies is tried again.
        track: Mirror the logs to wandb, tensorboard or trackio; one that fails costs a warning, never a run.
        dry_run: Print runs, shards, memory, time and disk, and train nothing.
    """
    if runs is not None:
        specs = _listed(runs)
    else:
        base = base_spec(spec) if spec is not None else RunSpec()
        base = _with_cadences(base, steps, measure_every, checkpoint_every, precision)
        specs = tuple(_grid(base, task, seeds, weight_decay, learning_rate, train_fraction, batch_size))
    where = device_named(device, elsewhere=executor != "local")
    plan = Plan(out, specs, where, keep, stop_after_grokking, measures)
    memory = bytes_of(memory_gib)
    if dry_run:
        _tell_costs(plan, executor, runs_per_shard, memory)
        return
    if stop_after_grokking is not None:
        print("note: runs end early after grokking, so leads computed from them are biased", file=sys.stderr)
    run_plan(plan, track, executor_named(executor, plan, address, partition, runs_per_shard, memory, retries))


def _grid(
    base: RunSpec,
    tasks: Iterable[str],
    seeds: str,
    decays: tuple[float, ...],
    rates: tuple[float, ...],
    fractions: tuple[float, ...],
    batches: tuple[int, ...],
) -> Iterable[RunSpec]:
    """Every combination, seeds fastest, so that those of one setting stand together."""
    usual = base.training
    names = [pinned_task_name(task) for task in tasks]
    chosen = (names, fractions or (base.train_fraction,), decays or (usual.weight_decay,))
    more = (rates or (usual.learning_rate,), batches or (usual.batch_size,))
    for name, fraction, decay, rate, batch in product(*chosen, *more):
        training = replace(usual, weight_decay=decay, learning_rate=rate, batch_size=batch)
        one = replace(base, task=name, train_fraction=fraction, training=training)
        yield from (one.with_seed(seed) for seed in seeds_of(seeds))


def _with_cadences(
    base: RunSpec, steps: int | None, look: int | None, checkpoint: int | None, precision: Precision | None
) -> RunSpec:
    return replace(
        base,
        training=base.training if steps is None else replace(base.training, steps=steps),
        measurements=base.measurements if look is None else _cadence(base.measurements, look),
        checkpoints=base.checkpoints if checkpoint is None else _cadence(base.checkpoints, checkpoint),
        precision=base.precision if precision is None else precision,
    )


def _cadence(stored: Cadence, every: int) -> Cadence:
    return replace(stored, every=every)


def _listed(path: Path) -> tuple[RunSpec, ...]:
    """The runs of a file, one a line."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the runs {named(path)} cannot be read: {error}") from None
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                one = RunSpec.from_json(line)
                found.append(replace(one, task=pinned_task_name(one.task)))
            except InputError as error:
                raise InputError(f"line {number} of {named(path)}: {error}") from None
    return tuple(dict.fromkeys(found))


def _tell_costs(plan: Plan, executor: Executor, runs_per_shard: int | None, memory: int | None) -> None:
    if executor == "local":
        with open_store(plan.out) as store:
            refuse_impossible(plan.runs, store, plan.device)
            refuse_unmeasurable(plan.runs, plan.measures, plan.device)
    shards, cost = shards_of(plan, runs_per_shard, memory), cost_of(plan)
    slots = 1 if plan.device == "cpu" else max(len(shard.plan.runs) for shard in shards)
    each = max(bytes_per_run(cohort_key(shard.plan.runs[0])) for shard in shards)
    print(f"runs      {len(plan.runs):,} of {cost.steps:,} steps in all")
    print(f"shards    {len(shards):,} in {1 + max(shard.wave for shard in shards)} waves")
    print(f"memory    {slots * each / 2**30:,.2f} GiB for {slots} at once, and PyTorch's own")
    unit = "of one core" if plan.device == "cpu" else "of one H200"
    print(f"time      about {_duration(cost.device_seconds)} {unit}, by measured speeds")
    if executor == "local" and plan.device == "cpu":
        print(f"          {_duration(cost.device_seconds / cores())} on the {cores()} of this machine")
    print(f"disk      about {cost.bytes_stored / 1e9:,.3f} GB in {plan.out}")


def _duration(seconds: float) -> str:
    for name, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {name}"
    return f"{seconds:,.0f} seconds"
