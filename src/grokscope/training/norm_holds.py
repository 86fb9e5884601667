"""Norms of parts of the network, led to a level and held there after every step (`NormHold`).

Weights are rescaled for it, or, as a control, moved along one fixed random direction.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

import torch
from torch import Tensor

from grokscope.errors import require
from grokscope.model import Layout, layout_of, padded_sizes, sizes_of
from grokscope.randomness import normal
from grokscope.shapes import Bool, Float, Int
from grokscope.specs import NormHold, RunSpec
from grokscope.tasks import named_task

__all__ = ["NormHolds", "anchors_of", "held_parts", "hold_directions", "hold_targets", "reject_impossible_hold"]

NEVER = 2**62  # a step that no run reaches
Products = Callable[[Float[Tensor, "runs numbers"], Float[Tensor, "runs numbers"]], Float[Tensor, " runs"]]


def held_parts(spec: RunSpec) -> tuple[str, ...]:
    """The parts whose norms a run holds.

    >>> held_parts(RunSpec()), held_parts(RunSpec(norm_hold=NormHold(("embed", "unembed"))))
    ((), ('embed', 'unembed'))
    """
    return spec.norm_hold.parts if spec.norm_hold is not None else ()


def reject_impossible_hold(spec: RunSpec, parent: RunSpec | None = None) -> None:
    """Reject parts that the model does not have or that overlap, and a hold that begins before the fork it belongs to.

    A fork may go on with its parent's own hold; any other has to begin at the fork or later, for n₀ is not known.

    >>> reject_impossible_hold(RunSpec(norm_hold=NormHold(("embed",), level=10.0)))  # nothing speaks against it
    """
    if spec.norm_hold is None:
        return
    layout = _layout(spec)
    names = [name for part in spec.norm_hold.parts for name in layout.part(part)]
    require(len(set(names)) == len(names), "the parts of a norm hold must not overlap", spec.norm_hold.parts)
    if spec.fork is not None and (parent is None or parent.norm_hold != spec.norm_hold):
        begins = spec.norm_hold.start
        require(
            begins >= spec.fork.step, f"the norm hold's start must not lie before the fork {spec.fork.step}", begins
        )


def anchors_of(weights: Float[Tensor, " parameters"], spec: RunSpec) -> Float[Tensor, " parts"]:
    """n₀: the norm of each part that a run holds, in float64; empty where it holds none.

    >>> spec = RunSpec(norm_hold=NormHold(("pos_embed",)))
    >>> float(anchors_of(torch.ones(layout_of(spec.architecture, padded_sizes(named_task(spec.task))).size), spec))
    19.595917942265423
    """
    parts = held_parts(spec)
    if not parts:
        return torch.empty(0, dtype=torch.float64, device=weights.device)
    layout = _layout(spec)
    rows = {name: view.flatten(1) for name, view in layout.views(weights[None]).items()}
    found = [torch.stack([_squares(rows[name]) for name in layout.part(part)]).sum(dim=0) for part in parts]
    return torch.cat(found).sqrt()


def hold_targets(
    step: Int[Tensor, " runs"],
    anchors: Float[Tensor, "runs parts"],
    start: Int[Tensor, " runs"],
    over: Int[Tensor, " runs"],
    level: Float[Tensor, " runs"],
) -> Float[Tensor, "runs parts"]:
    """target(t) = level · (n₀ / level)^max(0, 1 − (t − start) / over); n₀ where a run has no level (NaN).

    >>> one = torch.ones(1, dtype=torch.int64)
    >>> hold_targets(1005 * one, torch.tensor([[40.0]]), 1000 * one, 10 * one, torch.tensor([10.0])).tolist()
    [[20.0]]
    """
    taken = (step - start).to(anchors)  # whole numbers are divided in float32
    left = (1 - taken / over.clamp(min=1).to(anchors)).clamp(0, 1) * (over > 0)
    level = level[:, None].to(anchors)
    return torch.where(level.isnan(), anchors, level * (anchors / level) ** left[:, None])


def hold_directions(specs: Sequence[RunSpec], layout: Layout) -> Float[Tensor, "runs parameters"]:
    """The unit vector u of each held part, in float64: isotropic over its numbers that are no padding; 0 elsewhere.

    A number is a function of the run's initialisation seed, the parameter and its place in it alone.

    >>> spec = RunSpec(norm_hold=NormHold(("embed",), along="random"))
    >>> own = layout_of(spec.architecture, padded_sizes(named_task(spec.task)))
    >>> round(float(hold_directions([spec], own).norm()), 6)
    1.0
    """
    flat = torch.zeros(len(specs), layout.size, dtype=torch.float64)
    views, places = layout.views(flat), tuple(layout.shapes)
    for slot, spec in enumerate(specs):
        seed, sizes = torch.tensor([spec.seeds.initialization]), sizes_of(named_task(spec.task))
        for part in held_parts(spec):
            own = [views[name][slot][layout.real(name, sizes)] for name in layout.part(part)]
            for view, name in zip(own, layout.part(part), strict=True):
                place = torch.tensor([places.index(name)])
                view[:] = normal(seed, "direction", place, view.numel()).view_as(view)
            length = torch.stack([view.square().sum() for view in own]).sum().sqrt()
            for view in own:
                view /= length
    return flat


class NormHolds:
    """The holds of a stack, all of one set of parts; everything else is each run's own."""

    def __init__(
        self, specs: Sequence[RunSpec], layout: Layout, weights: Tensor, anchors: Tensor, dots: Products | None = None
    ) -> None:
        holds = [spec.norm_hold or NormHold() for spec in specs]
        views = layout.views(weights)
        parts = held_parts(specs[0])
        # The whole network is one row of numbers: one sum in place of one for each parameter.
        self.views = [[weights] if part == "all" else [views[name] for name in layout.part(part)] for part in parts]
        self.rows = [[view.flatten(1) for view in part] for part in self.views]
        self.anchors, self.dots = anchors, dots or _dots
        self.directions: list[list[Tensor]] = []
        if specs[0].norm_hold is not None and specs[0].norm_hold.along == "random":
            drawn = hold_directions(specs, layout).to(weights)
            own = layout.views(drawn)
            self.directions = [
                [drawn] if part == "all" else [own[name] for name in layout.part(part)] for part in parts
            ]

        def column(values: list[int | float], dtype: torch.dtype) -> Tensor:
            return torch.tensor(values, dtype=dtype, device=weights.device)

        self.start = column([hold.start for hold in holds], torch.int64)
        self.end = column([NEVER if hold.end is None else hold.end for hold in holds], torch.int64)
        self.over = column([hold.over for hold in holds], torch.int64)
        self.level = column([torch.nan if hold.level is None else hold.level for hold in holds], anchors.dtype)
        # A floor only rescales up, a ceiling only down.
        self.least = column([1.0 if hold.side == "at_least" else 0.0 for hold in holds], anchors.dtype)
        self.most = column([1.0 if hold.side == "at_most" else torch.inf for hold in holds], anchors.dtype)

    def apply(self, step: Int[Tensor, " runs"], active: Bool[Tensor, " runs"]) -> None:
        """Bring what is held to its target, in place; `step` is the number of the step that was just taken.

        A run that does not hold at this step is multiplied by exactly 1, or keeps its weights as they are.
        """
        norms = torch.stack([reduce(add, (self.dots(rows, rows) for rows in part)) for part in self.rows], dim=1).sqrt()
        self.anchors.copy_(torch.where((active & (step == self.start))[:, None], norms, self.anchors))
        targets = hold_targets(step, self.anchors, self.start, self.over, self.level)
        scale = torch.where(norms > 0, targets / norms, 1)
        scale = scale.clamp(self.least[:, None], self.most[:, None])
        holds = active & (step > self.start) & (step <= self.end)
        scale = torch.where(holds[:, None], scale, 1)
        if self.directions:
            self._move(norms, scale, holds)
            return
        for part, views in enumerate(self.views):
            for view in views:
                view.mul_(scale[:, part].to(view.dtype).view(-1, *(1,) * (view.ndim - 1)))

    def _move(
        self, norms: Float[Tensor, "runs parts"], scale: Float[Tensor, "runs parts"], holds: Bool[Tensor, " runs"]
    ) -> None:
        """Add a u to each part, so that its norm becomes ‖w‖ · scale or comes as near to it as it can."""
        for part, (views, rows, directions) in enumerate(zip(self.views, self.rows, self.directions, strict=True)):
            along = reduce(add, (self.dots(own, u.flatten(1)) for own, u in zip(rows, directions, strict=True)))
            wanted = norms[:, part].square() * (scale[:, part].square() - 1)
            root = (along.square() + wanted).clamp(min=0).sqrt()
            by = torch.where(along < 0, -along - root, root - along)
            by = torch.where(holds & (scale[:, part] != 1), by, 0)
            for view, u in zip(views, directions, strict=True):
                view.addcmul_(u, by.to(view.dtype).view(-1, *(1,) * (view.ndim - 1)))


def _squares(rows: Tensor) -> Tensor:
    """Σw² of each run in float64 (on mps, which has none, in float32)."""
    exact = torch.float32 if rows.device.type == "mps" else torch.float64
    return torch.linalg.vector_norm(rows, dim=1, dtype=exact).square()


def _dots(rows: Tensor, others: Tensor) -> Tensor:
    """Σwu of each run, as exact; of w with itself its square without a copy of the weights."""
    if others is rows:
        return _squares(rows)
    exact = torch.float32 if rows.device.type == "mps" else torch.float64
    return (rows.to(exact) * others.to(exact)).sum(dim=1)


def _layout(spec: RunSpec) -> Layout:
    return layout_of(spec.architecture, padded_sizes(named_task(spec.task)))
