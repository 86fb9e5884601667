"""A stored run's checkpoints in order, of which those before a measured one are read when a measure asks for them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from grokscope.errors import require
from grokscope.shapes import Float

__all__ = ["Trajectory"]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One run's stored steps, and its parameters at each of them.

    What stands before a checkpoint is a fact of the run: it depends neither on which steps are measured nor on how
    many of them are measured together.

    >>> weights = {step: {"embed.W_E": torch.full((2,), step / 10)} for step in (0, 10, 30)}
    >>> run = Trajectory((0, 10, 30), weights.__getitem__, measured=(30, 0))
    >>> run.until(30, 1), run.until(10, 5), run.parameters(30)
    ((10, 30), (0, 10), tensor([3., 3.], dtype=torch.float64))
    """

    steps: tuple[int, ...]
    """All steps with stored weights, in ascending order."""
    read: Callable[[int], Mapping[str, Tensor]]
    """All parameters at a stored step, by name."""
    measured: tuple[int, ...]
    """The step of each checkpoint of the subject."""

    def __post_init__(self) -> None:
        ordered = all(first < second for first, second in zip(self.steps, self.steps[1:], strict=False))
        require(ordered, "stored steps must be in ascending order", self.steps)
        unknown = sorted(set(self.measured) - set(self.steps))
        require(not unknown, "what is measured must be a stored step", unknown)

    def until(self, step: int, before: int) -> tuple[int, ...]:
        """A stored step, after the `before` stored steps that come right before it, or as many as there are."""
        place = self.steps.index(step)
        return self.steps[max(0, place - before) : place + 1]

    def parameters(self, step: int, among: str = "") -> Float[Tensor, " parameters"]:
        """The parameters at a stored step whose names contain this, side by side in the order of names, in float64."""
        chosen = [tensor.double().flatten() for name, tensor in sorted(self.read(step).items()) if among in name]
        require(chosen, f"there are parameters named …{among}… in no checkpoint of this model")
        return torch.cat(chosen)
