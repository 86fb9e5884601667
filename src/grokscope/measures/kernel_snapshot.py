"""An evaluation by kernels: what is read of a run on CUDA does not depend on the runs beside it.

All pairs are passed through the model in chunks of one size, whatever the stack, and every sum over pairs has a fixed
order.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grokscope.kernels import head, neurons
from grokscope.kernels.aside import Aside
from grokscope.kernels.sums import answer_sums, dots, finish_parts
from grokscope.measures.snapshot import BlockMeans, Reader, Snapshot, block0_columns, pairs_by_answer
from grokscope.model.kernel_pass import KernelPass
from grokscope.training import Cohort, arithmetic
from grokscope.training.graphs import recorded

__all__ = ["KernelReader"]

PAIRS = 1920  # in a chunk: few are left over for all primes of the paper and S5
RUNS = 128  # passed through the model at once: chunks of so many fill the device
GROUP = 16  # runs whose spectra are read together
TRAIN, VALIDATION = 1, 2


class KernelReader(Reader):
    """The passes of one stack of runs; from the second reading of the same weights on, one CUDA graph."""

    def __init__(self, cohort: Cohort) -> None:
        self.asked = None
        self.precision, self.compute, self.device = cohort.key.precision, cohort.compute, cohort.device
        self.layout, self.architecture = cohort.layout, cohort.architecture
        self.slots_by_task, self.answer_counts = cohort.slots_by_task, pairs_by_answer(cohort, cohort.device)
        tables, runs, size = cohort.tables, len(cohort), cohort.key.size
        inputs = tables.tokens.shape[2]
        self.chunks = range(0, inputs, PAIRS)

        def padded(table: Tensor) -> Tensor:
            # Pairs past the last repeat the first, and count for nothing.
            more = -inputs % PAIRS
            return torch.cat([table, table[..., :1].expand(*table.shape[:-1], more)], dim=-1).int().contiguous()

        # True answers for validation, the loss's labels for training pairs.
        self.tokens = padded(tables.tokens)
        self.separators = self.tokens[:, -1, 0].contiguous()
        self.labels = padded(torch.where(tables.is_train, tables.labels, tables.answers))
        is_validation = tables.is_real & ~tables.is_train
        kinds = padded(TRAIN * tables.is_train.int() + VALIDATION * is_validation.int())
        kinds[:, inputs:] = 0
        self.kinds, self.classes = kinds, cohort.classes.int()
        self.counts = torch.stack([tables.is_train.sum(dim=1), is_validation.sum(dim=1)], dim=1).double()
        ends = [np.cumsum([0, *np.bincount(task.answers, minlength=size)]) for task in cohort.tasks]
        self.ends = torch.tensor(np.array(ends), dtype=torch.int32, device=self.device)
        self.tiles = head.loss_tiles(PAIRS, size)
        new: dict[str, Any] = {"dtype": torch.float64, "device": self.device}
        self.score_parts = torch.zeros(runs, self.tiles * len(self.chunks), 4, **new)
        tiles = self.score_parts.shape[1]
        self.plan = torch.tensor([[0, 4 * tiles, 4, tiles, 4, 0]], device=self.device)
        self.scores = torch.zeros(runs, 4, **new)
        has_mlp = self.architecture.mlp == "on"
        self.activation = self.architecture.activation if has_mlp else None
        width = self.architecture.mlp_width if has_mlp else self.architecture.width
        self.sums, self.squares = (torch.zeros(runs, size, width, **new) for _ in range(2))
        self.origin = torch.zeros(runs, 1, width, dtype=cohort.dtype, device=self.device)
        self.aside = Aside(self.device, runs)
        self.graphs: dict[tuple[int, bool], Any] = {}

    def read(self, flat: Tensor, scores: bool = True) -> Snapshot:
        """Measure every run; without scores, block 0 alone.

        Weights seen for the second time are read by a CUDA graph, which later readings replay.
        """
        key = (flat.data_ptr(), scores)
        if self.device.type != "cuda" or key not in self.graphs:
            self.graphs = {key: None}  # what other weights were read with is gone
            return Snapshot(*self._columns(flat, scores).cpu())
        if self.graphs[key] is None:
            with recorded() as graph:
                columns = self._columns(flat, scores)
            self.graphs[key] = (graph, columns)
        graph, columns = self.graphs[key]
        graph.replay()
        return Snapshot(*columns.cpu())

    def _columns(self, flat: Tensor, scores: bool) -> Tensor:
        """Every column of a snapshot, [columns, runs]."""
        # FSD reads a variation of 1e-4 of the activations: full precision.
        with self.aside(flat), arithmetic("float32"):
            self._sum_hidden(flat)
            means = BlockMeans(self.sums, self.squares, self.origin.double())
            block0 = block0_columns(means, self.slots_by_task, self.answer_counts, GROUP)
        if scores:
            with arithmetic(self.precision):
                self._sum_scores(flat)
            finish_parts(self.score_parts, self.plan, self.scores, 4)
        right_and_loss = self.scores.view(-1, 2, 2) / self.counts[..., None]
        columns = [*right_and_loss[..., 0].unbind(1), *right_and_loss[..., 1].unbind(1), dots(flat, flat).sqrt()]
        if not scores:
            columns = [torch.full_like(column, torch.nan) for column in columns]
        self.aside.join()
        return torch.stack([*columns, *block0])

    def _parts(self) -> Iterator[slice]:
        """Runs that are passed through the model together."""
        return (slice(start, start + RUNS) for start in range(0, len(self.tokens), RUNS))

    def _sum_hidden(self, flat: Tensor) -> None:
        """Σ and Σ² of block 0's neurons over the pairs with each answer."""
        self.sums.zero_()
        self.squares.zero_()
        for runs in self._parts():
            weights = self.layout.strided_views(flat[runs])
            model = KernelPass(self.architecture, weights, weights, self.separators[runs])
            for first in self.chunks:
                before, bias = model.hidden(self._chunk(self.tokens[runs], first))
                before = before.contiguous()
                if first == 0:
                    self.origin[runs] = self._activated(before[:, :1].contiguous(), bias)
                own = (self.origin[runs], self.ends[runs], self.sums[runs], self.squares[runs])
                answer_sums(before, bias, *own, first, self.activation)

    def _activated(self, before: Tensor, bias: Tensor | None) -> Tensor:
        if self.activation is None:
            return before if bias is None else before + bias[:, None]
        return neurons.activate(before, bias, self.activation == "relu", before)

    def _sum_scores(self, flat: Tensor) -> None:
        """Σ of right answers and losses, tile by tile."""
        for runs in self._parts():
            weights = self.layout.strided_views(flat[runs])
            rounded = weights if self.compute is None else self.layout.strided_views(flat[runs].to(self.compute))
            model = KernelPass(self.architecture, weights, rounded, self.separators[runs])
            for number, first in enumerate(self.chunks):
                logits, part = model.logits(self._chunk(self.tokens[runs], first)), slice(first, first + PAIRS)
                own = (self.labels[runs, part], self.classes[runs], self.kinds[runs, part])
                parts = self.score_parts[runs]
                head.scores(logits, model.weights.get("unembed.b_U"), *own, parts, number * self.tiles)

    @staticmethod
    def _chunk(tokens: Tensor, first: int) -> Tensor:
        return tokens[:, :, first : first + PAIRS].contiguous()
