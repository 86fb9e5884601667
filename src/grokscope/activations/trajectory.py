"""A stored run's checkpoints in order, of which those before a measured one are read when a measure asks for them."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from grokscope.errors import require
from grokscope.shapes import Float

__all__ = ["Trajectory"]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One run's stored steps, and its parameters at each of them.

    What stands before a checkpoint is a fact of the run: it depends neither on which steps are measured nor on how
    many of them are measured together.

    >>> import torch
    >>> weights = {0: torch.zeros(2), 10: torch.ones(2), 30: torch.ones(2)}
    >>> run = Trajectory((0, 10, 30), weights.__getitem__, measured=(30, 0))
    >>> run.until(30, 1), run.until(10, 5)
    ((10, 30), (0, 10))
    """

    steps: tuple[int, ...]
    """All steps with stored weights, in ascending order."""
    read: Callable[[int], Float[Tensor, " parameters"]]
    """All parameters at a stored step in float64, side by side in an order that is always the same, without padding."""
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
