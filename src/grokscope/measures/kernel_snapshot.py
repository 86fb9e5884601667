"""An evaluation by kernels: what is read of a run on CUDA does not depend on the runs beside it.

All rows are passed through the model in chunks of one size, whatever the stack, and every sum over rows has a fixed
order.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grokscope.kernels import head, neurons, squares
from grokscope.kernels.aside import Aside
from grokscope.kernels.sums import answer_sums, dots, finish_parts
from grokscope.measures.snapshot import (
    BlockMeans,
    Reader,
    Snapshot,
    block0_columns,
    more_columns,
    rows_by_condition,
)
from grokscope.model import PAIR_POSITIONS, Weights
from grokscope.model.kernel_pass import KernelPass, kernel_pass
from grokscope.specs import Architecture
from grokscope.training import Cohort, arithmetic
from grokscope.training.graphs import recorded

__all__ = ["KernelReader"]

PAIRS = 1920  # in a chunk of pair tables: few are left over for all primes of the paper and S5
LEAST = 64  # rows in a chunk, however long they are
RUNS = 128  # passed through the model at once: chunks of so many fill the device
GROUP = 16  # runs whose spectra are read together
COMMON = 9  # columns that every task has


class KernelReader(Reader):
    """The passes of one stack of runs; from the second reading of the same weights on, one CUDA graph."""

    def __init__(self, cohort: Cohort) -> None:
        self.asked = None
        self.precision, self.compute, self.device = cohort.key.precision, cohort.compute, cohort.device
        self.layout, self.architecture = cohort.layout, cohort.architecture
        self.slots_by_task, self.condition_counts = cohort.slots_by_task, rows_by_condition(cohort, cohort.device)
        self.tasks, self.groups, self.conditions = cohort.tasks, cohort.key.row_groups, cohort.key.conditions
        tables, runs, sizes = cohort.tables, len(cohort), cohort.key.sizes
        inputs, self.rows = tables.inputs, rows_at_once(sizes.length)
        self.chunks = range(0, inputs, self.rows)

        def padded(table: Tensor) -> Tensor:
            # Rows past the last repeat the first, and count for nothing.
            axis = 1 if table.is_floating_point() else table.ndim - 1
            more = [-inputs % self.rows if i == axis else -1 for i in range(table.ndim)]
            whole = torch.cat([table, table.narrow(axis, 0, 1).expand(*more)], dim=axis)
            return (whole if whole.is_floating_point() else whole.int()).contiguous()

        # True answers for validation, the loss's labels for training rows.
        self.given = padded(tables.given)
        self.separators = self.given[:, -1, 0].contiguous() if sizes.has_separator else None
        self.labels = padded(tables.scored_labels)
        kinds = padded(tables.group + 1)  # PADDING is 0, TRAIN 1
        kinds[:, inputs:] = 0
        self.kinds, self.classes = kinds, cohort.classes.int()
        counts = [(tables.group == group).sum(dim=1) for group in range(self.groups)]
        self.counts = torch.stack(counts, dim=1).double()
        self.tiles = head.loss_tiles(self.rows, sizes.classes)
        new: dict[str, Any] = {"dtype": torch.float64, "device": self.device}
        self.score_parts = torch.zeros(runs, self.tiles * len(self.chunks), 2 * self.groups, **new)
        tiles, columns = self.score_parts.shape[1:]
        self.plan = torch.tensor([[0, columns * tiles, columns, tiles, columns, 0]], device=self.device)
        self.scores = torch.zeros(runs, columns, **new)
        self.loss = cohort.key.loss
        errors = [task.success_error if task.is_real else 0.0 for task in cohort.tasks]
        self.success_errors = torch.tensor(errors, **new)
        self.activation, width = hidden_neurons(self.architecture, sizes.classes)
        if self.conditions:
            rows = [np.bincount(task.condition().values, minlength=self.conditions) for task in self.tasks]
            ends = np.array([np.cumsum([0, *each]) for each in rows])
            self.ends = torch.tensor(ends, dtype=torch.int32, device=self.device)
            self.sums, self.squares = (torch.zeros(runs, self.conditions, width, **new) for _ in range(2))
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
            return self._snapshot(self._columns(flat, scores))
        if self.graphs[key] is None:
            with recorded() as graph:
                columns = self._columns(flat, scores)
            self.graphs[key] = (graph, columns)
        graph, columns = self.graphs[key]
        graph.replay()
        return self._snapshot(columns)

    def _snapshot(self, columns: Tensor) -> Snapshot:
        """What every task has, and what some have."""
        found = columns.cpu()
        common, apart = found[:COMMON], found[COMMON:]
        more = tuple(more_columns(task, apart[:, run]) for run, task in enumerate(self.tasks))
        return Snapshot.of(common, more)

    def _columns(self, flat: Tensor, scores: bool) -> Tensor:
        """Every column of a snapshot, [columns, runs]."""
        block0 = [torch.full_like(self.counts[:, 0], torch.nan)] * 4
        if self.conditions:
            # FSD reads a variation of 1e-4 of the activations: full precision.
            with self.aside(flat), arithmetic("float32"):
                self._sum_hidden(flat)
                means = BlockMeans(self.sums, self.squares, self.origin.double())
                block0 = block0_columns(means, self.slots_by_task, self.condition_counts, GROUP)
        if scores:
            with arithmetic(self.precision):
                self._sum_scores(flat)
            finish_parts(self.score_parts, self.plan, self.scores, 2 * self.groups)
        accuracy, loss = (self.scores.view(-1, self.groups, 2) / self.counts[..., None]).unbind(2)
        right, wrong = accuracy.unbind(1), loss.unbind(1)
        columns = [*right[:2], *wrong[:2], dots(flat, flat).sqrt()]
        apart = [*right[2:], *wrong[2:], *wrong[:2]]
        if not scores:
            columns, apart = ([torch.full_like(column, torch.nan) for column in part] for part in (columns, apart))
        self.aside.join()
        return torch.stack([*columns, *block0, *apart])

    def _parts(self) -> Iterator[slice]:
        """Runs that are passed through the model together."""
        return (slice(start, start + RUNS) for start in range(0, len(self.given), RUNS))

    def _sum_hidden(self, flat: Tensor) -> None:
        """Σ and Σ² of block 0's neurons over the rows with each condition."""
        self.sums.zero_()
        self.squares.zero_()
        for runs in self._parts():
            weights = self.layout.strided_views(flat[runs])
            model = self._model(weights, weights, runs)
            for first in self.chunks:
                before, bias = model.hidden(self._chunk(self.given[runs], first))
                before = before.contiguous()
                if first == 0:
                    self.origin[runs] = self._activated(before[:, :1].contiguous(), bias)
                own = (self.origin[runs], self.ends[runs], self.sums[runs], self.squares[runs])
                answer_sums(before, bias, *own, first, self.activation)

    def _activated(self, before: Tensor, bias: Tensor | None) -> Tensor:
        if self.activation is None:
            return before if bias is None else before + bias[:, None]
        return neurons.activate(before, bias, self.activation, before)

    def _sum_scores(self, flat: Tensor) -> None:
        """Σ of right answers and losses, tile by tile."""
        for runs in self._parts():
            weights = self.layout.strided_views(flat[runs])
            rounded = weights if self.compute is None else self.layout.strided_views(flat[runs].to(self.compute))
            model = self._model(weights, rounded, runs)
            for number, first in enumerate(self.chunks):
                logits, part = model.logits(self._chunk(self.given[runs], first)), slice(first, first + self.rows)
                outputs = (logits, model.weights.get("unembed.b_U"))
                own = (self.labels[runs, part], self.classes[runs], self.kinds[runs, part])
                parts, tile, temperature = self.score_parts[runs], number * self.tiles, self.architecture.temperature
                if self.loss == "mse":
                    squares.scores(*outputs, *own, self.success_errors[runs], parts, tile, temperature)
                else:
                    head.scores(*outputs, *own, parts, tile, temperature, is_stable=self.loss == "stablemax")

    def _model(self, weights: Weights, rounded: Weights, runs: slice) -> KernelPass:
        separators = None if self.separators is None else self.separators[runs]
        return kernel_pass(self.architecture, weights, rounded, separators)

    def _chunk(self, given: Tensor, first: int) -> Tensor:
        part = slice(first, first + self.rows)
        return (given[:, part] if given.is_floating_point() else given[:, :, part]).contiguous()


def hidden_neurons(architecture: Architecture, outputs: int) -> tuple[str | None, int]:
    """The activation of what FSD reads, None where it has none, and how many neurons there are."""
    if architecture.kind == "mlp" and architecture.layers == 0:
        return None, outputs
    if architecture.kind == "mlp" or architecture.mlp == "on":
        return architecture.activation, architecture.mlp_width
    return None, architecture.width


def rows_at_once(length: int) -> int:
    """Rows of a chunk, a function of the spec alone: long ones take more room.

    >>> rows_at_once(0), rows_at_once(3), rows_at_once(40)
    (1920, 1920, 144)
    """
    return PAIRS if length <= PAIR_POSITIONS else max(LEAST, PAIRS * PAIR_POSITIONS // length)
