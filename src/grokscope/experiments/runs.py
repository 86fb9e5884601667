"""Stored runs, for people who analyse them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grokscope.activations import Subject, subject_of
from grokscope.errors import InputError, did_you_mean, shown
from grokscope.experiments.index import indexed
from grokscope.experiments.store import RunFolder, Store
from grokscope.model import Twin, layout_of, padded_size, twin_of
from grokscope.shapes import Float
from grokscope.specs import RunSpec
from grokscope.tasks import Task, named_task
from grokscope.training.checkpoint import padded_row

__all__ = ["SUMMARIZED", "Checkpoint", "Run", "Runs", "open_runs"]

SUMMARIZED = ("spec.json", "outcome.json")  # what `Run.facts` is made of
BESIDE_TABLE = ("stopped_early", "spec")


@dataclass(frozen=True)
class Checkpoint:
    """A run at one step."""

    spec: RunSpec
    """What was run."""
    step: int
    """Where."""
    tensors: dict[str, Tensor]
    """The stored weights, by name."""

    @property
    def task(self) -> Task:
        """What it learns."""
        return named_task(self.spec.task)

    def activations(self, site: str) -> Float[Tensor, "inputs *rest"]:
        """A site's value at the last position for every pair, in the order of `task.inputs`.

        Sites of single heads are [inputs, heads, …]; an attention pattern is what the last position sees of each.
        """
        return self.subject().read(site)[0]

    def subject(self) -> Subject:
        """What measures read: a stack of this one run."""
        return _subject([self], [f"{self.spec.task} at step {self.step}"])

    def module(self) -> Twin:
        """The model as a plain `nn.Module`, in evaluation mode."""
        layout = layout_of(self.spec.architecture, padded_size(self.task.symbols))
        row = padded_row(self.tensors, layout, self.task.symbols)
        return twin_of(self.spec.architecture, self.task.symbols, layout.views(row["weights"][None])).eval()


def _subject(checkpoints: Sequence[Checkpoint], names: Sequence[str], device: str = "cpu") -> Subject:
    first = checkpoints[0]
    layout = layout_of(first.spec.architecture, padded_size(first.task.symbols))
    rows = [padded_row(one.tensors, layout, one.task.symbols)["weights"] for one in checkpoints]
    return subject_of([one.spec for one in checkpoints], torch.stack(rows).to(device), names)


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

    def log(self) -> dict[str, np.ndarray]:
        """Measurements as columns: step, train_accuracy, validation_accuracy, losses, norm, fsd and λ."""
        rows = self.folder.log()
        names = list(rows[0]) if rows else []
        return {name: np.array([np.nan if row[name] is None else row[name] for row in rows]) for name in names}

    def at(self, step: int) -> Checkpoint:
        """The run at a stored step."""
        return Checkpoint(self.spec, step, self.folder.weights_at(step))

    def subject(self, steps: Sequence[int] | None = None, device: str = "cpu") -> Subject:
        """What measures read: the run at some of its stored steps (all if not given), stacked as if they were runs."""
        chosen = self.steps if steps is None else tuple(steps)
        if not chosen:
            raise InputError(f"{self.name} has no stored weights")
        names = [f"{self.name} at step {step}" for step in chosen]
        return _subject([self.at(step) for step in chosen], names, device)

    def module(self, step: int) -> Twin:
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
