"""The published definitions of restricted and excluded losses."""

from dataclasses import dataclass
from typing import Literal

from grokscope.measures.filters import Change
from grokscope.measures.mode_choice import RESTRICTED_MODES

__all__ = ["VARIANTS", "Pairs", "Variant"]

Pairs = Literal["all", "train", "validation"]


@dataclass(frozen=True)
class Variant:
    """One published definition. Where a model has a final LayerNorm, it follows every filter of neurons."""

    level: Literal["logits", "cubes", "neurons"]
    """What is filtered: logits over the inputs, logits over inputs and classes, or the last block's MLP neurons."""
    change: Change
    """What happens to the key modes."""
    scored_on: Pairs
    """The pairs that are scored."""
    definition: str
    """Who defined it, and how."""
    skip: bool = True
    """Whether the residual stream is added to the filtered neurons."""
    corrected: bool = False
    """Whether each class's mean logit over all inputs is then set back to the model's."""
    count: int | None = None
    """How many of the last hidden layer's `top_modes` are taken; None takes its `key_modes`."""


# u_k and v_k are the unit vectors of cos and sin 2πk(a + b)/p over the inputs, on other tasks the modes' functions of
# the answer: (u_k u_kᵀ + v_k v_kᵀ) L is then a mode of the answer-conditioned mean of L.
VARIANTS: dict[str, Variant] = {
    "trig": Variant("logits", "keep", "all", "Nanda et al.: Σ_K (u_k u_kᵀ + v_k v_kᵀ) L and each class's mean"),
    "excluded": Variant("logits", "remove", "train", "Nanda et al.: L − Σ_K (u_k u_kᵀ + v_k v_kᵀ) L, not corrected"),
    "cube_restricted": Variant(
        "cubes", "only", "all", "Chughtai et al. (logits): projections on χ(x·y·z⁻¹), which is cos 2πk(a + b − c)/p"
    ),
    "cube_excluded": Variant(
        "cubes", "remove", "train", "Nanda et al. (3D) and Chughtai et al. (logits): L without those projections"
    ),
    "neuron_restricted": Variant(
        "neurons",
        "keep",
        "validation",
        "Nanda et al. (demonstration): mean and key modes of the neurons, no residual stream, class means restored",
        skip=False,
        corrected=True,
    ),
    "neuron_excluded": Variant(
        "neurons",
        "remove",
        "train",
        "Nanda et al. (demonstration): neurons without key modes, residual stream kept",
    ),
    "hidden_restricted": Variant(
        "neurons",
        "only",
        "all",
        "Chughtai et al. (hidden): projections on the functions ρ(x·y) of key irreps, no mean, no residual stream",
        skip=False,
    ),
    "hidden_excluded": Variant(
        "neurons", "remove", "train", "Chughtai et al. (hidden): neurons without those, no residual stream", skip=False
    ),
    "paper_restricted": Variant(
        "neurons",
        "keep",
        "all",
        "the paper (§5.2): the seven modes with most neurons at this very checkpoint",
        count=RESTRICTED_MODES,
    ),
}
