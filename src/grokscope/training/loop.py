"""Training, pulled: `state, info = advance(state, cohort, steps)`; then measure, decide, change λ, call again."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from grokscope.model import forward, parameter_group, row_losses
from grokscope.randomness import uniform
from grokscope.shapes import Float
from grokscope.training.adamw import AdamWScalars, adamw_, adamw_scalars, clipped
from grokscope.training.batches import batches
from grokscope.training.cohort import Cohort
from grokscope.training.gradients import decayed, grokfast_, grokfast_window_, orthogonal
from grokscope.training.graphs import recorded
from grokscope.training.muon import EXACT, IN_BFLOAT16, Arithmetic, MuonScalars, muon_
from grokscope.training.norm_holds import NormHolds
from grokscope.training.state import State

__all__ = ["Info", "Trainer", "advance", "arithmetic", "trainer_of"]

CHUNK = 128  # steps whose batches are made at once


@dataclass(frozen=True)
class Info:
    """What a call of `advance` saw."""

    loss: Float[Tensor, "runs steps"]
    """Each step's batch loss, NaN where a run was idle."""
    failed_at: tuple[int | None, ...]
    """The step at which a run's loss was no longer finite; its weights are those before that step."""


def advance(state: State, cohort: Cohort, steps: int, compiled: bool | None = None) -> tuple[State, Info]:
    """Train every living run by `steps` optimiser steps, or to its last one if that comes first.

    The state's tensors are changed in place. On CUDA a step is made of kernels whose work for one run does not depend
    on the others, unless `compiled` is given: then it is the reference, compiled or not, whose bits do. On a CPU, where
    runs are trained alone, compiling pays after some hundred to some thousand steps (`jobs.compilation`).

    >>> from grokscope.specs import Architecture, RunSpec, Training
    >>> from grokscope.training import initial_state
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> cohort = Cohort([RunSpec("add_mod5", architecture=small, training=Training(steps=4, batch_size=4))])
    >>> state, info = advance(initial_state(cohort), cohort, steps=3, compiled=False)
    >>> state.step.tolist(), info.loss.shape
    ([3], torch.Size([1, 3]))
    """
    trainer = trainer_of(state, cohort, compiled)
    first_step, was_alive = state.step.tolist(), state.alive.tolist()
    with arithmetic(cohort.key.precision):
        losses = [trainer.chunk(min(CHUNK, steps - start)) for start in range(0, steps, CHUNK)]
    loss = torch.cat(losses, dim=1) if losses else state.weights.new_empty(len(cohort), 0)
    failed = [before and not after for before, after in zip(was_alive, state.alive.tolist(), strict=True)]
    if any(failed):
        first_bad = (~torch.isfinite(loss)).int().argmax(dim=1).tolist()
        at = tuple(s + i if bad else None for s, i, bad in zip(first_step, first_bad, failed, strict=True))
        return state, Info(loss, at)
    return state, Info(loss, (None,) * len(cohort))


@contextlib.contextmanager
def arithmetic(precision: str) -> Iterator[None]:
    """TF32 for float32 matrix products inside, unless the precision forbids it; the former setting is restored.

    >>> with arithmetic("tf32"):
    ...     torch.get_float32_matmul_precision()
    'high'
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision in ("tf32", "bf16") else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


# One trainer (compiled functions, static buffers, CUDA graph) for each cohort that is still in use.
_TRAINERS: "WeakKeyDictionary[Cohort, Trainer]" = WeakKeyDictionary()


def trainer_of(state: State, cohort: Cohort, compiled: bool | None) -> "Trainer":
    """The trainer of this cohort and state, made once."""
    known = _TRAINERS.get(cohort)
    if known is None or known.state is not state or known.asked != compiled or not known.owns(state):
        if compiled is None and cohort.has_kernels:
            from grokscope.training.kernel_trainer import KernelTrainer  # Triton comes with torch's CUDA builds alone

            known = KernelTrainer(state, cohort)
        else:
            known = Trainer(state, cohort, bool(compiled))
        known.asked = compiled
        _TRAINERS[cohort] = known
    return known


class Trainer:
    """The machinery of one cohort: static buffers for a chunk of steps, and one step over them.

    A step reads its inputs at a counter on the device, so that on CUDA it can be captured once as a graph and
    replayed without the host.
    """

    asked: bool | None = None
    """What `advance` was asked for."""
    room: int = CHUNK
    """Steps whose batches have a place."""
    steps_of_graphs: tuple[int, ...] = (1,)
    """Steps of each CUDA graph, the longest first."""

    def __init__(self, state: State, cohort: Cohort, compiled: bool) -> None:
        self.state, self.layout = state, cohort.layout
        self.is_captured = compiled and cohort.device.type == "cuda"
        self.key, self.device, runs = cohort.key, cohort.device, len(cohort)
        self.tables, self.classes, self.compute = cohort.tables, cohort.classes, cohort.compute
        self.architecture, self.names = cohort.architecture, tuple(cohort.layout.shapes)
        # Leaves that share the flat buffer's memory: their gradients come one by one, without slicing's zero padding.
        buffers = (cohort.layout.views(buffer) for buffer in (state.weights, state.first, state.second))
        self.parameters = list(zip(*(views.values() for views in buffers), strict=True))
        self.leaves = [weights.detach().requires_grad_() for weights, _, _ in self.parameters]
        self.order_seeds, self.replacement = (
            cohort.order_seeds,
            [s.training.sampling == "replacement" for s in cohort.specs],
        )
        self.schedules = [spec.training.weight_decay_schedule for spec in cohort.specs]
        self.last_step = cohort.column("steps", torch.int64)
        self.learning_rate, self.warmup = cohort.column("learning_rate"), cohort.column("warmup_steps")
        self.betas = (cohort.column("beta1"), cohort.column("beta2"), cohort.column("epsilon"))
        everything = [float(spec.training.decay_parameters == "all") for spec in cohort.specs]
        self.groups = [parameter_group(name, shape, self.key.sizes) for name, shape in cohort.layout.shapes.items()]
        factors = {group: cohort.column(f"{group}_decay") for group in ("embedding", "matrix", "vector", "head")}
        self.decay_factors = factors
        self.decays_vectors = torch.tensor(everything, dtype=cohort.exact, device=self.device) * factors["vector"]
        self.is_muon, self.is_coupled = self.key.optimizer == "muon", self.key.optimizer == "adam"
        self.muon = (cohort.column("muon_learning_rate"), cohort.column("muon_momentum"))
        self.orthogonal_in = IN_BFLOAT16 if self.key.muon_precision == "bfloat16" else EXACT
        self.clip_norm = cohort.column("clip_norm") if self.key.clipping else None
        # Grokfast's average, parameter by parameter; nothing in cohorts without it.
        self.slow = list(cohort.layout.views(state.slow).values()) if self.key.gradient == "grokfast" else []
        recent = state.recent.view(runs * self.key.window, -1) if self.key.window else state.recent
        self.recent = (
            [view.view(runs, self.key.window, *view.shape[1:]) for view in cohort.layout.views(recent).values()]
            if self.key.window
            else []
        )
        self.grokfast = tuple(cohort.column(name, cohort.dtype) for name in ("grokfast_alpha", "grokfast_lamb"))
        paired = [cohort.paired_slot.get(slot, -1) for slot in range(runs)]
        self.paired = torch.tensor(paired, device=self.device)
        self.dropout_share = cohort.column("dropout", cohort.dtype)
        self.rows = torch.zeros(self.room, runs, self.key.batch, dtype=torch.int32, device=self.device)
        self.counts = torch.zeros(self.room, runs, dtype=torch.int64, device=self.device)
        self.decay = torch.zeros(self.room, runs, dtype=cohort.exact, device=self.device)
        self.losses = torch.zeros(self.room, runs, dtype=cohort.dtype, device=self.device)
        self.counter = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.holds = self._holds(cohort) if self.key.held_parts else None
        compiler = partial(torch.compile, fullgraph=True, dynamic=False) if compiled else lambda function: function
        self.loss_of: Callable[..., Tensor] = compiler(self._loss)
        self.update: Callable[..., None] = compiler(self._update)
        self.transform: Callable[..., list[Tensor]] = compiler(self._transform)
        self.graphs: list[tuple[int, Any]] = []

    def owns(self, state: State) -> bool:
        """Whether the state still has the buffers that this trainer changes."""
        return all(
            buffer.data_ptr() == own.data_ptr()
            for buffer, own in zip((state.weights, state.first, state.second), self.parameters[0], strict=True)
        ) and all(
            own.data_ptr() == buffer.data_ptr()
            for buffer, views in ((state.slow, self.slow), (state.recent, self.recent))
            for own in views[:1]
        )

    def chunk(self, steps: int) -> Float[Tensor, "runs steps"]:
        """At most CHUNK steps; the batch losses, NaN where a run was idle."""
        start = self._prepare(steps)
        if self.is_captured and not self.graphs:
            self._capture()
        self.counter.fill_(start)
        left = steps
        for several, graph in self.graphs or [(1, None)]:
            for _ in range(left // several):
                self._step() if graph is None else graph.replay()
            left %= several
        self._keep_scheduled_decay(steps)
        return self.losses[start : start + steps].T.clone()

    def _keep_scheduled_decay(self, steps: int) -> None:
        """The λ in force after a chunk: a scheduled one where a run has come to its step, alive."""
        if any(self.schedules):
            reached = self.state.step.tolist()
            for slot, schedule in enumerate(self.schedules):
                passed = [decay for step, decay in schedule if reached[slot] - steps <= step < reached[slot]]
                if passed:
                    self.state.weight_decay[slot] = passed[-1]

    def _prepare(self, steps: int) -> int:
        """Put the batches and weight decays of the next steps into the buffers; where they begin there."""
        self._fill_batches(steps)
        self._fill_decays(0, steps)
        return 0

    def _fill_batches(self, steps: int) -> None:
        counts = self.tables.train_count
        for count, replacement in sorted(set(zip(counts, self.replacement, strict=True))):
            chosen = [
                i for i, kind in enumerate(zip(counts, self.replacement, strict=True)) if kind == (count, replacement)
            ]
            slots = torch.tensor(chosen, device=self.device)
            seeds = self.order_seeds[slots.to(self.order_seeds.device)]
            first_step = self.state.step[slots].to(seeds.device)
            rows, used = batches(seeds, first_step, steps, count, self.key.batch, replacement)
            rows, used = rows.to(self.device), used.to(self.device)
            columns = self.tables.train_rows[slots].expand(steps, -1, -1).gather(2, rows)
            self.rows[:steps, slots] = columns.to(torch.int32)
            self.counts[:steps, slots] = used

    def _fill_decays(self, start: int, steps: int) -> None:
        decays = self.decay[start : start + steps]
        decays[:] = self.state.weight_decay
        if any(self.schedules):
            first, alive = self.state.step.tolist(), self.state.alive.tolist()
            for slot, schedule in enumerate(self.schedules):
                for step, decay in schedule:
                    if alive[slot] and first[slot] <= step < first[slot] + steps:
                        decays[step - first[slot] :, slot] = decay

    def _step(self) -> None:
        rows = self.rows.index_select(0, self.counter)[0].long()
        count = self.counts.index_select(0, self.counter)[0]
        decay = self.decay.index_select(0, self.counter)[0]
        given, labels = self.tables.select(rows)
        loss = self.loss_of(self.leaves, given, labels, count, self.state.step)
        gradients = list(torch.autograd.grad(loss.sum(), self.leaves))
        if self.clip_norm is not None:
            gradients = clipped(gradients, self.clip_norm)
        active, scalars, muon = self._scalars(loss.detach(), torch.zeros_like(decay) if self.is_coupled else decay)
        if self.key.gradient != "plain":
            gradients = self.transform(gradients, active, self.state.age)
        if self.is_coupled:
            gradients = self._decayed(gradients, decay)
        self.update(gradients, active, scalars)
        if muon is not None:  # products of matrices, of which compiling would make nothing faster
            self._move_matrices(gradients, active, muon, self.orthogonal_in)
        if self.key.holds_norm:
            self._hold_norm(active)
        if self.holds is not None:
            self.holds.apply(self.state.step, active)
        self.counter += 1

    def _loss(self, leaves: list[Tensor], given: Tensor, labels: Tensor, count: Tensor, step: Tensor) -> Tensor:
        """Mean loss of each run's batch; rows past `count` are padding."""
        weights = dict(zip(self.names, leaves, strict=True))
        dropout = self._dropout(step) if self.key.dropout else None
        logits = forward(
            weights,
            self.architecture,
            given,
            classes=self.classes,
            compute=self.compute,
            dropout=dropout,
            has_separator=self.key.sizes.has_separator,
        )
        counts = torch.arange(logits.shape[1], device=logits.device) < count[:, None]
        return torch.where(counts, row_losses(logits, labels, self.key.loss, self.classes), 0).sum(dim=1) / count

    def _dropout(self, step: Tensor) -> Callable[[Tensor, int], Tensor]:
        """Zero a share of each branch's output, and scale the rest up; drawn from (data-order seed, step, branch)."""

        def dropped(out: Tensor, branch: int) -> Tensor:
            epoch = step * 2 * self.architecture.layers + branch
            draws = uniform(self.order_seeds, "dropout", epoch, out[0].numel()).view_as(out)
            share = self.dropout_share.view(-1, *(1,) * (out.ndim - 1))
            return torch.where(draws < share, 0, out / (1 - share))

        return dropped

    def _scalars(self, loss: Tensor, decay: Tensor) -> tuple[Tensor, dict[str, AdamWScalars], MuonScalars | None]:
        """Count the step; say which runs take it (alive, unfinished, finite loss) and how, for each group."""
        state = self.state
        running = state.alive & (state.step < self.last_step)
        finite = torch.isfinite(loss)
        active = running & finite
        self.losses.index_copy_(0, self.counter, torch.where(running, loss, torch.nan)[None])
        state.step.add_(active)
        state.age.add_(active)
        state.alive.logical_and_(finite | ~running)
        warmed = self._warmed()
        rate = self.learning_rate * warmed
        dtype = state.weights.dtype
        scalars = adamw_scalars(state.age, rate, decay, *self.betas, dtype=dtype)
        shrinks = {group: 1 - rate * (decay * factor) for group, factor in self.decay_factors.items()}
        shrinks["vector"] = 1 - rate * decay * self.decays_vectors
        by_group = {group: scalars._replace(shrink=shrink.to(dtype)) for group, shrink in shrinks.items()}
        return active, by_group, self._muon_scalars(warmed, by_group["matrix"].shrink) if self.is_muon else None

    def _warmed(self) -> Tensor:
        """The share of η that a run has reached; the step is counted already."""
        return torch.where(self.warmup > 0, (self.state.step / self.warmup.clamp(min=1)).clamp(max=1), 1)

    def _muon_scalars(self, warmed: Tensor, shrink: Tensor) -> MuonScalars:
        rate, momentum = self.muon
        found = (rate * warmed, shrink, momentum, 1 - momentum)
        return MuonScalars(*(value.to(self.state.weights.dtype) for value in found))

    def _transform(self, gradients: list[Tensor], active: Tensor, age: Tensor) -> list[Tensor]:
        """What AdamW is given in place of the gradients; the step is counted already."""
        if self.key.gradient == "orthogonal":
            return [orthogonal(own[0], gradient) for own, gradient in zip(self.parameters, gradients, strict=True)]
        if self.key.window:
            kept = zip(self.recent, gradients, strict=True)
            return [grokfast_window_(recent, gradient, active, age, self.grokfast[1]) for recent, gradient in kept]
        pairs = zip(self.slow, gradients, strict=True)
        return [grokfast_(slow, gradient, active, age == 1, *self.grokfast) for slow, gradient in pairs]

    def _decayed(self, gradients: Iterable[Tensor], decay: Tensor) -> list[Tensor]:
        """Gradients with the coupled decay of each parameter's group added."""
        factors = self.decay_factors | {"vector": self.decays_vectors}
        own = zip(self.parameters, gradients, self.groups, strict=True)
        return [decayed(weights, gradient, decay * factors[group]) for (weights, _, _), gradient, group in own]

    def _update(self, gradients: list[Tensor], active: Tensor, scalars: dict[str, AdamWScalars]) -> None:
        """AdamW parameter by parameter: joining the gradients first would cost a pass over all of them."""
        for (weights, first, second), gradient, group in zip(self.parameters, gradients, self.groups, strict=True):
            if not (self.is_muon and group == "matrix"):
                adamw_(weights, first, second, gradient, active, scalars[group])

    def _move_matrices(
        self, gradients: Iterable[Tensor], active: Tensor, scalars: MuonScalars, arithmetic: Arithmetic
    ) -> None:
        """Muon's part of the step."""
        own = zip(self.parameters, gradients, self.groups, strict=True)
        matrices = [(weights, first, gradient) for (weights, first, _), gradient, group in own if group == "matrix"]
        if matrices:
            muon_(matrices, active, scalars, arithmetic)

    def _hold_norm(self, active: Tensor) -> None:
        """Rescale each run that holds a norm to it; one that follows a paired run takes its norm, just updated."""
        held = self.state.held_norm
        norm = self._norms()
        held.copy_(torch.where(self.paired >= 0, norm[self.paired.clamp(min=0)], held))
        scale = torch.where(active & (held > 0), held / norm, 1).to(self.state.weights.dtype)
        self.state.weights.mul_(scale[:, None])

    def _holds(self, cohort: Cohort) -> NormHolds:
        return NormHolds(cohort.specs, cohort.layout, self.state.weights, self.state.anchors)

    def _norms(self) -> Tensor:
        return torch.linalg.vector_norm(self.state.weights, dim=1, dtype=self.state.held_norm.dtype)

    def _capture(self) -> None:
        """Record steps as CUDA graphs. Warming up trains, so the state is put back afterwards."""
        saved = [getattr(self.state, f.name).clone() for f in fields(self.state)]
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.counter.zero_()
                self._step()
        torch.cuda.current_stream().wait_stream(stream)
        self.counter.zero_()
        for steps in self.steps_of_graphs:
            with recorded() as graph:
                for _ in range(steps):
                    self._step()
            self.graphs.append((steps, graph))
        for f, value in zip(fields(self.state), saved, strict=True):
            getattr(self.state, f.name).copy_(value)
