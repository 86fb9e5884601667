"""Whether a finished run is whole: its spec, its outcome, and every measurement that its log must hold."""

from collections.abc import Sequence
from pathlib import Path

from grokscope.experiments.states import look_steps
from grokscope.experiments.store import RunFolder, Store, torn_lines
from grokscope.training.checkpoint import DamagedError

__all__ = ["damage_of", "damaged_runs", "set_aside"]


def damage_of(folder: RunFolder) -> str | None:
    """What is wrong with a run, in a few words; None if it is whole, or not finished yet."""
    try:
        outcome = folder.outcome
    except DamagedError as error:
        return str(error)
    if outcome is None:
        return None
    if torn := torn_lines(folder):
        return f"{torn} lines of its logs are torn or altered"
    first = folder.spec.fork.step if folder.spec.fork else 0
    logged = {row["step"] for row in folder.log()}
    ended = outcome["failed_at"] if outcome["failed_at"] is not None else max(logged, default=0)
    last = ended if outcome["failed_at"] is not None or outcome["stopped_early"] else folder.spec.training.steps
    missing = sorted(step for step in {first, *look_steps(folder.spec)} if first <= step <= last and step not in logged)
    missing = [step for step in missing if outcome["failed_at"] is None or step < last]
    return f"its log lacks {len(missing)} measurements, the first at step {missing[0]}" if missing else None


def damaged_runs(store: Store) -> dict[str, str]:
    """The damaged runs of a store, by name, with what is wrong."""
    found = {}
    for path in store.paths():
        try:
            why = damage_of(store.folder(path))
        except DamagedError as error:
            why = str(error)
        if why is not None:
            found[path.name] = why
    return found


def set_aside(store: Store, names: Sequence[str]) -> list[Path]:
    """Move runs out of the way, so that they are trained again; nothing is deleted."""
    moved = []
    for name in names:
        place = store.path / f".damaged-{name}"
        number = 1
        while place.exists():
            number += 1
            place = store.path / f".damaged-{name}.{number}"
        moved.append((store.path / name).rename(place))
    return moved
