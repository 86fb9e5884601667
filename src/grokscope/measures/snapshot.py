"""The logged columns: accuracies, losses, norm, block-0 FSD and rank of every run in training, over all pairs.

The compiled fast path of the measures `memorization`, `norms`, `fsd` and `rank`; a test compares every column
with theirs.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
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
    """
    compiled = cohort.device.type == "cuda" if compiled is None else compiled
    reader = _READERS.get(cohort)
    if reader is None or reader.compiled != compiled:
        reader = _READERS[cohort] = _Reader(cohort, compiled)
    with torch.no_grad():
        return reader.read(weights, scores)


class _Reader:
    """The forward passes of one stack of runs, in chunks of equal size so that they compile once."""

    def __init__(self, cohort: Cohort, compiled: bool) -> None:
        self.compiled, self.cohort_key = compiled, cohort.key
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
        self.answer_counts = {
            task: torch.tensor(np.bincount(task.answers, minlength=task.classes), device=self.home)
            for task in cohort.slots_by_task
        }
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
        block0 = self._block0(*self._joined(sums), origin.to(self.home).double())
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

    def _block0(self, sums: Tensor, squares: Tensor, origin: Tensor) -> list[Tensor]:
        """FSD, dominant mode, median rank and answer share, task by task: each has its own answers and basis."""
        columns = [torch.full((self.runs,), torch.nan, dtype=torch.float64, device=sums.device) for _ in range(4)]
        for task, placed in self.slots_by_task.items():
            slots, counts = placed.to(self.home), self.answer_counts[task][:, None]
            away, pairs = sums[slots, : task.classes] / counts, counts.sum()
            moments = [part[slots, : task.classes].sum(dim=1) / pairs for part in (sums, squares)]
            mean_square = moments[1] + origin[slots][:, 0] * (2 * moments[0] + origin[slots][:, 0])
            waves = spectrum(away + origin[slots], task.basis(), mean_square)
            found = fsd(waves.density)
            mean = (away * counts).sum(dim=1, keepdim=True) / pairs
            between = ((away - mean) ** 2 * counts).sum(dim=(1, 2))
            total = squares[slots, : task.classes].sum(dim=(1, 2)) - pairs * (mean**2).sum(dim=(1, 2))
            size = total + pairs * ((mean + origin[slots]) ** 2).sum(dim=(1, 2))
            share = (between / total).where(~(total <= CONSTANT_SHARE * size), torch.nan)
            rank = fourier_rank(waves.power).median
            values = (found.fsd, mode_number(found.mode, found.fsd), rank, share)
            for column, value in zip(columns, values, strict=True):
                column[slots] = value
        return columns


_READERS: "WeakKeyDictionary[Cohort, _Reader]" = WeakKeyDictionary()


def _pairs_per_answer(cohort: Cohort) -> int:
    """Pairs of each answer, where all runs have one task and all its answers equally many; else 0."""
    counts = {count for task in cohort.slots_by_task for count in np.bincount(task.answers).tolist()}
    return counts.pop() if len(cohort.slots_by_task) == 1 and len(counts) == 1 else 0


def _padded(tensor: Tensor, padding: int, value: int) -> Tensor:
    return torch.nn.functional.pad(tensor, (0, padding), value=value) if padding else tensor
