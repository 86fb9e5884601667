"""`grokscope resume`: unfinished runs continue."""

from dataclasses import replace

from grokscope.cli.options import ExecutorOptions, HardwareOptions, Place, StorageOptions, Track, given
from grokscope.errors import InputError
from grokscope.runs import is_remote, kept_plans, open_runs, open_store
from grokscope.runs.runs import SUMMARIZED
from grokscope.specs import Plan

__all__ = ["resume"]


def resume(
    folder: Place,
    *,
    storage: StorageOptions,
    hardware: HardwareOptions,
    executor: ExecutorOptions,
    track: Track = (),
) -> None:
    """Continue every unfinished run of a folder.

    Each run continues from its newest complete state, as its stored plan says, on the same device to the same bytes. An
    accelerator needs the same --runs-per-shard and --memory-gib for that. Storage options are for runs that no plan
    of the folder names.

    Examples:
        grokscope resume runs/first
    """
    executor.check()
    with open_store(folder, only=("format", *SUMMARIZED)) as store:
        if not is_remote(folder):
            open_runs(folder)  # rejects what is not there
        known = kept_plans(store)
        plans = [plan for plan in known if not all(map(store.is_finished, plan.runs))]
        planned = {spec for plan in known for spec in plan.runs}
        others = tuple(run.spec for run in store if not run.outcome.is_finished and run.spec not in planned)
    if given(storage) and not others:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given(storage))
        raise InputError(f"{options} would have no effect: a plan in {folder} names every unfinished run")

    from grokscope.cli.plans import device_here
    from grokscope.cli.progress import finish, run_with_progress

    place = device_here(hardware.device, elsewhere=executor.executor != "local")
    if hardware.device != "auto":
        plans = [replace(plan, device=place) for plan in plans]
    if hardware.deterministic:
        plans = [replace(plan, deterministic=True) for plan in plans]
    if others:
        plans.append(Plan(folder, others, place, deterministic=hardware.deterministic, **given(storage)))
    for plan in plans:  # the complete plan, so that every run keeps its slot
        finish(plan, run_with_progress(plan, track, executor))
    if not plans:
        print(f"every run in {folder} is finished")
