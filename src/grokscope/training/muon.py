"""Muon (Jordan et al. 2024) over a stack: momentum of matrices made orthogonal, every hyperparameter its run's own.

The arithmetic is that of `torch.optim.Muon`; matrices here are [in, out], the transposes of PyTorch's.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from grokscope.shapes import Bool, Float

__all__ = ["EXACT", "IN_BFLOAT16", "Arithmetic", "MuonScalars", "muon_", "orthogonalized", "rounded_to_bfloat16"]

A, B, C = 3.4445, -4.7750, 2.0315  # the quintic a x + b x³ + c x⁵, steepest at 0: small singular values grow soonest
STEPS = 5
TINY = 1e-7  # the least norm by which a matrix is divided

Multiply = Callable[[Tensor, Tensor], Tensor]
Norms = Callable[[Tensor], Tensor]
Matrices = Sequence[tuple[Tensor, Tensor, Tensor]]
"""Weights, momentum and gradient of each, [runs, in, out]."""


class MuonScalars(NamedTuple):
    """The numbers of one step for each run, in the weights' precision."""

    rate: Float[Tensor, " runs"]
    """Muon's η, warmed up."""
    shrink: Float[Tensor, " runs"]
    """1 − ηλ with AdamW's η."""
    momentum: Float[Tensor, " runs"]
    """μ."""
    rest: Float[Tensor, " runs"]
    """1 − μ."""


def frobenius(x: Float[Tensor, "stack numbers"]) -> Float[Tensor, " stack"]:
    """‖X‖ of each matrix, its numbers side by side."""
    return x.norm(dim=1)


def rounded_to_bfloat16(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Numbers of bfloat16, kept in their own precision, in which products of them are summed.

    >>> rounded_to_bfloat16(torch.tensor([1.001, 3.0]))
    tensor([1., 3.])
    """
    return x.bfloat16().to(x.dtype)


class Arithmetic(NamedTuple):
    """How matrices are made orthogonal."""

    multiply: Multiply = torch.bmm
    """A B of each matrix."""
    norms: Norms = frobenius
    """‖X‖ of each matrix, its numbers side by side."""
    rounded: Callable[[Tensor], Tensor] = torch.positive
    """What is done to each result: nothing, or `rounded_to_bfloat16`, at the places where `torch.optim.Muon` rounds."""


EXACT, IN_BFLOAT16 = Arithmetic(), Arithmetic(rounded=rounded_to_bfloat16)


def orthogonalized(
    x: Float[Tensor, "stack rows columns"], arithmetic: Arithmetic = EXACT
) -> Float[Tensor, "stack rows columns"]:
    """Each matrix with its singular values near 1, between about 0.68 and 1.14, and its singular vectors kept.

    X ← X / ‖X‖, then five Newton–Schulz steps X ← a X + (b XXᵀ + c (XXᵀ)²) X. It wants no more rows than columns. Of
    zero it is zero.

    >>> orthogonalized(torch.diag(torch.tensor([2.0, 1.0]))[None]).round(decimals=2)
    tensor([[[0.6900, 0.0000],
             [0.0000, 1.1100]]])
    """
    multiply, norms, rounded = arithmetic
    x = rounded(x)
    x = rounded(x / rounded(norms(x.flatten(1)).to(x.dtype)).clamp(min=TINY).view(-1, 1, 1))
    for _ in range(STEPS):
        gram = rounded(multiply(x, x.mT))
        x = rounded(A * x + multiply(rounded(B * gram + C * multiply(gram, gram)), x))
    return x


def muon_(
    matrices: Matrices,
    active: Bool[Tensor, " runs"],
    scalars: MuonScalars,
    arithmetic: Arithmetic = EXACT,
) -> None:
    """One step of all matrices in place; idle runs keep every bit.

    m ← μm + (1 − μ)g, then w ← (1 − ηλ) w − η_M √max(1, out/in) · NS((1 − μ)g + μm). Matrices of one shape, or of one
    shape turned round, are made orthogonal in one stack.
    """
    rate, shrink, momentum, rest = (value.view(-1, 1, 1) for value in scalars)
    keep = ~active.view(-1, 1, 1)
    given: dict[tuple[int, ...], list[tuple[int, Tensor]]] = {}
    for place, (_, m, gradient) in enumerate(matrices):
        average = m * momentum + gradient * rest
        m.copy_(m.where(keep, average))
        ahead = gradient * rest + average * momentum
        lying = ahead if _is_lying(ahead) else ahead.mT
        given.setdefault(tuple(lying.shape[1:]), []).append((place, lying))
    for parts in given.values():
        stack = torch.cat([lying for _, lying in parts])
        found = orthogonalized(stack, arithmetic)
        for (place, _), update in zip(parts, found.chunk(len(parts)), strict=True):
            weights = matrices[place][0]
            own = update if _is_lying(weights) else update.mT
            scale = max(1.0, weights.shape[2] / weights.shape[1]) ** 0.5
            weights.copy_(weights.where(keep, weights * shrink - own * (rate * scale)))


def _is_lying(matrix: Tensor) -> bool:
    """Whether it has no more rows than columns."""
    return matrix.shape[1] <= matrix.shape[2]
