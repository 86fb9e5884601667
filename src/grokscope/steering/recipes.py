"""Ready ways of training that grok soon: what they change of a run, in one place."""

from dataclasses import dataclass, replace

from grokscope.specs import Release, RunSpec

__all__ = ["FAST", "RECIPES", "Recipe"]


@dataclass(frozen=True)
class Recipe:
    """An optimiser with strong decay, and when it is let go."""

    summary: str
    """In one sentence."""
    weight_decay: float
    """The strong λ to begin with; each step multiplies every decayed parameter by 1 − 10⁻³λ."""
    release: Release
    """When λ is let go, and to what, where validation accuracy is known."""
    muon_learning_rate: float = 0.02
    """Muon's η, for the matrices."""
    learning_rate: float = 1e-3
    """AdamW's η, for everything else, and of the decay of all."""

    def apply(self, run: RunSpec) -> RunSpec:
        """The run by this recipe; its task, model, data and seeds stay.

        >>> FAST.apply(RunSpec("S5")).training.optimizer
        'muon'
        """
        training = replace(
            run.training,
            optimizer="muon",
            learning_rate=self.learning_rate,
            muon_learning_rate=self.muon_learning_rate,
            weight_decay=self.weight_decay,
            weight_decay_schedule=(),
        )
        return replace(run, training=training, trigger=None, control=None, release=self.release)


FAST = Recipe(
    "Muon on the matrices, AdamW on the rest, λ = 1 until the training set is learnt, then 5, let go to λ = 1 at "
    "generalisation or when what is memorised breaks, halved where it only hinders.",
    weight_decay=5.0,
    release=Release(
        at=("generalization", "accuracy_breaks", "loss_rises"), weight_decay=1.0, every=50, patience=1000, gentle=1.0
    ),
)
RECIPES = {"fast": FAST}
