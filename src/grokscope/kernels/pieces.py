"""What kernels are built from: LayerNorm of a tile, activations, rows of the table, the precision of sums."""

import torch
import triton
import triton.language as tl

__all__ = [
    "ACTIVATIONS",
    "accumulator",
    "activation",
    "activation_slope",
    "layer_norm",
    "layer_norm_gradient",
    "table_row",
]

LAYER_NORM_EPSILON = tl.constexpr(1e-5)
ACTIVATIONS = {"gelu": 0, "relu": 1, "square": 2}  # as kernels know them


@triton.jit
def layer_norm(x, inside, D: tl.constexpr):
    """(x − mean) / √(variance + ε) of each row of D columns, 0 outside of them, and 1 / √(variance + ε)."""
    centred = tl.where(inside, x - (tl.sum(x, axis=1) / D)[:, None], 0.0)
    inverse = 1 / tl.sqrt(tl.sum(centred * centred, axis=1) / D + LAYER_NORM_EPSILON)
    return centred * inverse[:, None], inverse


@triton.jit
def layer_norm_gradient(scaled, inverse, own, D: tl.constexpr):
    """Gradient of the rows, given that of the scaled ones."""
    along = tl.sum(own * scaled, axis=1) / D
    mean = tl.sum(own, axis=1) / D
    return (own - mean[:, None] - scaled * along[:, None]) * inverse[:, None]


@triton.jit
def activation(x, KIND: tl.constexpr):
    """Exact GELU, x Φ(x), or ReLU, or x²."""
    if KIND == 1:
        return tl.maximum(x, 0.0)
    if KIND == 2:
        return x * x
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))


@triton.jit
def activation_slope(x, KIND: tl.constexpr):
    """Φ(x) + x φ(x), or the step, or 2x."""
    if KIND == 1:
        return tl.where(x > 0, 1.0, 0.0)
    if KIND == 2:
        return 2 * x
    return 0.5 * (1 + tl.erf(x * 0.7071067811865476)) + x * tl.exp(-0.5 * x * x) * 0.3989422804014327


@triton.jit
def table_row(tokens, run, position, i, here, inputs, V):
    """The row of the table over (token, position) that inputs i have at their positions: a's, b's, the separator's."""
    token = tl.load(tokens + (run * 3 + position) * inputs + i, mask=here, other=0)
    return tl.where(position == 2, 2 * V, token + position * V)


def accumulator(dtype: torch.dtype) -> tl.dtype:
    """What sums are taken in: float32, or float64 where weights are."""
    return tl.float64 if dtype == torch.float64 else tl.float32
