"""A rule that keeps adjusting λ while a run trains, by what its training set says."""

from dataclasses import dataclass

from grokscope.specs.spec import Spec, require

__all__ = ["ClosedLoop"]


@dataclass(frozen=True)
class ClosedLoop(Spec):
    """Raise λ step by step while the training set stays learnt; back off at the first sign that it does not.

    Ours, beyond the paper: its accelerator (§6) changes λ once and looks at nothing afterwards. A look is calm if train
    accuracy and train loss are within their bounds; validation accuracy never raises λ.
    """

    every: int = 100
    """Steps between looks."""
    train_accuracy: float = 0.999
    """A calm look has at least this train accuracy."""
    train_loss: float = 0.1
    """A calm look has at most this train loss, in nats: a spike shows here before answers go wrong."""
    patience: int = 1
    """Calm looks in a row before λ is raised."""
    factor: float = 1.5
    """What λ is multiplied by when it is raised."""
    highest: float = 5.0
    """λ is never raised beyond this."""
    back_off: float = 0.5
    """What λ is multiplied by at a look that is not calm, down to the λ it began with."""
    restore_after_grokking: bool = True
    """Whether λ returns to where it began, and stays, at the first look with validation accuracy ≥ 0.95."""

    def check(self) -> None:
        """Positive cadences, shares in their ranges, a factor that raises and one that lowers."""
        for name in ("every", "patience"):
            require(getattr(self, name) >= 1, f"{name} must be at least 1", getattr(self, name))
        require(0 < self.train_accuracy <= 1, "train_accuracy must lie in (0, 1]", self.train_accuracy)
        require(self.train_loss > 0, "train_loss must be positive", self.train_loss)
        require(self.factor > 1, "factor must be above 1", self.factor)
        require(0 <= self.back_off < 1, "back_off must lie in [0, 1)", self.back_off)
        require(self.highest > 0, "highest must be positive", self.highest)
