"""One change of λ at a signal."""

from dataclasses import dataclass
from typing import Literal

from grokscope.specs.spec import Spec, require

__all__ = ["Trigger"]

Signal = Literal["fsd", "train_accuracy", "step", "random"]
# Where each signal fires unless the trigger says otherwise.
THRESHOLDS: dict[Signal, float] = {"fsd": 0.80, "train_accuracy": 0.99, "step": 300.0}


@dataclass(frozen=True)
class Trigger(Spec):
    """One change of λ, made when a signal is seen: the accelerator of the paper's §6 and its controls."""

    signal: Signal = "fsd"
    """What is watched; `random` fires at a step drawn uniformly from the run's data-order seed."""
    at_least: float | None = None
    """Fires at the first evaluation at which the signal reaches this; None is the signal's own threshold (FSD 0.80,
    train accuracy 0.99, step 300), and the only choice for `random`, which reaches nothing."""
    weight_decay: float = 3.0
    """λ_high."""
    every: int = 100
    """Steps between evaluations."""
    restore_after_grokking: bool = False
    """Whether λ returns to its former value at the first evaluation with validation accuracy ≥ 0.95."""

    @property
    def threshold(self) -> float | None:
        """What the signal has to reach; None for `random`.

        >>> Trigger("train_accuracy").threshold
        0.99
        """
        return THRESHOLDS.get(self.signal) if self.at_least is None else self.at_least

    def check(self) -> None:
        """A positive cadence, a decay of at least 0, and a threshold that the signal can have."""
        self.require_each("be at least 1", "every")
        self.require_each("be at least 0", "weight_decay")
        if self.at_least is not None:
            require(self.signal != "random", "at_least must be left out for random", self.at_least)
            self.require_each("be at least 0", "at_least")
            is_share = self.signal in ("fsd", "train_accuracy")
            require(self.at_least <= 1 or not is_share, f"at_least must lie in [0, 1] for {self.signal}", self.at_least)
