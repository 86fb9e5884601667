"""What others do to a gradient before the optimiser sees it, over a stack: Grokfast-EMA and ⊥Grad."""

from torch import Tensor

from grokscope.shapes import Bool, Float

__all__ = ["grokfast_", "orthogonal"]

TINY = 1e-30  # beside squares and norms: where weights or gradients are zero nothing is divided by zero


def grokfast_(
    slow: Float[Tensor, "runs *shape"],
    gradient: Float[Tensor, "runs *shape"],
    active: Bool[Tensor, " runs"],
    alpha: Float[Tensor, " runs"],
    lamb: Float[Tensor, " runs"],
) -> Float[Tensor, "runs *shape"]:
    """Grokfast-EMA: g + ℓμ with μ ← αμ + (1 − α)g (Lee et al. 2024); μ, which begins at zero, is changed in place.

    Idle runs keep every bit of μ.
    """
    shape = (-1, *(1,) * (gradient.ndim - 1))
    average = slow * alpha.view(shape) + gradient * (1 - alpha).view(shape)
    slow.copy_(average.where(active.view(shape), slow))
    return gradient + average * lamb.view(shape)


def orthogonal(
    weights: Float[Tensor, "runs *shape"], gradient: Float[Tensor, "runs *shape"]
) -> Float[Tensor, "runs *shape"]:
    """⊥Grad (Prieto et al. 2025): g⊥ = g − (wᵀg / wᵀw) w, at the length of g; one parameter tensor at a time.

    Without the part along the weights a step cannot lower the loss by scaling the logits up.
    """
    w, g = weights.flatten(1), gradient.flatten(1)
    along = (w * g).sum(dim=1, keepdim=True) / (w.square().sum(dim=1, keepdim=True) + TINY)
    rest = g - along * w
    length = g.norm(dim=1, keepdim=True) / (rest.norm(dim=1, keepdim=True) + TINY)
    return (rest * length).view_as(gradient)
