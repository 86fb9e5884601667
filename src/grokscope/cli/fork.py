"""`grokscope fork`: a stored run continues from one of its steps, with something changed."""

from grokscope.cli.grid import combinations
from grokscope.cli.options import Flag, Folder, HardwareOptions, RunName, StorageOptions, Track, TrainingOptions, given
from grokscope.runs import open_runs
from grokscope.specs import Fork, Plan

__all__ = ["fork"]


def fork(
    folder: Folder,
    run: RunName,
    *,
    at: int,
    reset_moments: Flag = False,
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

    Examples:
        grokscope fork runs/first add_mod97_s0 --at 1000 --weight-decay 1 2 3
    """
    parent = open_runs(folder)[run].spec
    origin = Fork(parent.content_hash, at, "reset" if reset_moments else "kept")
    branches = tuple(combinations(parent, {"fork": [origin], **given(training)}))

    from grokscope.cli.plans import device_here
    from grokscope.cli.progress import finish, run_with_progress

    place = device_here(hardware.device)
    plan = Plan(str(folder), branches, place, deterministic=hardware.deterministic, **given(storage))
    finish(plan, run_with_progress(plan, track))
