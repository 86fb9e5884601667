"""A rule that keeps adjusting λ while a run trains, by what its training set says."""

from dataclasses import dataclass

from grokscope.specs.spec import Spec, require

__all__ = ["ClosedLoop"]


@dataclass(frozen=True)
class ClosedLoop(Spec):
    """Raise λ step by step while the training set stays learnt; back off at the first sign that it does not.

    Ours, beyond the paper: its accelerator (§6) changes λ once and reads nothing afterwards. An evaluation is calm if
    train accuracy and train loss are within their bounds; validation accuracy never raises λ.
    """

    every: int = 100
    """Steps between evaluations."""
    train_accuracy: float = 0.999
    """A calm evaluation has at least this train accuracy."""
    train_loss: float = 0.1
    """A calm evaluation has at most this train loss, in nats: a spike shows here before answers go wrong."""
    patience: int = 1
    """Calm evaluations in a row before λ is raised."""
    factor: float = 1.5
    """What λ is multiplied by when it is raised."""
    highest: float = 5.0
    """λ is never raised beyond this."""
    back_off: float = 0.5
    """What λ is multiplied by at an evaluation that is not calm, down to the λ it began with."""
    restore_after_grokking: bool = True
    """Whether λ returns to where it began, and stays, at the first evaluation with validation accuracy ≥ 0.95."""

    def check(self) -> None:
        """Positive cadences, shares in their ranges, a factor that raises and one that lowers."""
        self.require_each("be at least 1", "every", "patience")
        self.require_each("lie in (0, 1]", "train_accuracy")
        self.require_each("be positive", "train_loss", "highest")
        self.require_each("lie in [0, 1)", "back_off")
        require(self.factor > 1, "factor must be above 1", self.factor)
