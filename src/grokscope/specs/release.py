"""Strong decay that is let go, begun late or eased where it only hinders: the rule, and what it reads in a log."""

from dataclasses import dataclass
from typing import Literal

from grokscope.specs.spec import Spec, require

__all__ = ["Release"]

Sign = Literal["generalization", "norm_slows", "norm_target", "accuracy_breaks", "loss_rises"]


@dataclass(frozen=True)
class Release(Spec):
    """Begin with strong decay, and let it go at the first of some signs: λ becomes `weight_decay` for good.

    Ours, beyond the paper. Strong decay makes a circuit win sooner and destroys it afterwards, so that what matters is
    to let go in time. The rule is a function of the run's evaluations alone.
    """

    at: tuple[Sign, ...] = ("generalization",)
    """Which signs count: `generalization`: validation accuracy reaches its threshold; `norm_slows`: the training set is
    learnt and the norm, which fell, hardly falls any more; `norm_target`: the norm is down to its target;
    `accuracy_breaks`: train accuracy falls after the training set was learnt; `loss_rises`: train loss does so."""
    weight_decay: float = 1.0
    """λ afterwards."""
    every: int = 50
    """Steps between evaluations, at which alone λ changes."""
    anneal_steps: int = 0
    """λ goes down linearly, from step 0 to here, until a sign is seen; with 0 it stays where it began."""
    validation_accuracy: float = 0.95
    """What counts as generalisation."""
    slowdown: float = 0.1
    """The norm's fall has slowed when ln‖W‖ falls by at most this share of its fastest fall over as many steps."""
    window: int = 200
    """The steps over which that fall is measured."""
    least_fall: float = 0.1
    """The norm fell at all if its fastest fall of ln‖W‖ over such a window was at least this."""
    norm_target: float = 20.0
    """‖W‖ at which `norm_target` acts."""
    memorized: float = 0.99
    """The training set is learnt once train accuracy has reached this."""
    accuracy_drop: float = 0.02
    """Train accuracy breaks when it is further than this below `memorized`."""
    memorized_loss: float = 0.1
    """The training set is learnt, for the train loss, once that was at most this, in nats."""
    loss_factor: float = 3.0
    """Train loss has risen when it is above this many times `memorized_loss`."""
    patience: int = 0
    """λ is eased after so many steps without progress, which is a loss or an error at least 5 % below the lowest until
    then: of the training set until it is learnt, or of what is held out. With 0 it never is."""
    ease: float = 0.5
    """What λ is then multiplied by, again and again; not below `weight_decay` once the training set was learnt."""
    gentle: float | None = None
    """λ until the training set is learnt, when strong decay begins, unless it has generalised by then. Where λ is eased
    before, the strong λ is multiplied likewise. Signs other than `generalization` count from there on. None: strong
    decay begins with the run."""

    def check(self) -> None:
        """Something that changes λ, each sign once, and thresholds that can be reached."""
        changes = self.at or self.anneal_steps or self.gentle is not None
        require(changes, "at must name a sign, unless λ is annealed or begins gently", self.at)
        require(len(set(self.at)) == len(self.at), "at must name each sign once", self.at)
        self.require_each("be at least 1", "every", "window", "loss_factor")
        self.require_each("be at least 0", "weight_decay", "anneal_steps", "accuracy_drop", "patience")
        self.require_each("be positive", "norm_target", "memorized_loss", "least_fall")
        self.require_each("lie in (0, 1]", "validation_accuracy", "memorized")
        self.require_each("lie in [0, 1)", "slowdown", "ease")
        require(self.gentle is None or self.gentle >= 0, "gentle must be at least 0", self.gentle)
        is_strong = self.gentle is None or not self.anneal_steps
        require(is_strong, "gentle must be left out where λ is annealed, which begins strong", self.gentle)
        both = "patience must be 0 where λ is annealed, which lowers it anyway"
        require(not (self.patience and self.anneal_steps), both, self.patience)
        is_seen = "norm_slows" not in self.at or self.window >= self.every
        require(is_seen, f"window must be at least every ({self.every} steps)", self.window)
