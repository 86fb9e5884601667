"""The logged columns: accuracies, losses, norm, block-0 FSD and rank of every run in training, over all rows.

The compiled fast path of the measures `memorization`, `norms`, `fsd` and `rank`; a test compares every column
with theirs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from grokscope.activations import answer_sums
from grokscope.measures.rank import fourier_rank
from grokscope.measures.spectrum import CONSTANT_SHARE, mode_number, spectrum
from grokscope.measures.synchronization import fsd
from grokscope.model import forward, forward_with_hidden, last_hidden, row_scores
from grokscope.shapes import Float
from grokscope.tasks import PADDING, Task
from grokscope.training import Cohort, arithmetic

__all__ = ["Snapshot", "snapshot"]

INPUTS_AT_ONCE = {
    "cpu": 2048,
    "cuda": 2**18,
    "mps": 2**16,
}  # pairs × runs: what stays in a CPU's cache, what fills a GPU


@dataclass(frozen=True)
class Snapshot:
    """One evaluation of a stack of runs in training; every field has a value for each run, on the CPU."""

    train_accuracy: Float[Tensor, " runs"]
    """Share of the training rows answered right: real answers with a squared error below `Task.success_error`."""
    validation_accuracy: Float[Tensor, " runs"]
    """Share of the validation rows answered right, whatever labels the loss saw."""
    train_loss: Float[Tensor, " runs"]
    """Mean cross-entropy over the training rows, of the labels the loss sees; mean squared error of real answers."""
    validation_loss: Float[Tensor, " runs"]
    """The same over the validation rows, of the true answers."""
    norm: Float[Tensor, " runs"]
    """‖W‖, the Frobenius norm of all parameters together."""
    fsd: Float[Tensor, " runs"]
    """FSD of block 0 in the task's faithful basis (FSD_gen for a group); NaN where undefined, or without a basis."""
    fsd_mode: Float[Tensor, " runs"]
    """Its dominant mode in that basis, counted from 1: on Z_n the frequency; NaN where FSD is undefined."""
    rank: Float[Tensor, " runs"]
    """Median Fourier rank of block 0's neurons in that basis; NaN where undefined."""
    answer_share: Float[Tensor, " runs"]
    """Variance of block 0's answer-conditioned means over that of its activations, the share of the activation
    variance that depends on the answer; NaN where the activations do not vary beyond rounding."""

    more: tuple[Mapping[str, float], ...] = ()
    """Of each run what not every task has: `NAME_accuracy` and `NAME_loss` of each group of rows that is held out, and
    of real answers `train_relative_error` and `validation_relative_error`, the loss over `Task.success_error`."""

    @classmethod
    def of(cls, columns: Float[Tensor, "columns runs"], more: tuple[Mapping[str, float], ...] = ()) -> "Snapshot":
        """From the columns that every task has, in the order of the fields."""
        names = (f.name for f in fields(cls) if f.name != "more")
        common: dict[str, Any] = dict(zip(names, columns, strict=True))
        return cls(**common, more=more)

    def row(self, slot: int) -> dict[str, float]:
        """One run's values."""
        common = {f.name: float(getattr(self, f.name)[slot]) for f in fields(self) if f.name != "more"}
        return common | dict(self.more[slot] if self.more else {})


def snapshot(
    weights: Float[Tensor, "runs parameters"], cohort: Cohort, compiled: bool | None = None, *, scores: bool = True
) -> Snapshot:
    """Measure every run of a stack in training. The weights are only read.

    Without `scores`, accuracies, losses and norm are NaN, and only block 0 is computed: a sixth of the cost.

    >>> from grokscope.specs import RunSpec
    >>> from grokscope.training import initial_state
    >>> cohort = Cohort([RunSpec("add_mod5").with_seed(seed) for seed in (0, 1)])
    >>> snapshot(initial_state(cohort).weights, cohort, compiled=False).fsd.shape
    torch.Size([2])
    """
    reader = _READERS.get(cohort)
    if reader is None or reader.asked != compiled:
        reader = _READERS[cohort] = _reader_of(cohort, compiled)
    with torch.no_grad():
        return reader.read(weights, scores)


class Reader(ABC):
    """What reads a stack of runs."""

    asked: bool | None
    """What `snapshot` was asked for."""

    @abstractmethod
    def read(self, flat: Tensor, scores: bool = True) -> Snapshot:
        """Measure every run; without scores, block 0 alone."""


def _reader_of(cohort: Cohort, compiled: bool | None) -> Reader:
    """By kernels on CUDA, where what is read of a run does not depend on the others, unless the reference is wanted."""
    if compiled is None and cohort.has_kernels:
        from grokscope.measures.kernel_snapshot import KernelReader  # Triton comes with torch's CUDA builds alone

        return KernelReader(cohort)
    return _Reader(cohort, compiled)


class _Reader(Reader):
    """The forward passes of one stack of runs, in chunks of equal size so that they compile once."""

    def __init__(self, cohort: Cohort, compiled: bool | None) -> None:
        self.asked, self.cohort_key = compiled, cohort.key
        self.cohort_classes, self.compute = cohort.classes, cohort.compute
        self.layout, self.architecture = cohort.layout, cohort.architecture
        self.slots_by_task, self.runs = cohort.slots_by_task, len(cohort)
        self.loss, self.has_separator, self.exact = cohort.key.loss, cohort.key.sizes.has_separator, cohort.exact
        self.home = torch.device("cpu") if cohort.device.type == "mps" else cohort.device  # where float64 can be
        tables, inputs = cohort.tables, cohort.tables.inputs
        self.groups, self.tasks, self.has_basis = cohort.key.row_groups, cohort.tasks, cohort.key.conditions > 0
        self.chunk = min(inputs, max(256, INPUTS_AT_ONCE[cohort.device.type] // len(cohort)))
        # Where every condition has equally many rows, these stand together, and a chunk of whole conditions is summed
        # as it is; otherwise each row is added to its condition.
        self.rows_per_condition = _rows_per_condition(cohort)
        if self.rows_per_condition:
            conditions = inputs // self.rows_per_condition
            chunks = -(-conditions // max(1, self.chunk // self.rows_per_condition))
            self.chunk = -(-conditions // chunks) * self.rows_per_condition  # even ones: the last is padded least
        padding = -inputs % self.chunk
        self.length = inputs + padding
        # True answers for validation, the loss's labels for training rows; PADDING leaves a row out.
        self.given = _padded(tables.given, padding, 0, axis=_row_axis(tables.given))
        self.labels = _padded(tables.scored_labels, padding, 0)
        self.group = _padded(tables.group, padding, PADDING)
        self.conditions = _padded(tables.conditions, padding, PADDING)
        self.condition_counts = rows_by_condition(cohort, self.home)
        errors = [task.success_error if task.is_real else 0.0 for task in cohort.tasks]
        self.success_errors = torch.tensor(errors, dtype=cohort.dtype, device=cohort.device)
        compiler = partial(torch.compile, fullgraph=True, dynamic=False) if compiled else lambda function: function
        self.scores: Callable[..., Tensor] = compiler(self._scores)
        self.sums: Callable[..., tuple[Tensor, Tensor]] = compiler(self._sums)
        self.both: Callable[..., tuple[Tensor, Tensor, Tensor]] = compiler(self._both)
        self.is_exact = cohort.key.precision in ("float32", "float64")

    def read(self, flat: Tensor, scores: bool = True) -> Snapshot:
        totals = torch.zeros(self.runs, 3 * self.groups, dtype=self.exact, device=flat.device)
        origin = self.origin(flat) if self.has_basis else None
        sums: list[tuple[Tensor, Tensor]] = []
        for start in range(0, self.length, self.chunk):
            part = slice(start, start + self.chunk)
            given = self.given.narrow(_row_axis(self.given), start, self.chunk).contiguous()
            conditions, labels = self.conditions[:, part].contiguous(), self.labels[:, part].contiguous()
            group = self.group[:, part]
            # FSD reads a variation of 1e-4 of the activations: full precision, so only then one pass serves both.
            both = scores and self.is_exact and self.has_basis
            with arithmetic("float32"):
                if both:
                    found, *read = self.both(flat, given, conditions, labels, group, origin)
                    totals += found
                    sums.append((read[0], read[1]))
                elif self.has_basis:
                    sums.append(self.sums(flat, given, conditions, origin))
            if scores and not both:
                with arithmetic(self.cohort_key.precision):
                    totals += self.scores(flat, given, labels, group)
        block0 = [torch.full((self.runs,), torch.nan, dtype=torch.float64)] * 4
        if origin is not None:
            means = BlockMeans(*self._joined(sums), origin.to(self.home).double())
            block0 = block0_columns(means, self.slots_by_task, self.condition_counts)
        right, loss, count = totals.view(self.runs, self.groups, 3).unbind(-1)
        accuracies, losses = (right / count).unbind(1), (loss / count).unbind(1)
        columns = [
            *accuracies[:2],
            *losses[:2],
            self._norm(flat) if scores else torch.full_like(losses[0], torch.nan),
            *block0,
        ]
        apart = torch.stack([*accuracies[2:], *losses[2:], *losses[:2]]).cpu().double()
        common = torch.stack([column.to(self.home).double() for column in columns]).cpu()
        return Snapshot.of(common, tuple(more_columns(task, apart[:, run]) for run, task in enumerate(self.tasks)))

    def origin(self, flat: Tensor) -> Tensor:
        """One activation of each neuron, around which sums are taken: around 0, float32 would lose what varies."""
        with arithmetic("float32"):
            return self._hidden(flat, self.given.narrow(_row_axis(self.given), 0, 1).contiguous())

    def _norm(self, flat: Tensor) -> Tensor:
        return torch.linalg.vector_norm(flat, dim=1, dtype=self.exact)

    def _scores(self, flat: Tensor, given: Tensor, labels: Tensor, group: Tensor) -> Tensor:
        """(right, loss, count) over the chunk's training rows, then its validation rows, then those held out."""
        weights = self.layout.views(flat)
        logits = forward(
            weights,
            self.architecture,
            given,
            classes=self.cohort_classes,
            compute=self.compute,
            has_separator=self.has_separator,
        )
        return self._scored(logits, labels, group)

    def _both(
        self, flat: Tensor, given: Tensor, conditions: Tensor, labels: Tensor, group: Tensor, origin: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """`_scores` and `_sums` in one pass."""
        weights = self.layout.views(flat)
        logits, hidden = forward_with_hidden(weights, self.architecture, given, self.cohort_classes, self.has_separator)
        return self._scored(logits, labels, group), *self._summed(hidden - origin, conditions)

    def _scored(self, logits: Tensor, labels: Tensor, group: Tensor) -> Tensor:
        right, loss = row_scores(logits, labels, self.loss, self.cohort_classes, self.success_errors)
        masks = [group == kind for kind in range(self.groups)]
        parts = [torch.where(mask, value, 0) for mask in masks for value in (right, loss, 1.0)]
        return torch.stack([part.sum(dim=1, dtype=self.exact) for part in parts], dim=1)

    def _sums(self, flat: Tensor, given: Tensor, conditions: Tensor, origin: Tensor) -> tuple[Tensor, Tensor]:
        """Σx and Σx² of each neuron around its origin over the rows of each condition: the chunk's own, or all."""
        return self._summed(self._hidden(flat, given) - origin, conditions)

    def _hidden(self, flat: Tensor, given: Tensor) -> Tensor:
        """Block 0's neurons."""
        return last_hidden(self.layout.views(flat), self.architecture, given, has_separator=self.has_separator)

    def _summed(self, hidden: Tensor, conditions: Tensor) -> tuple[Tensor, Tensor]:
        if self.rows_per_condition:
            by_condition = hidden.view(len(hidden), -1, self.rows_per_condition, hidden.shape[-1])
            return by_condition.sum(dim=2), by_condition.square().sum(dim=2)
        both = (answer_sums(x, conditions, self.cohort_key.conditions) for x in (hidden, hidden.square()))
        return next(both), next(both)

    def _joined(self, parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """The chunks' sums as one, in float64."""
        sums, squares = ([part.to(self.home) for part in kind] for kind in zip(*parts, strict=True))
        if self.rows_per_condition:
            return torch.cat(sums, dim=1).double(), torch.cat(squares, dim=1).double()
        return torch.stack(sums).double().sum(dim=0), torch.stack(squares).double().sum(dim=0)


class BlockMeans(NamedTuple):
    """Sums over block 0's activations at the read position, in float64."""

    sums: Float[Tensor, "runs answers neurons"]
    """Σ(x − origin) over the pairs with each answer."""
    squares: Float[Tensor, "runs answers neurons"]
    """Σ(x − origin)²."""
    origin: Float[Tensor, "runs 1 neurons"]
    """One activation of each neuron."""

    def of(self, slots: Tensor) -> "BlockMeans":
        """Of some runs."""
        return BlockMeans(*(part[slots] for part in self))


def rows_by_condition(cohort: Cohort, device: torch.device) -> dict[Task, Tensor]:
    """How many rows of each task have each condition; nothing of tasks without a basis."""
    return {
        task: torch.tensor(np.bincount(task.condition().values, minlength=task.condition().size), device=device)
        for task in cohort.slots_by_task
        if task.bases
    }


def more_columns(task: Task, apart: Tensor) -> dict[str, float]:
    """Accuracy and loss of each group that is held out, and of real answers the errors by which success is judged."""
    values, count = apart.tolist(), len(task.held_out)
    columns = [f"{name}_{what}" for what in ("accuracy", "loss") for name in task.held_out]
    found = dict(zip(columns, values[: 2 * count], strict=True))
    if task.is_real:
        errors = (loss / task.success_error for loss in values[2 * count :])
        found |= dict(zip(("train_relative_error", "validation_relative_error"), errors, strict=True))
    return found


def block0_columns(
    means: BlockMeans, slots_by_task: Mapping[Task, Tensor], counts: Mapping[Task, Tensor], at_once: int = 0
) -> list[Tensor]:
    """FSD, dominant mode, median rank and answer share, task by task: each has its own conditions and basis.

    With `at_once` runs are read in groups of exactly that many, the last filled up with copies, so that no sum's order
    depends on how many there are.
    """
    runs, device = len(means.sums), means.sums.device
    columns = [torch.full((runs,), torch.nan, dtype=torch.float64, device=device) for _ in range(4)]
    for task, placed in slots_by_task.items():
        for slots in torch.split(placed.to(device), at_once or runs):
            read = torch.cat([slots, slots[:1].expand(max(0, at_once - len(slots)))])
            found = _block0_of(means.of(read), task, counts[task][:, None])
            for column, value in zip(columns, found, strict=True):
                column[slots] = value[: len(slots)].to(column.dtype)
    return columns


def _block0_of(read: BlockMeans, task: Task, counts: Tensor) -> tuple[Tensor, ...]:
    origin, pairs = read.origin, counts.sum()
    sums, squares = (part[:, : len(counts)].contiguous() for part in (read.sums, read.squares))
    away = sums / counts
    moments = [part.sum(dim=1) / pairs for part in (sums, squares)]
    mean_square = moments[1] + origin[:, 0] * (2 * moments[0] + origin[:, 0])
    waves = spectrum(away + origin, task.basis(), mean_square)
    found = fsd(waves.density)
    mean = (away * counts).sum(dim=1, keepdim=True) / pairs
    between = ((away - mean) ** 2 * counts).sum(dim=(1, 2))
    total = squares.sum(dim=(1, 2)) - pairs * (mean**2).sum(dim=(1, 2))
    size = total + pairs * ((mean + origin) ** 2).sum(dim=(1, 2))
    share = (between / total).where(~(total <= CONSTANT_SHARE * size), torch.nan)
    return found.fsd, mode_number(found.mode, found.fsd), fourier_rank(waves.power).median, share


_READERS: "WeakKeyDictionary[Cohort, Reader]" = WeakKeyDictionary()


def _rows_per_condition(cohort: Cohort) -> int:
    """Rows of each condition, where all runs have one task and all its conditions equally many; else 0."""
    if len(cohort.slots_by_task) > 1 or not cohort.key.conditions:
        return 0
    counts = set(np.bincount(cohort.tasks[0].condition().values).tolist())
    return counts.pop() if len(counts) == 1 else 0


def _row_axis(given: Tensor) -> int:
    """Tokens are [runs, positions, rows], vectors [runs, rows, features]."""
    return 1 if given.is_floating_point() else 2


def _padded(tensor: Tensor, padding: int, value: int, axis: int = 1) -> Tensor:
    after = (0, 0) * (tensor.ndim - 1 - axis)
    return torch.nn.functional.pad(tensor, (*after, 0, padding), value=value) if padding else tensor
