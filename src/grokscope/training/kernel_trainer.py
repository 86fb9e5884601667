"""Training by kernels on CUDA: a run's weights are a function of its spec, whatever stands beside it."""

from math import prod

import torch
from torch import Tensor

from grokscope.kernels.aside import SMALL_STACK
from grokscope.kernels.batch import choose_batch
from grokscope.kernels.product import product
from grokscope.kernels.sums import dots
from grokscope.kernels.update import GROUPS, MOVED_APART, SCALARS, count_step, update
from grokscope.model.kernel_pass import Gradients, kernel_pass
from grokscope.shapes import Float
from grokscope.training.cohort import Cohort
from grokscope.training.gradients import grokfast_, grokfast_window_, orthogonal
from grokscope.training.loop import CHUNK, Trainer
from grokscope.training.norm_holds import NormHolds
from grokscope.training.state import State

__all__ = ["KernelTrainer"]

BATCHED = 2**23  # pairs of all batches that are made at once


class KernelTrainer(Trainer):
    """What `Trainer` does, with a step of which no sum depends on the size of the stack."""

    def __init__(self, state: State, cohort: Cohort) -> None:
        self.is_small = len(cohort) <= SMALL_STACK
        if self.is_small:  # steps are short: few launches and few calls of what makes the batches
            self.steps_of_graphs = (8, 1)
            self.room = min(8 * CHUNK, max(CHUNK, BATCHED // (len(cohort) * cohort.key.batch)))
        super().__init__(state, cohort, compiled=False)
        self.is_captured = self.device.type == "cuda"
        self.made_from = [-self.room] * len(cohort)
        layout, runs = cohort.layout, len(cohort)
        self.inputs, self.labels = (_for_kernels(table) for table in (self.tables.given, self.tables.labels))
        counts = torch.zeros(runs, dtype=torch.int32, device=self.device)
        self.chosen = (_empty_batch(self.inputs, self.key.batch), _empty_batch(self.labels, self.key.batch), counts)
        self.class_counts = self.classes.int()
        self.gradients = Gradients(layout, runs, state.weights)
        self.rounded = state.weights if self.compute is None else torch.empty_like(state.weights, dtype=self.compute)
        views = layout.strided_views(state.weights)
        rounded = views if self.compute is None else layout.strided_views(self.rounded)
        separators = self.inputs[:, -1, 0].contiguous() if self.key.sizes.has_separator else None
        self.model = kernel_pass(self.architecture, views, rounded, separators, self.gradients, self.key.loss)
        factors = [self.decay_factors[group] for group in ("matrix", "embedding", "head")]
        self.columns = torch.stack([self.learning_rate, self.warmup, *self.betas, self.decays_vectors, *factors])
        self.scalars = torch.zeros(runs, SCALARS, dtype=cohort.dtype, device=self.device)
        kinds = [MOVED_APART if self.is_muon and group == "matrix" else GROUPS[group] for group in self.groups]
        sizes = [prod(shape) for shape in layout.shapes.values()]
        self.group_of_number = torch.tensor(kinds, dtype=torch.int8).repeat_interleave(torch.tensor(sizes))
        self.group_of_number = self.group_of_number.to(self.device)
        self.no_decay = torch.zeros_like(self.decay[:, : runs if self.is_coupled else 0])

    def chunk(self, steps: int) -> Float[Tensor, "runs steps"]:
        """At most CHUNK steps; the batch losses, NaN where a run was idle."""
        self._round()
        return super().chunk(steps)

    def _prepare(self, steps: int) -> int:
        """For a few runs batches are made for many calls at once, and found again by the step where they begin."""
        if not self.is_small:
            return super()._prepare(steps)
        state, first = self.state, self.state.step.tolist()
        is_running = (state.alive & (state.step < self.last_step)).tolist()
        passed = {now - then for now, then, runs in zip(first, self.made_from, is_running, strict=True) if runs}
        start = passed.pop() if len(passed) == 1 else -1
        if not 0 <= start <= self.room - steps:
            self._fill_batches(self.room)
            self.made_from, start = first, 0
        self._fill_decays(start, steps)
        return start

    def _step(self) -> None:
        inputs, labels, counts = self.chosen
        state, gradients = self.state, self.gradients.flat
        self.model.dropout = self._dropout(state.step) if self.key.dropout else None
        losses = self.model.losses(inputs, labels, self.class_counts, counts, self._choose)
        own = (state.step, state.age, state.alive, self.last_step)
        with self.gradients.aside():
            count_step(
                losses,
                counts,
                self.no_decay if self.is_coupled else self.decay,
                self.counter,
                self.columns,
                own,
                self.losses,
                self.scalars,
            )
        self.model.backward(losses)
        if self.clip_norm is not None:
            norm = dots(gradients, gradients).sqrt()
            gradients.mul_((self.clip_norm / (norm + 1e-6)).clamp(max=1).to(gradients.dtype)[:, None])
        if self.key.gradient != "plain":
            gradients = self._changed(gradients, self._active)
        if self.is_coupled:
            gradients = self._coupled(gradients)
        update(
            (state.weights, state.first, state.second),
            gradients,
            self._copy,
            self.group_of_number,
            self.scalars,
            self.counter,
        )
        if self.is_muon:
            self._orthogonalize(gradients)
        if self.key.holds_norm:
            self._hold_norm(self._active)
            self._round()
        if self.holds is not None:
            self.holds.apply(state.step, self._active)
            self._round()

    def _orthogonalize(self, gradients: Tensor) -> None:
        """Muon's part of the step, by products and sums that do not depend on the stack."""
        is_rounded = self.key.muon_precision == "bfloat16"
        arithmetic = self.orthogonal_in._replace(
            multiply=_product_of_rounded if is_rounded else product, norms=lambda x: dots(x, x).sqrt()
        )
        scalars = self._muon_scalars(self._warmed(), self.scalars[:, 2])
        self._move_matrices(self.layout.views(gradients).values(), self._active, scalars, arithmetic)
        self._round()

    @property
    def _active(self) -> Tensor:
        """Which runs take the step; it has been counted already."""
        return self.scalars[:, -1] != 0

    def _choose(self) -> None:
        choose_batch(self.rows, self.counts, self.counter, (self.inputs, self.labels), self.chosen)

    def _capture(self) -> None:
        super()._capture()
        self._round()  # the weights were put back, their rounded copy was not

    @property
    def _copy(self) -> Tensor | None:
        return None if self.compute is None else self.rounded

    def _round(self) -> None:
        if self.compute is not None:
            self.rounded.copy_(self.state.weights)

    def _holds(self, cohort: Cohort) -> NormHolds:
        """With sums in a fixed order, as everything here."""
        state = self.state
        return NormHolds(cohort.specs, cohort.layout, state.weights, state.anchors, dots)

    def _norms(self) -> Tensor:
        return dots(self.state.weights, self.state.weights).sqrt()

    def _coupled(self, gradients: Tensor) -> Tensor:
        """Gradients with coupled decay, number by number: no sum depends on the stack."""
        decay = self.decay.index_select(0, self.counter)[0]
        changed = torch.empty_like(gradients)
        found = self._decayed(self.layout.views(gradients).values(), decay)
        for own, to in zip(found, self.layout.views(changed).values(), strict=True):
            to.copy_(own)
        return changed

    def _changed(self, gradients: Tensor, active: Tensor) -> Tensor:
        """What AdamW is given in place of the gradients."""
        if self.key.gradient == "grokfast":
            return grokfast_(self.state.slow, gradients, active, self.state.age == 1, *self.grokfast)
        if self.key.window:
            recent = self.state.recent.view(len(gradients), self.key.window, -1)
            return grokfast_window_(recent, gradients, active, self.state.age, self.grokfast[1])
        changed = torch.empty_like(gradients)
        layout = self.layout
        views = zip(self.parameters, layout.views(gradients).values(), layout.views(changed).values(), strict=True)
        for (weights, _, _), gradient, to in views:
            to.copy_(orthogonal(weights, gradient, dots, lambda x: dots(x, x).sqrt()))
        return changed


def _product_of_rounded(a: Tensor, b: Tensor) -> Tensor:
    """A B of matrices whose numbers are bfloat16's already, summed in float32."""
    if a.dtype != torch.float32 or a.device.type != "cuda":
        return product(a, b)
    out = a.new_empty(max(2, len(a)), a.shape[1], b.shape[2])  # products into a given place need two
    product(a.bfloat16(), b.bfloat16(), out)
    return out[: len(a)]


def _for_kernels(table: Tensor) -> Tensor:
    """Whole numbers in 32 bits; real ones as they are."""
    return (table if table.is_floating_point() else table.int()).contiguous()


def _empty_batch(table: Tensor, batch: int) -> Tensor:
    """Room for a batch: tokens [runs, length, rows], classes [runs, rows], or numbers [runs, rows, …]."""
    shape = list(table.shape)
    shape[1 if table.is_floating_point() else -1] = batch
    return table.new_zeros(shape)
