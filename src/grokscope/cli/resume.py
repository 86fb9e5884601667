"""`grokscope resume` and `fork`: stored runs continue, as they were or with something changed."""

import sys
from dataclasses import replace
from typing import Any

from grokscope.cli.damage import describe_damage, reject_damage
from grokscope.cli.grid import combinations
from grokscope.cli.options import (
    ExecutorOptions,
    Flag,
    Folder,
    HardwareOptions,
    Place,
    RunName,
    StorageOptions,
    Track,
    TrainingOptions,
    given,
    reject,
)
from grokscope.runs import is_remote, kept_plans, open_runs, open_store, run_name
from grokscope.runs.runs import SUMMARIZED
from grokscope.specs import Fork, Plan

__all__ = ["fork", "resume"]


def resume(
    folder: Place,
    *,
    storage: StorageOptions,
    hardware: HardwareOptions,
    executor: ExecutorOptions,
    track: Track = (),
) -> None:
    """Continue every unfinished run of a folder.

    Each run continues from its newest complete state, as its stored plan says; damaged runs are named and left alone.
    On the same device the result is bit-identical; on an accelerator this needs the same --runs-per-shard and
    --memory-gib. Storage options apply only to runs without a stored plan.

    Examples:
        grokscope resume runs/first
    """
    executor.check()
    with open_store(folder, only=("format", *SUMMARIZED)) as store:
        if not is_remote(folder):
            open_runs(folder)  # rejects what is not there
        from grokscope.jobs import find_damaged

        damaged_plans: list[str] = []
        known = kept_plans(store, damaged_plans.append)
        stored, damaged = store.survey()
        reject({f"there are no runs in {folder}": not (known or stored or damaged or damaged_plans)})
        planned = {spec for plan in known for spec in plan.runs}
        unplanned = [run.spec for run in stored if not run.outcome.is_finished and run.spec not in planned]
        left_alone = find_damaged([*planned, *unplanned], store)
        if damaged_plans:  # one of those may say what is stored and measured of a run
            left_alone |= dict.fromkeys(unplanned, "the plan that may name it is damaged")
        others = tuple(spec for spec in unplanned if spec not in left_alone)
        plans = [plan for plan in known if not all(spec in left_alone or store.is_finished(spec) for spec in plan.runs)]
        damaged |= {run_name(spec): why for spec, why in left_alone.items()}
    if damaged or damaged_plans:
        print(describe_damage(damaged, folder, damaged_plans), file=sys.stderr)
    options = ", ".join(f"--{name.replace('_', '-')}" for name in given(storage))
    reject({f"{options} would have no effect: a plan in {folder} names every unfinished run": options and not others})

    from grokscope.cli.plans import device_here, finish, run_with_progress

    place = device_here(hardware.device, elsewhere=executor.executor != "local")
    changes: dict[str, Any] = {"device": place} if hardware.device != "auto" else {}
    changes |= {"deterministic": True} if hardware.deterministic else {}
    plans = [replace(plan, **changes) for plan in plans]
    if others:
        plans.append(Plan(folder, others, place, deterministic=hardware.deterministic, **given(storage)))
    for plan in plans:  # the complete plan, so that every run keeps its slot
        finish(plan, run_with_progress(plan, track, executor))
    reject_damage(damaged, folder)
    if not plans:
        print(f"every run in {folder} is finished")


def fork(
    folder: Folder,
    run: RunName,
    *,
    at: int,
    reset_moments: Flag = False,
    dry_run: Flag = False,
    training: TrainingOptions,
    storage: StorageOptions,
    hardware: HardwareOptions,
    track: Track = (),
) -> None:
    """Continue a stored run from one of its steps with other settings.

    The forks are stored in the same folder. What is not given stays as in the parent: its data, the order of its
    batches, its optimiser.

    Args:
        at: The step at which the forks begin.
        reset_moments: Start Adam's moments at zero instead of keeping them.
        dry_run: Print runs, time, memory and disk space, and train nothing.

    Examples:
        grokscope fork runs/first add_mod97_s0 --at 1000 --weight-decay 1 2 3
    """
    parent = open_runs(folder)[run].spec
    origin = Fork(parent.content_hash, at, "reset" if reset_moments else "kept")
    branches = tuple(combinations(parent, {"fork": [origin], **given(training)}))

    reject({"--dry-run trains nothing: leave out --track": bool(dry_run and track)})
    if not given(training) and not reset_moments:
        print(
            "this fork changes nothing: it repeats its parent, as a control; --weight-decay gives it another λ",
            file=sys.stderr,
        )

    from grokscope.cli.plans import device_here, finish, print_cost, reject_damaged, run_with_progress

    place = device_here(hardware.device)
    plan = Plan(str(folder), branches, place, deterministic=hardware.deterministic, **given(storage))
    if dry_run:
        print_cost(plan, ExecutorOptions())
        return
    finish(plan, run_with_progress(plan, track))
    reject_damaged(plan)
