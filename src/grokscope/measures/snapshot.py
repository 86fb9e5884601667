"""The logged columns: accuracies, losses, norm, block-0 FSD and rank of every run in training, over all pairs.

The compiled fast path of the measures `memorization`, `norms`, `fsd` and `rank`; a test compares every column
with theirs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from grokscope.activations import answer_sums
from grokscope.measures.rank import fourier_rank
from grokscope.measures.spectrum import CONSTANT_SHARE, mode_number, spectrum
from grokscope.measures.synchronization import fsd
from grokscope.model import forward, forward_with_hidden, last_hidden, pair_scores
from grokscope.shapes import Float
from grokscope.tasks import Task
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
    """Share of the training pairs answered right."""
    validation_accuracy: Float[Tensor, " runs"]
    """Share of all other pairs answered right, whatever labels the loss saw."""
    train_loss: Float[Tensor, " runs"]
    """Mean cross-entropy over the training pairs, of the labels the loss sees."""
    validation_loss: Float[Tensor, " runs"]
    """Mean cross-entropy over all other pairs, of the true answers."""
    norm: Float[Tensor, " runs"]
    """‖W‖, the Frobenius norm of all parameters together."""
    fsd: Float[Tensor, " runs"]
    """FSD of block 0 in the task's faithful basis (FSD_gen for a group); NaN where undefined."""
    fsd_mode: Float[Tensor, " runs"]
    """Its dominant mode in that basis, counted from 1: on Z_n the frequency; NaN where FSD is undefined."""
    rank: Float[Tensor, " runs"]
    """Median Fourier rank of block 0's neurons in that basis; NaN where undefined."""
    answer_share: Float[Tensor, " runs"]
    """Variance of block 0's answer-conditioned means over that of its activations, the share of the activation
    variance that depends on the answer; NaN where the activations do not vary beyond rounding."""

    def row(self, slot: int) -> dict[str, float]:
        """One run's values."""
        return {f.name: float(getattr(self, f.name)[slot]) for f in fields(self)}


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
        self.exact = cohort.exact
        self.home = torch.device("cpu") if cohort.device.type == "mps" else cohort.device  # where float64 can be
        tables, inputs = cohort.tables, cohort.tables.tokens.shape[2]
        self.chunk = min(inputs, max(256, INPUTS_AT_ONCE[cohort.device.type] // len(cohort)))
        # Where every answer has equally many pairs, these stand together, and a chunk of whole answers is summed as it
        # is; otherwise each pair is added to its answer.
        self.pairs_per_answer = _pairs_per_answer(cohort)
        if self.pairs_per_answer:
            answers = inputs // self.pairs_per_answer
            chunks = -(-answers // max(1, self.chunk // self.pairs_per_answer))
            self.chunk = -(-answers // chunks) * self.pairs_per_answer  # even ones: the last is padded least
        padding = -inputs % self.chunk
        # True answers for validation, the loss's labels for training pairs; −1 leaves a pair out.
        labels = torch.where(tables.is_train, tables.labels, tables.answers)
        self.tokens = _padded(tables.tokens, padding, 0)
        self.labels = _padded(labels, padding, 0)
        self.is_train = _padded(tables.is_train, padding, False)
        self.is_validation = _padded(tables.is_real & ~tables.is_train, padding, False)
        self.answers = _padded(tables.answers.where(tables.is_real, -1), padding, -1)
        self.answer_counts = pairs_by_answer(cohort, self.home)
        compiler = partial(torch.compile, fullgraph=True, dynamic=False) if compiled else lambda function: function
        self.scores: Callable[..., Tensor] = compiler(self._scores)
        self.sums: Callable[..., tuple[Tensor, Tensor]] = compiler(self._sums)
        self.both: Callable[..., tuple[Tensor, Tensor, Tensor]] = compiler(self._both)
        self.is_exact = cohort.key.precision in ("float32", "float64")

    def read(self, flat: Tensor, scores: bool = True) -> Snapshot:
        totals = torch.zeros(self.runs, 6, dtype=self.exact, device=flat.device)
        origin = self.origin(flat)
        sums: list[tuple[Tensor, Tensor]] = []
        for start in range(0, self.tokens.shape[2], self.chunk):
            part = slice(start, start + self.chunk)
            tokens = self.tokens[..., part].contiguous()
            answers, labels = self.answers[:, part].contiguous(), self.labels[:, part].contiguous()
            masks = (self.is_train[:, part], self.is_validation[:, part])
            # FSD reads a variation of 1e-4 of the activations: full precision, so only then one pass serves both.
            with arithmetic("float32"):
                if scores and self.is_exact:
                    found, *read = self.both(flat, tokens, answers, labels, *masks, origin)
                    totals += found
                    sums.append((read[0], read[1]))
                else:
                    sums.append(self.sums(flat, tokens, answers, origin))
            if scores and not self.is_exact:
                with arithmetic(self.cohort_key.precision):
                    totals += self.scores(flat, tokens, labels, *masks)
        means = BlockMeans(*self._joined(sums), origin.to(self.home).double())
        block0 = block0_columns(means, self.slots_by_task, self.answer_counts)
        train, validation = totals[:, :3], totals[:, 3:]
        columns = [
            train[:, 0] / train[:, 2],
            validation[:, 0] / validation[:, 2],
            train[:, 1] / train[:, 2],
            validation[:, 1] / validation[:, 2],
            self._norm(flat) if scores else torch.full_like(train[:, 0], torch.nan),
            *block0,
        ]
        return Snapshot(*torch.stack([column.to(self.home).double() for column in columns]).cpu())

    def origin(self, flat: Tensor) -> Tensor:
        """One activation of each neuron, around which sums are taken: around 0, float32 would lose what varies."""
        with arithmetic("float32"):
            return last_hidden(self.layout.views(flat), self.architecture, self.tokens[..., :1].contiguous())

    def _norm(self, flat: Tensor) -> Tensor:
        return torch.linalg.vector_norm(flat, dim=1, dtype=self.exact)

    def _scores(self, flat: Tensor, tokens: Tensor, labels: Tensor, train: Tensor, validation: Tensor) -> Tensor:
        """(right, loss, count) over the chunk's training pairs, then over its validation pairs."""
        weights = self.layout.views(flat)
        logits = forward(weights, self.architecture, tokens, classes=self.cohort_classes, compute=self.compute)
        return self._scored(logits, labels, train, validation)

    def _both(
        self,
        flat: Tensor,
        tokens: Tensor,
        answers: Tensor,
        labels: Tensor,
        train: Tensor,
        validation: Tensor,
        origin: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """`_scores` and `_sums` in one pass."""
        weights = self.layout.views(flat)
        logits, hidden = forward_with_hidden(weights, self.architecture, tokens, self.cohort_classes)
        return self._scored(logits, labels, train, validation), *self._summed(hidden - origin, answers)

    def _scored(self, logits: Tensor, labels: Tensor, train: Tensor, validation: Tensor) -> Tensor:
        right, loss = pair_scores(logits, labels)
        parts = [torch.where(mask, value, 0) for mask in (train, validation) for value in (right, loss, 1.0)]
        return torch.stack([part.sum(dim=1, dtype=self.exact) for part in parts], dim=1)

    def _sums(self, flat: Tensor, tokens: Tensor, answers: Tensor, origin: Tensor) -> tuple[Tensor, Tensor]:
        """Σx and Σx² of each neuron around its origin over the pairs with each answer: the chunk's own, or all."""
        return self._summed(last_hidden(self.layout.views(flat), self.architecture, tokens) - origin, answers)

    def _summed(self, hidden: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
        if self.pairs_per_answer:
            by_answer = hidden.view(len(hidden), -1, self.pairs_per_answer, hidden.shape[-1])
            return by_answer.sum(dim=2), by_answer.square().sum(dim=2)
        both = (answer_sums(x, answers, self.cohort_key.size) for x in (hidden, hidden.square()))
        return next(both), next(both)

    def _joined(self, parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """The chunks' sums as one, in float64."""
        sums, squares = ([part.to(self.home) for part in kind] for kind in zip(*parts, strict=True))
        if self.pairs_per_answer:
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


def pairs_by_answer(cohort: Cohort, device: torch.device) -> dict[Task, Tensor]:
    """How many pairs of each task have each answer."""
    return {
        task: torch.tensor(np.bincount(task.answers, minlength=task.classes), device=device)
        for task in cohort.slots_by_task
    }


def block0_columns(
    means: BlockMeans, slots_by_task: Mapping[Task, Tensor], counts: Mapping[Task, Tensor], at_once: int = 0
) -> list[Tensor]:
    """FSD, dominant mode, median rank and answer share, task by task: each has its own answers and basis.

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
    sums, squares = (part[:, : task.classes].contiguous() for part in (read.sums, read.squares))
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


def _pairs_per_answer(cohort: Cohort) -> int:
    """Pairs of each answer, where all runs have one task and all its answers equally many; else 0."""
    counts = {count for task in cohort.slots_by_task for count in np.bincount(task.answers).tolist()}
    return counts.pop() if len(cohort.slots_by_task) == 1 and len(counts) == 1 else 0


def _padded(tensor: Tensor, padding: int, value: int) -> Tensor:
    return torch.nn.functional.pad(tensor, (0, padding), value=value) if padding else tensor
