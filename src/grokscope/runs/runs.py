"""Stored runs, for people who analyse them.

Listing runs must not wait for torch, so what handles weights is imported where it is used.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.runs.index import indexed
from grokscope.runs.run_folder import RunFolder
from grokscope.runs.store import Store
from grokscope.specs import RunSpec

if TYPE_CHECKING:
    import numpy as np

    from grokscope.activations import RunStack
    from grokscope.model import Twin
    from grokscope.runs.checkpoints import Checkpoint

__all__ = ["SUMMARIZED", "Run", "Runs", "open_runs"]

SUMMARIZED = ("spec.json", "outcome.json")  # what `Run.facts` is made of
BESIDE_TABLE = ("stopped_early", "spec")


@dataclass(frozen=True)
class Run:
    """One stored run."""

    folder: RunFolder
    """Where it is stored."""

    @property
    def name(self) -> str:
        """Its folder's name."""
        return self.folder.name

    @property
    def spec(self) -> RunSpec:
        """What it is."""
        return self.folder.spec

    @property
    def steps(self) -> tuple[int, ...]:
        """Steps with stored weights."""
        return tuple(self.folder.checkpoints("weights"))

    def log(self) -> "dict[str, np.ndarray]":
        """Measurements as columns: step, train_accuracy, validation_accuracy, losses, norm, fsd and λ."""
        import numpy as np

        rows = self.folder.log()
        names = list(rows[0]) if rows else []
        return {name: np.array([np.nan if row[name] is None else row[name] for row in rows]) for name in names}

    def at(self, step: int) -> "Checkpoint":
        """The run at a stored step."""
        from grokscope.runs.checkpoints import Checkpoint

        return Checkpoint(self.spec, step, self.folder.weights_at(step))

    def subject(self, steps: Sequence[int] | None = None, device: str = "cpu") -> "RunStack":
        """What measures read: the run at some of its stored steps (all if not given), stacked as if they were runs."""
        chosen = self.steps if steps is None else tuple(steps)
        if not chosen:
            raise InputError(f"{self.name} has no stored weights")
        from grokscope.runs.checkpoints import stacked

        names = [f"{self.name} at step {step}" for step in chosen]
        return stacked([self.at(step) for step in chosen], names, device)

    def module(self, step: int) -> "Twin":
        """The run at a stored step as a plain `nn.Module`."""
        return self.at(step).module()

    def summary(self) -> dict[str, Any]:
        """One row of `Runs.table`."""
        return _row(self.facts())

    def facts(self) -> dict[str, Any]:
        """The same, whether it was stopped early, and its spec without what is a default: all that an index keeps."""
        outcome = self.folder.outcome or {}
        return {
            "run": self.name,
            "task": self.spec.task,
            "seed": self.spec.seeds.data_order,
            "weight_decay": self.spec.training.weight_decay,
            "outcome": outcome.get("outcome", "unfinished"),
            "memorized": outcome.get("memorized"),
            "grokked": outcome.get("grokked"),
            "fork_step": self.spec.fork.step if self.spec.fork else None,
            "stopped_early": bool(outcome.get("stopped_early")),
            "spec": self.spec.to_short_dict(),
        }


def _row(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name not in BESIDE_TABLE}


class Runs:
    """All runs of a folder."""

    def __init__(self, path: Path | str) -> None:
        self.store = Store(path)

    def __iter__(self) -> Iterator[Run]:
        return (Run(folder) for folder in self.store)

    def __len__(self) -> int:
        return len(self.store.names())

    def __getitem__(self, name: str) -> Run:
        """The run with this name, hash, or unambiguous beginning of either."""
        return Run(self.store.find(name))

    def table(self) -> list[dict[str, Any]]:
        """One row per run: run, task, seed, weight_decay, outcome, memorized, grokked, fork_step.

        Of many runs, what was read before and has not changed since comes from an index beside them.
        """
        return [_row(facts) for facts in self.facts()]

    def facts(self) -> list[dict[str, Any]]:
        """`Run.facts` of every run, likewise."""
        names = self.store.names()
        return indexed(self.store.path, names, SUMMARIZED, lambda name: Run(self.store.folder(name)).facts())


def open_runs(path: Path | str) -> Runs:
    """The runs stored in a folder."""
    if not Path(path).is_dir():
        siblings = [p.name for p in Path(path).parent.iterdir()] if Path(path).parent.is_dir() else []
        raise InputError(f"there is no folder {shown(str(path))}{did_you_mean(Path(path).name, siblings)}")
    return Runs(path)
