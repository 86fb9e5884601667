"""Ready ways of training that grok soon: what they change of a run, in one place."""

from dataclasses import dataclass, replace

from grokscope.model import matrix_shapes, sizes_of
from grokscope.specs import Release, RunSpec
from grokscope.tasks import named_task

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
    without_muon: Release
    """The same where there is no matrix for Muon. Its steps are twenty times as long as AdamW's, which learn little
    against strong decay: a weight that moves by 0.001 and loses 0.5 % in a step stays near or below 0.2. So strong
    decay waits until the training set is learnt."""
    muon_learning_rate: float = 0.02
    """Muon's η, for the matrices."""
    learning_rate: float = 1e-3
    """AdamW's η, for everything else, and of the decay of all."""

    def apply(self, run: RunSpec) -> RunSpec:
        """The run by this recipe; its task, model, data and seeds stay.

        >>> fast = FAST.apply(RunSpec("S5"))
        >>> fast.training.optimizer, fast.release == FAST.release
        ('muon', True)
        """
        training = replace(
            run.training,
            optimizer="muon",
            learning_rate=self.learning_rate,
            muon_learning_rate=self.muon_learning_rate,
            weight_decay=self.weight_decay,
            weight_decay_schedule=(),
        )
        moved = replace(run, training=training, trigger=None, control=None, release=None)
        return replace(moved, release=self.release_of(moved))

    def release_of(self, run: RunSpec) -> Release:
        """When λ of a run is let go: it depends on whether its model has a matrix that Muon moves.

        >>> FAST.release_of(RunSpec()).gentle  # AdamW's
        1.0
        """
        has_matrices = matrix_shapes(run.architecture, sizes_of(named_task(run.task)))
        return self.release if run.training.optimizer == "muon" and has_matrices else self.without_muon


AT_ONCE = Release(at=("generalization",), weight_decay=1.0, every=50, patience=1000)
FAST = Recipe(
    "Muon on the matrices, AdamW on the rest, λ = 5 (without matrices for Muon: once the training set is learnt), let "
    "go to λ = 1 at generalisation, halved where it only hinders.",
    weight_decay=5.0,
    release=AT_ONCE,
    without_muon=replace(AT_ONCE, at=("generalization", "accuracy_breaks", "loss_rises"), gentle=1.0),
)
RECIPES = {"fast": FAST}
