"""What is done to a gradient before the optimiser sees it, over a stack: Grokfast, ⊥Grad, coupled decay."""

from collections.abc import Callable

import torch
from torch import Tensor

from grokscope.shapes import Bool, Float, Int

__all__ = ["decayed", "grokfast_", "grokfast_window_", "orthogonal"]

TINY = 1e-30  # beside squares and norms: where weights or gradients are zero nothing is divided by zero
ROUNDING = 16  # units in the last place of |g|: a rest as short as that is rounding and has no direction


def grokfast_(
    slow: Float[Tensor, "runs *shape"],
    gradient: Float[Tensor, "runs *shape"],
    active: Bool[Tensor, " runs"],
    is_first: Bool[Tensor, " runs"],
    alpha: Float[Tensor, " runs"],
    lamb: Float[Tensor, " runs"],
) -> Float[Tensor, "runs *shape"]:
    """Grokfast-EMA: g + ℓμ with μ ← αμ + (1 − α)g (Lee et al. 2024, Algorithm 2); μ is changed in place.

    At a run's first step μ is its first gradient, as in the authors' own code; their Algorithm 2 prints μ ← θ₀, and
    parameters are no average of gradients. Idle runs keep every bit of μ.
    """
    shape = (-1, *(1,) * (gradient.ndim - 1))
    kept = alpha.where(~is_first, 0)
    average = slow * kept.view(shape) + gradient * (1 - kept).view(shape)
    slow.copy_(average.where(active.view(shape), slow))
    return gradient + average * lamb.view(shape)


def grokfast_window_(
    recent: Float[Tensor, "runs window *shape"],
    gradient: Float[Tensor, "runs *shape"],
    active: Bool[Tensor, " runs"],
    age: Int[Tensor, " runs"],
    lamb: Float[Tensor, " runs"],
) -> Float[Tensor, "runs *shape"]:
    """Grokfast-MA: g + ℓ times the mean of the last w gradients, from a run's w-th step on (Lee et al. 2024).

    `recent` is a ring: step number `age` (counted from 1) takes the place of step age − w. Idle runs keep every bit.
    The mean is summed place by place, so that no run's depends on the stack.
    """
    window, shape = recent.shape[1], (-1, *(1,) * (gradient.ndim - 1))
    place = ((age - 1).clamp(min=0) % window).view(-1, 1, *shape[1:]).expand(-1, 1, *gradient.shape[1:])
    recent.scatter_(1, place, gradient.where(active.view(shape), recent.gather(1, place)[:, 0])[:, None])
    total = recent[:, 0].clone()
    for k in range(1, window):
        total += recent[:, k]
    return gradient + total * (lamb / window).where(age >= window, 0).view(shape)


def decayed(
    weights: Float[Tensor, "runs *shape"], gradient: Float[Tensor, "runs *shape"], decay: Float[Tensor, " runs"]
) -> Float[Tensor, "runs *shape"]:
    """Coupled weight decay: g + λw, the gradient of the loss and of λ‖w‖²/2, as `torch.optim.Adam` computes it."""
    return gradient + weights * decay.to(gradient.dtype).view(-1, *(1,) * (gradient.ndim - 1))


def dots(a: Float[Tensor, "runs numbers"], b: Float[Tensor, "runs numbers"]) -> Float[Tensor, " runs"]:
    """Σ a·b of each run."""
    return (a * b).sum(dim=1)


def norms(x: Float[Tensor, "runs numbers"]) -> Float[Tensor, " runs"]:
    """Length of each run's numbers."""
    return x.norm(dim=1)


def orthogonal(
    weights: Float[Tensor, "runs *shape"],
    gradient: Float[Tensor, "runs *shape"],
    dots: Callable[[Tensor, Tensor], Tensor] = dots,
    norms: Callable[[Tensor], Tensor] = norms,
) -> Float[Tensor, "runs *shape"]:
    """⊥Grad (Prieto et al. 2025): g⊥ = g − (wᵀg / wᵀw) w, at the length of g; one parameter tensor at a time.

    Without the part along the weights a step cannot lower the loss by scaling the logits up. A gradient along the
    weights, as that of every tensor with a single entry, has no rest and becomes zero.
    """
    w, g = weights.flatten(1), gradient.flatten(1)
    along = dots(w, g) / (dots(w, w) + TINY)
    rest = g - along.to(g.dtype)[:, None] * w
    whole, left = norms(g), norms(rest)
    scale = (whole / (left + TINY)).where(left > ROUNDING * torch.finfo(g.dtype).eps * whole, 0).to(g.dtype)[:, None]
    return (rest * scale).view_as(gradient)
