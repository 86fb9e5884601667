"""`grokscope train`: which runs, where they are trained, and what it costs."""

from dataclasses import replace
from typing import Annotated, Literal

import tyro

from grokscope.cli.grid import combinations, parse_seeds, read_specs, write_specs
from grokscope.cli.measure_names import reject_unknown_measures
from grokscope.cli.options import (
    ExecutorOptions,
    File,
    Flag,
    HardwareOptions,
    RunOptions,
    StorageOptions,
    Track,
    given,
    reject,
)
from grokscope.specs import Cadence, Plan, RunSpec, Training

__all__ = ["train"]

USUAL = RunSpec(training=Training(steps=8000))


def train(
    task: Annotated[
        tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[TASK ...]", help_behavior_hint="")
    ] = (),
    *,
    out: Annotated[str | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None,
    seeds: Annotated[str | None, tyro.conf.arg(metavar="SEEDS", help_behavior_hint="(default: 0)")] = None,
    spec: File = None,
    recipe: Annotated[
        Literal["fast"] | None, tyro.conf.arg(metavar="{fast}", help_behavior_hint="(default: none)")
    ] = None,
    run: RunOptions,
    evaluate_every: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: 100)")] = None,
    checkpoint_every: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: 500)")] = None,
    fork_points: Annotated[tuple[int, ...], tyro.conf.arg(metavar="INT ...", help_behavior_hint="")] = (),
    storage: StorageOptions,
    hardware: HardwareOptions,
    executor: ExecutorOptions,
    track: Track = (),
    dry_run: Flag = False,
    plan_only: File = None,
    write_spec: File = None,
) -> None:
    """Train runs: every combination of tasks, seeds and settings.

    Runs that are in the folder and finished are not trained again; after an interruption, `grokscope resume` continues.

    Args:
        task: One or more tasks, as `grokscope tasks` lists them; those of --spec if not given.
        out: The folder for the runs, or a remote address such as s3://bucket/runs.
        seeds: A seed, a list (0,1,42) or a range (0:16, the end left out).
        recipe: fast: Muon with strong weight decay, eased if stuck, let go at generalisation; other options override
        spec: A .json file with the spec of a run, or a .jsonl file with one per line; other options override it.
        evaluate_every: Steps between evaluations, which are written to the log.
        checkpoint_every: Steps between checkpoints.
        fork_points: Steps whose full state is kept, so that forks can begin there.
        dry_run: Print runs, time, memory and disk space, and train nothing.
        plan_only: Write the plan to this file, for `python -m grokscope.jobs.worker --spec FILE`, and train nothing.
        write_spec: Write what would be trained to this file, to be edited and given as --spec, and train nothing; .json
            for one run, .jsonl for several.

    Examples:
        grokscope train add_mod97 --seeds 0:16 --out runs/first
        grokscope train add_mod97 --recipe fast --out runs/fast
        grokscope train add_mod97 --weight-decay 2 --write-spec mine.json
        grokscope train add_mod97 S5 --seeds 0:256 --weight-decay 0.3 1 3 --out runs/decays --dry-run
        grokscope train add_mod97 --layers 1 2 --width 64 128 --learning-rate 0.001 0.01 --out runs/sizes
        grokscope train parity_n12_k3 --kind mlp --layers 1 --activation relu --out runs/parity
        grokscope train ridge_d100_n200 --kind mlp --layers 0 --loss mse --out runs/ridge
    """
    executor.check()
    reject(
        {
            "--dry-run writes nothing: leave out --plan-only": plan_only and dry_run,
            "--write-spec trains nothing: leave out --plan-only, --dry-run, --track and --executor": write_spec
            and (plan_only or dry_run or track or executor.executor != "local"),
            "name the folder for the runs with --out": out is None and write_spec is None,
            "--plan-only trains nothing: leave out --track and --executor": plan_only
            and (track or executor.executor != "local"),
            "--dry-run trains nothing: leave out --track": dry_run and track,
            f"--evaluate-every must be at least 1, got {evaluate_every}": evaluate_every is not None
            and evaluate_every < 1,
            f"--checkpoint-every must be at least 1, got {checkpoint_every}": checkpoint_every is not None
            and checkpoint_every < 1,
            "--keep none stores no states: leave out --fork-points": fork_points and storage.keep == "none",
            "name a task, as `grokscope tasks` lists them, or a file with --spec": not task and spec is None,
        }
    )
    from grokscope.tasks import named_task, pinned_task_name, reject_unsuited, train_size

    bases = [USUAL] if spec is None else read_specs(spec)
    if recipe is not None:
        from grokscope.steering.recipes import RECIPES

        bases = [RECIPES[recipe].apply(base) for base in bases]
    for name in task:
        named_task(name)  # rejects what is no task, before anything heavy is imported
    reject_unknown_measures(storage.measures)
    cadences = {"measurements": evaluate_every, "checkpoints": checkpoint_every}
    numbers = None if seeds is None else parse_seeds(seeds)
    runs: dict[RunSpec, None] = {}
    for base in bases:
        changed = {
            name: replace(getattr(base, name), every=every) for name, every in cadences.items() if every is not None
        }
        kept: Cadence = changed.get("checkpoints", base.checkpoints)
        changed["checkpoints"] = replace(kept, at=tuple(sorted({*kept.at, *fork_points})) if fork_points else kept.at)
        values = {
            "task": [pinned_task_name(name) for name in task or (base.task,)],
            **given(run),
            **{name: [cadence] for name, cadence in changed.items()},
        }
        runs |= dict.fromkeys(combinations(base, values, numbers))
    if recipe is not None:  # whether there is a matrix for Muon is known now
        runs = dict.fromkeys(replace(one, release=RECIPES[recipe].release_of(one)) for one in runs)

    for name, fraction in {(spec.task, spec.train_fraction) for spec in runs}:
        train_size(named_task(name), fraction)  # rejects one that leaves no row
    for one in runs:
        reject_unsuited(one, named_task(one.task))
    if write_spec is not None:
        write_specs([*runs], write_spec)
        return
    assert out is not None

    from grokscope.cli.plans import device_here, finish, print_cost, reject_damaged, run_with_progress, write_plan

    elsewhere = executor.executor != "local" or plan_only is not None
    place = device_here(hardware.device, elsewhere=elsewhere)
    plan = Plan(out, tuple(runs), place, deterministic=hardware.deterministic, **given(storage))
    if dry_run:
        print_cost(plan, executor)
    elif plan_only is not None:
        write_plan(plan, plan_only)
    else:
        finish(plan, run_with_progress(plan, track, executor))
        reject_damaged(plan)
