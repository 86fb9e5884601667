"""Runs of one task and one architecture, each at one step: what every measure reads."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from grokscope.errors import InputError
from grokscope.model import Taps, Weights, forward, layout_of, padded_size
from grokscope.shapes import Bool, Float, Int
from grokscope.specs import Architecture, RunSpec
from grokscope.tasks import Task, named_task, shuffled_labels, split

__all__ = ["InputEdit", "Subject", "subject_of"]

InputEdit = Callable[[Tensor, slice], Tensor]
"""What replaces a site's value [runs, positions, inputs, …], given also which rows of `task.inputs` these are."""
PAIRS_AT_ONCE = {
    "cpu": 2048,
    "cuda": 2**18,
    "mps": 2**16,
}  # pairs × runs: what stays near a CPU's cache, what fills a GPU
LEAST_PAIRS = 64  # in a chunk, however many runs
READ_ONLY_THERE = ("logits", "ln_final.hook_normalized")  # sites that exist at the read position alone


@dataclass(frozen=True, eq=False)
class Subject:
    """A stack of runs, and the pairs they are read on. Reading never changes them."""

    weights: Weights
    """Parameters [runs, …], by name."""
    architecture: Architecture
    """The model that all of them share."""
    task: Task
    """What all of them learn."""
    is_train: Bool[Tensor, "runs inputs"]
    """Pairs trained on, in the order of `task.inputs`."""
    labels: Int[Tensor, "runs inputs"]
    """What the loss sees: the answers, or shuffled ones."""
    names: tuple[str, ...]
    """What to call each run in a sentence."""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def device(self) -> torch.device:
        """Where it is computed."""
        return self.is_train.device

    @property
    def answers(self) -> Int[Tensor, " inputs"]:
        """The true answer of every pair."""
        return torch.tensor(self.task.answers, device=self.device)

    def chunks(self) -> Iterator[slice]:
        """Rows of `task.inputs`, as many at once as the device likes."""
        inputs = len(self.task.inputs)
        size = max(LEAST_PAIRS, PAIRS_AT_ONCE[self.device.type] // len(self))
        return (slice(start, min(start + size, inputs)) for start in range(0, inputs, size))

    def parts(
        self, sites: Iterable[str], edits: Mapping[str, InputEdit] | None = None, every_position: bool = False
    ) -> Iterator[tuple[slice, dict[str, Tensor]]]:
        """Sites' values chunk by chunk of the inputs, with the rows that each chunk holds.

        A value is [runs, inputs, …] at the last position, or [runs, positions, inputs, …] if every one is wanted; an
        attention pattern is what the last position (or each) sees, [runs, inputs, heads, positions].
        """
        tokens = torch.tensor(self.task.tokens.T, device=self.device)
        classes = torch.full((len(self),), self.task.classes, device=self.device)
        wanted = frozenset(sites)
        for rows in self.chunks():
            bound = {site: _bound(edit, rows) for site, edit in (edits or {}).items()}
            taps = Taps(read=wanted, edits=bound, stops=True)
            with torch.no_grad():
                part = tokens[None, :, rows].expand(len(self), -1, -1)
                forward(self.weights, self.architecture, part, classes=classes, taps=taps)
            yield rows, {site: self._seen(site, taps.values[site], every_position) for site in wanted}

    def read(self, site: str, edits: Mapping[str, InputEdit] | None = None) -> Float[Tensor, "runs inputs *rest"]:
        """A site's value at the last position for every pair, in the order of `task.inputs`."""
        return torch.cat([values[site] for _, values in self.parts([site], edits)], dim=1)

    def logits(self, edits: Mapping[str, InputEdit] | None = None) -> Float[Tensor, "runs inputs classes"]:
        """Logits of every pair, padded classes cut off."""
        return self.read("logits", edits)

    def select(self, runs: Sequence[int]) -> "Subject":
        """Some of its runs."""
        index = torch.tensor(list(runs), device=self.device)
        weights = {name: value[index] for name, value in self.weights.items()}
        names = tuple(self.names[i] for i in runs)
        return Subject(weights, self.architecture, self.task, self.is_train[index], self.labels[index], names)

    def _seen(self, site: str, value: Tensor, every_position: bool) -> Tensor:
        if site == "logits":
            return value[..., : self.task.classes]
        if site in READ_ONLY_THERE:
            return value
        if site.endswith("hook_pattern"):  # [runs, queries, keys, inputs, heads]
            value = value.movedim(2, -1)
        return value if every_position else value[:, -1]


def _bound(edit: InputEdit, rows: slice) -> Callable[[Tensor], Tensor]:
    return lambda value: edit(value, rows)


def subject_of(
    specs: Sequence[RunSpec],
    weights: Float[Tensor, "runs parameters"],
    names: Sequence[str] = (),
) -> Subject:
    """Runs of one task and architecture from their flat weights, as a cohort or a padded checkpoint has them."""
    kinds = {(spec.task, spec.architecture) for spec in specs}
    if len(kinds) != 1:
        raise InputError(f"a subject's runs must share task and architecture, got {len(kinds)} kinds")
    task, architecture = named_task(specs[0].task), specs[0].architecture
    layout = layout_of(architecture, padded_size(task.symbols))
    is_train = np.zeros((len(specs), len(task.inputs)), dtype=bool)
    labels = np.empty((len(specs), len(task.inputs)), dtype=np.int64)
    for i, spec in enumerate(specs):
        is_train[i, split(task, spec.train_fraction, spec.seeds.split).train] = True
        labels[i] = shuffled_labels(task, spec.seeds.split) if spec.shuffled_labels else task.answers
    called = tuple(names) or tuple(f"run {i}" for i in range(len(specs)))
    device = weights.device
    tables = (torch.from_numpy(is_train).to(device), torch.from_numpy(labels).to(device))
    return Subject(layout.views(weights), architecture, task, *tables, called)
