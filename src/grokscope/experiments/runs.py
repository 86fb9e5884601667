"""Stored runs, for people who analyse them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.experiments.store import RunFolder, Store
from grokscope.model import Taps, Twin, forward, layout_of, padded_size, twin_of
from grokscope.shapes import Float
from grokscope.specs import RunSpec
from grokscope.tasks import Task, named_task
from grokscope.training.checkpoint import padded_row

__all__ = ["Checkpoint", "Run", "Runs", "open_runs"]

INPUTS_AT_ONCE = 4096


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
        size = padded_size(self.task.symbols)
        layout = layout_of(self.spec.architecture, size)
        weights = layout.views(padded_row(self.tensors, layout, self.task.symbols)["weights"][None])
        tokens = torch.tensor(self.task.tokens.T)[None]
        classes = torch.tensor([self.task.classes])
        parts = []
        for start in range(0, tokens.shape[2], INPUTS_AT_ONCE):
            part = tokens[..., start : start + INPUTS_AT_ONCE]
            taps = Taps(read=frozenset([site]))
            with torch.no_grad():
                forward(weights, self.spec.architecture, part, classes=classes, taps=taps)
            parts.append(_at_the_last_position(site, taps.values[site][0]))
        everything = torch.cat(parts)
        return everything[..., : self.task.classes] if site == "logits" else everything

    def module(self) -> Twin:
        """The model as a plain `nn.Module`, in evaluation mode."""
        layout = layout_of(self.spec.architecture, padded_size(self.task.symbols))
        row = padded_row(self.tensors, layout, self.task.symbols)
        return twin_of(self.spec.architecture, self.task.symbols, layout.views(row["weights"][None])).eval()


def _at_the_last_position(site: str, value: Float[Tensor, "..."]) -> Float[Tensor, "inputs *rest"]:
    if site in ("logits", "ln_final.hook_normalized"):  # computed there only
        return value
    return value[-1].movedim(0, -1) if site.endswith("hook_pattern") else value[-1]


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

    def module(self, step: int) -> Twin:
        """The run at a stored step as a plain `nn.Module`."""
        return self.at(step).module()

    def summary(self) -> dict[str, Any]:
        """One row of `Runs.table`."""
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
        }


class Runs:
    """All runs of a folder."""

    def __init__(self, path: Path | str) -> None:
        self.store = Store(path)

    def __iter__(self) -> Iterator[Run]:
        return (Run(folder) for folder in self.store)

    def __len__(self) -> int:
        return sum(1 for _ in self.store)

    def __getitem__(self, name: str) -> Run:
        """The run with this name, hash, or unambiguous beginning of either."""
        return Run(self.store.find(name))

    def table(self) -> list[dict[str, Any]]:
        """One row per run: run, task, seed, weight_decay, outcome, memorized, grokked, fork_step."""
        return [run.summary() for run in self]


def open_runs(path: Path | str) -> Runs:
    """The runs stored in a folder."""
    if not Path(path).is_dir():
        siblings = [p.name for p in Path(path).parent.iterdir()] if Path(path).parent.is_dir() else []
        raise InputError(f"there is no folder {shown(str(path))}{did_you_mean(Path(path).name, siblings)}")
    return Runs(path)
