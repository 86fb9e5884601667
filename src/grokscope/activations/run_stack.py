"""Runs of one task and one architecture, each at one step, or one run at several steps."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import torch
from torch import Tensor

from grokscope.activations.conditioned import ConditionedMeans, Conditioning, RunningMeans, condition_of
from grokscope.activations.subject import Edits, InputEdit, Need, Subject, lacking_needs
from grokscope.errors import require
from grokscope.model import Loss, Taps, Weights, forward, hidden_sites, layout_of, padded_sizes
from grokscope.model.sites import READ_POSITION_ONLY
from grokscope.shapes import Float, Int
from grokscope.specs import Architecture, RunSpec
from grokscope.tasks import named_task, shuffled_labels, split

__all__ = ["RunStack", "subject_of"]

PAIRS_AT_ONCE = {
    "cpu": 2048,
    "cuda": 2**18,
    "mps": 2**16,
}  # pairs × runs: what stays near a CPU's cache, what fills a GPU
LEAST_PAIRS = 64  # in a chunk, however many runs


@dataclass(frozen=True, eq=False)
class RunStack(Subject):
    """A stack of grokscope's own runs: the subject that can be asked for everything."""

    weights: Weights
    """Parameters [runs, …], by name."""
    architecture: Architecture
    """The model that all of them share."""
    training_loss: Loss = "cross_entropy"
    """What they were trained to minimise."""

    @property
    def loss(self) -> Loss:
        """What they were trained to minimise."""
        return self.training_loss

    @property
    def offers(self) -> frozenset[Need]:
        """Everything of these weights, unless the task lacks it."""
        return frozenset(get_args(Need)) - lacking_needs(self.task) - {"trajectory"}

    @property
    def hidden_sites(self) -> tuple[str, str]:
        """The first and the last block's neurons, or their attention outputs without MLPs."""
        return hidden_sites(self.architecture)

    def chunks(self) -> Iterator[slice]:
        """Rows of the task, as many at once as the device likes."""
        inputs = self.task.rows
        size = max(LEAST_PAIRS, PAIRS_AT_ONCE[self.device.type] // len(self))
        return (slice(start, min(start + size, inputs)) for start in range(0, inputs, size))

    def parts(
        self, sites: Iterable[str], edits: Edits | None = None, every_position: bool = False
    ) -> Iterator[tuple[slice, dict[str, Tensor]]]:
        """Sites' values chunk by chunk of the inputs, with the rows that each chunk holds.

        A value is [runs, inputs, …] at the last position, or [runs, inputs, positions, …] if every one is wanted; an
        attention pattern is what the last position (or each) sees, [runs, inputs, heads, positions].
        """
        wanted = frozenset(sites)
        for rows in self.chunks():
            bound = {site: _bound(edit, rows) for site, edit in (edits or {}).items()}
            values = self.run(self.given(rows), Taps(read=wanted, edits=bound, stops=True))
            yield rows, {site: self.view(site, values[site], every_position) for site in wanted}

    def given(self, rows: slice) -> Int[Tensor, "length rows"] | Float[Tensor, "rows features"]:
        """What the models read of some rows."""
        if self.task.vectors is None:
            assert self.task.tokens is not None
            return torch.tensor(self.task.tokens[rows].T, device=self.device)
        return torch.tensor(self.task.vectors[rows], device=self.device, dtype=next(iter(self.weights.values())).dtype)

    def run(self, given: Int[Tensor, "length rows"] | Float[Tensor, "rows features"], taps: Taps) -> dict[str, Tensor]:
        """One forward pass of all runs over the same inputs; the values that were read."""
        classes = torch.full((len(self),), self.task.classes, device=self.device)
        with torch.no_grad():
            stacked = given.expand(len(self), -1, -1)
            forward(self.weights, self.architecture, stacked, classes=classes, taps=taps)
        return taps.values

    def means(self, site: str, by: Conditioning = "", *, every_position: bool = False) -> ConditionedMeans:
        """A[s, j] of a site (paper: Eq. 2, and φ_j of §7).

        Sums are float64: A varies by 1e-4 of the activations, and a sum over p pairs in float32 would lose half of
        that. With `every_position`, the positions are taken as further neurons.
        """
        condition = condition_of(self.task, by)
        total = RunningMeans(condition.size, torch.tensor(condition.values, device=self.device))
        for rows, values in self.parts([site], every_position=every_position):
            total.add(values[site], rows)
        found = total.means()
        self.require_numbers(f"activations at {site}", found.finite)
        return found

    def read(self, site: str, edits: Edits | None = None) -> Float[Tensor, "runs inputs *rest"]:
        """A site's value at the last position for every pair."""
        return torch.cat([values[site] for _, values in self.parts([site], edits)], dim=1)

    def read_parts(self, site: str) -> Iterator[tuple[slice, Float[Tensor, "runs rows *rest"]]]:
        """The same chunk by chunk."""
        return ((rows, values[site]) for rows, values in self.parts([site]))

    def logit_parts(self, edits: Edits | None = None) -> Iterator[tuple[slice, Float[Tensor, "runs rows classes"]]]:
        """Logits chunk by chunk."""
        return ((rows, values["logits"]) for rows, values in self.parts(["logits"], edits))

    def select(self, runs: Sequence[int]) -> "RunStack":
        """Some of its runs."""
        index = torch.tensor(list(runs), device=self.device)
        weights = {name: value[index] for name, value in self.weights.items()}
        names = tuple(self.names[i] for i in runs)
        return replace(self, weights=weights, is_train=self.is_train[index], labels=self.labels[index], names=names)

    def view(self, site: str, value: Tensor, every_position: bool) -> Tensor:
        """What is read of a site's value [runs, positions, inputs, …]: a view [runs, inputs, …]."""
        if site in READ_POSITION_ONLY:
            return value[..., : self.task.classes] if site == "logits" else value
        if site.endswith("hook_pattern"):  # [runs, queries, keys, inputs, heads]
            value = value.movedim(2, -1)
        return value.movedim(1, 2) if every_position else value[:, -1]


def _bound(edit: InputEdit, rows: slice) -> Callable[[Tensor], Tensor]:
    return lambda value: edit(value, rows)


def subject_of(
    specs: Sequence[RunSpec],
    weights: Float[Tensor, "runs parameters"],
    names: Sequence[str] = (),
) -> RunStack:
    """Runs of one task and architecture from their flat weights, as a stack in training or a padded checkpoint.

    >>> from grokscope.specs import Architecture, RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> specs = [RunSpec("add_mod5", architecture=small).with_seed(seed) for seed in (0, 1)]
    >>> subject = subject_of(specs, initial_state(Cohort(specs)).weights)
    >>> len(subject), subject.names, subject.logits().shape
    (2, ('run 0', 'run 1'), torch.Size([2, 25, 5]))
    """
    kinds = {(spec.task, spec.architecture, spec.training.loss) for spec in specs}
    require(len(kinds) == 1, f"a subject's runs must share task, architecture and loss, got {len(kinds)} kinds")
    task, architecture = named_task(specs[0].task), specs[0].architecture
    layout = layout_of(architecture, padded_sizes(task))
    is_train = np.zeros((len(specs), task.rows), dtype=bool)
    labels = np.empty((len(specs), *task.answers.shape), dtype=task.answers.dtype)
    known: dict[RunSpec, int] = {}  # the checkpoints of one run have one split
    for i, spec in enumerate(specs):
        first = known.setdefault(spec, i)
        if first < i:
            is_train[i], labels[i] = is_train[first], labels[first]
            continue
        is_train[i] = split(task, spec.train_fraction, spec.seeds.split).mask
        labels[i] = shuffled_labels(task, spec.seeds.split) if spec.shuffled_labels else task.answers
    called = tuple(names) or tuple(f"run {i}" for i in range(len(specs)))
    device = weights.device
    tables = (torch.from_numpy(is_train).to(device), torch.from_numpy(labels).to(device))
    return RunStack(task, *tables, called, layout.views(weights), architecture, specs[0].training.loss)
