"""AdamW (Loshchilov and Hutter, 2019) over a stack, with every hyperparameter its run's own."""

from typing import NamedTuple

import torch
from torch import Tensor

from grokscope.shapes import Bool, Float, Int

__all__ = ["AdamWScalars", "adamw_", "adamw_scalars", "clipped"]


class AdamWScalars(NamedTuple):
    """The numbers of one step that are the same for all of a run's parameters, in the weights' precision."""

    size: Float[Tensor, " runs"]
    """η / (1 − β₁ᵗ)."""
    root: Float[Tensor, " runs"]
    """√(1 − β₂ᵗ)."""
    shrink: Float[Tensor, " runs"]
    """1 − ηλ."""
    beta1: Float[Tensor, " runs"]
    """β₁."""
    beta2: Float[Tensor, " runs"]
    """β₂."""
    rest1: Float[Tensor, " runs"]
    """1 − β₁."""
    rest2: Float[Tensor, " runs"]
    """1 − β₂."""
    epsilon: Float[Tensor, " runs"]
    """ε."""


def adamw_scalars(
    age: Int[Tensor, " runs"],
    learning_rate: Float[Tensor, " runs"],
    weight_decay: Float[Tensor, " runs"],
    beta1: Float[Tensor, " runs"],
    beta2: Float[Tensor, " runs"],
    epsilon: Float[Tensor, " runs"],
    dtype: torch.dtype,
) -> AdamWScalars:
    """The scalars of each run's step number `age`, computed in float64.

    Apart from `adamw_`, because a compiler that fuses them into it raises β to the power t once per parameter.
    """
    exact = (
        learning_rate / (1 - beta1**age),
        (1 - beta2**age).sqrt(),
        1 - learning_rate * weight_decay,
        beta1,
        beta2,
        1 - beta1,
        1 - beta2,
        epsilon,
    )
    return AdamWScalars(*(value.to(dtype) for value in exact))


def adamw_(
    weights: Float[Tensor, "runs *shape"],
    first: Float[Tensor, "runs *shape"],
    second: Float[Tensor, "runs *shape"],
    gradient: Float[Tensor, "runs *shape"],
    active: Bool[Tensor, " runs"],
    scalars: AdamWScalars,
) -> None:
    """One step of one parameter in place; idle runs keep every bit.

    w ← (1 − ηλ) w − η m̂ / (√v̂ + ε), with m = β₁m + (1 − β₁)g, v = β₂v + (1 − β₂)g² and m̂ = m/(1 − β₁ᵗ),
    v̂ = v/(1 − β₂ᵗ).
    """
    shape = (-1, *(1,) * (weights.ndim - 1))
    size, root, shrink, beta1, beta2, rest1, rest2, epsilon = (value.view(shape) for value in scalars)
    m = first * beta1 + gradient * rest1
    v = second * beta2 + gradient * gradient * rest2
    w = weights * shrink - size * m / (v.sqrt() / root + epsilon)
    keep = ~active.view(shape)
    weights.copy_(weights.where(keep, w))
    first.copy_(first.where(keep, m))
    second.copy_(second.where(keep, v))


def clipped(gradients: list[Tensor], clip_norm: Float[Tensor, " runs"]) -> list[Tensor]:
    """Each run's gradient, scaled down to its clip norm where it is longer."""
    squares = [gradient.flatten(1).square().sum(dim=1) for gradient in gradients]
    norm = torch.stack(squares).sum(dim=0).sqrt()
    scale = (clip_norm / (norm + 1e-6)).clamp(max=1).to(norm.dtype)
    return [gradient * scale.view(-1, *(1,) * (gradient.ndim - 1)) for gradient in gradients]
