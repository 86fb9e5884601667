"""Where gradients go in a pass by kernels: one flat buffer, and sums of tiles that are finished together."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

import torch
from torch import Tensor

from grokscope.kernels import sums
from grokscope.kernels.aside import Aside
from grokscope.kernels.product import product
from grokscope.model.layout import Layout

__all__ = ["Gradients"]


@dataclass
class _Parts:
    """Sums of tiles, [runs, tiles, columns], and the parameters whose gradients their columns are."""

    tensor: Tensor
    """Where kernels write them."""
    names: tuple[str | None, ...]
    """One parameter for each equal share of the columns, or None where there is none."""
    offset: int = 0
    """Where the columns begin within the parameter."""


class Gradients:
    """A flat buffer like the weights', and sums of tiles that are finished in one launch."""

    def __init__(self, layout: Layout, runs: int, like: Tensor) -> None:
        # Products need a stack of at least two.
        self.stack = torch.zeros(max(2, runs), layout.size, dtype=like.dtype, device=like.device)
        self.flat = self.stack[:runs]
        self.matrices = layout.views(self.stack)
        self.places = layout.places
        self.ordered: tuple[Tensor, Tensor]
        """The batch in the order of its tokens, for sums over the rows that they chose."""
        self.parts: dict[str, _Parts] = {}
        self.joined: Tensor | None = None
        self.plan: Tensor | None = None
        # Nothing waits for the weights' gradients but the end of the pass; two at a time keep up with the rest of it.
        self.products = cycle([Aside(like.device, runs), Aside(like.device, runs)])
        self.aside = Aside(like.device, runs)

    def reserve(self, key: str, tiles: int, columns: int, names: Sequence[str | None], offset: int = 0) -> Tensor:
        """Room for the sums of an operation's tiles; the same at every step."""
        if key not in self.parts:
            tensor = self.flat.new_zeros(len(self.flat), tiles, columns)
            self.parts[key] = _Parts(tensor, tuple(names), offset)
            self.joined = self.plan = None
        return self.parts[key].tensor

    def multiply(self, x: Tensor, dy: Tensor, out: Tensor) -> None:
        """A weight's gradient xᵀ dy."""
        with next(self.products)(x, dy):
            product(x.transpose(1, 2), dy, out)

    def finish(self) -> None:
        """Add up all tiles' sums into the flat buffer, and wait for all gradients."""
        if self.joined is None or self.plan is None:
            self._join()
        assert self.joined is not None
        assert self.plan is not None
        if len(self.plan):
            sums.finish_parts(self.joined, self.plan, self.flat, self.widest)
        for aside in (next(self.products), next(self.products), self.aside):
            aside.join()

    def _join(self) -> None:
        """Put all sums into one buffer, so that one launch finishes them from now on."""
        self.joined = torch.cat([self.flat[0, :0], *(parts.tensor.flatten() for parts in self.parts.values())])
        plan, start = [], 0
        for parts in self.parts.values():
            (_, tiles, columns), size = parts.tensor.shape, parts.tensor.numel()
            width = columns // len(parts.names)
            for i, name in enumerate(parts.names):
                if name is not None:
                    plan.append(
                        (start + i * width, tiles * columns, columns, tiles, width, self.places[name] + parts.offset)
                    )
            parts.tensor = self.joined[start : start + size].view(parts.tensor.shape)
            start += size
        self.widest = max((width for *_, width, _ in plan), default=0)
        self.plan = torch.tensor(plan, dtype=torch.int64, device=self.flat.device).reshape(-1, 6)
