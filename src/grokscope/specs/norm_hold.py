"""A norm that is held: an intervention on ‖W‖ of the whole network, or of parts of it, that does not go through λ.

To the parent's own norm, as it falls, a fork is held by `Fork.norm = "matched"`.
"""

from dataclasses import dataclass
from typing import Literal

from grokscope.specs.spec import Spec, require

__all__ = ["NormHold"]


@dataclass(frozen=True)
class NormHold(Spec):
    """From a step on, the norm of each part is brought to a target after every optimiser step.

    target(t) = level · (n₀ / level)^max(0, 1 − (t − start) / over), with n₀ the part's norm at `start`; without a
    level, target(t) = n₀. Decoupled weight decay rescales all weights alike, so holding ‖W‖ of the whole network leaves
    nothing of λ but a slightly longer step: such a run asks what the norm does, and λ no longer matters.
    """

    parts: tuple[str, ...] = ("all",)
    """What is held, each part at a norm of its own: `all`, `matrices` (no biases, no LayerNorms), a block as the
    measure `norms` names it (`embed`, `blocks.0`, `norms`, `unembed`), a branch (`blocks.0.mlp`) or one parameter
    (`blocks.0.mlp.W_in`)."""
    start: int = 0
    """The step at which n₀ is read; steps after it are held."""
    end: int | None = None
    """The last step that is held; None holds to the end of the run."""
    level: float | None = None
    """The norm that is held, of one part; None holds each part at its own n₀."""
    over: int = 0
    """Steps over which the norm is led from n₀ to the level, geometrically; 0 sets it with the first step."""
    side: Literal["both", "at_least", "at_most"] = "both"
    """`both`: the norm equals the target; `at_least`: it may be larger, a floor; `at_most`: smaller, a ceiling."""
    along: Literal["weights", "random"] = "weights"
    """`weights`: a part w is rescaled, w ← w · target / ‖w‖. `random`: the control of this, w ← w + a u with one fixed
    unit vector u for each part, drawn isotropically from the run's initialisation seed over the numbers that are no
    padding, and a = −⟨w, u⟩ ± √(⟨w, u⟩² + target² − ‖w‖²), the root nearer to 0 (+ where both are as near). Where no a
    reaches the target, a = −⟨w, u⟩, which comes nearest: a norm can be raised along u and hardly be lowered."""

    def check(self) -> None:
        """Parts that are named once, steps in order, and a level where it is needed and can be meant."""
        self.require_each("be at least 0", "start", "over")
        self.require_each("be positive", "level")
        is_named = len(self.parts) > 0 and all(part != "" and part.isprintable() for part in self.parts)
        require(is_named and len(set(self.parts)) == len(self.parts), "parts must be different names", self.parts)
        require(self.level is None or len(self.parts) == 1, "level is the norm of one part; parts are", self.parts)
        require(self.level is not None or self.over == 0, "over needs a level to which the norm is led", self.over)
        ends_later = self.end is None or self.end > self.start
        require(ends_later, f"the hold's end must lie after its start {self.start}", self.end)
