"""What cannot be trained, said before anything is written."""

from collections.abc import Sequence
from pathlib import Path

from grokscope.errors import InputError, shown
from grokscope.experiments.devices import is_available
from grokscope.experiments.store import Store, run_name
from grokscope.specs import RunSpec
from grokscope.tasks import named_task, train_size
from grokscope.training.checkpoint import named

__all__ = ["refuse_impossible"]


def refuse_impossible(specs: Sequence[RunSpec], store: Store, device: str) -> None:
    """Say what cannot be trained, before anything is written."""
    if not is_available(device):
        raise InputError(f"device {shown(device)} was asked for, and there is none; use cpu")
    if device == "mps" and any(spec.training.dropout or spec.precision == "float64" for spec in specs):
        raise InputError("mps has no float64, which dropout's draws and precision float64 need; use cpu")
    for task, fraction in {(spec.task, spec.train_fraction) for spec in specs}:
        train_size(named_task(task), fraction)
    nearest = next(place for place in (store.path, *store.path.parents, Path()) if place.exists())
    if not nearest.is_dir():
        raise InputError(f"the folder {named(store.path)} could not be made: {named(nearest)} is a file")
    if any(spec.fork for spec in specs):
        _refuse_impossible_forks(specs, store)


def _refuse_impossible_forks(specs: Sequence[RunSpec], store: Store) -> None:
    stored = store.having({spec.fork.parent for spec in specs if spec.fork is not None})
    known = {name: folder.spec for name, folder in stored.items()} | {spec.content_hash: spec for spec in specs}
    for spec in specs:
        if spec.fork is not None:
            parent, name = known.get(spec.fork.parent), spec.fork.parent
            if parent is None:
                raise InputError(f"there is no run {shown(name)} in {named(store.path)} to fork from")
            first = parent.fork.step if parent.fork else 0
            outcome = (stored[name].outcome if name in stored else None) or {}
            last = parent.training.steps if outcome.get("failed_at") is None else outcome["failed_at"]
            if not first <= spec.fork.step <= last:
                raise InputError(f"{run_name(parent)} has states from step {first} to {last}, got {spec.fork.step}")
            shapes = [(s.architecture, named_task(s.task).symbols) for s in (spec, parent)]
            if shapes[0] != shapes[1]:
                raise InputError(f"a fork must have the architecture and symbols of its parent {run_name(parent)}")
