"""What all kernels are built from: products of one precision, LayerNorm of a tile and its gradient.

A program belongs to one run and one tile, tiles have fixed sizes, and every sum is taken in a fixed order. So what is
computed for a run depends neither on how many others there are nor on its slot.
"""

import triton
import triton.language as tl

__all__ = [
    "BF16",
    "TF32",
    "activation",
    "activation_slope",
    "layer_norm",
    "layer_norm_gradient",
    "product",
]

TF32, BF16 = tl.constexpr(1), tl.constexpr(2)  # 0: float32
LAYER_NORM_EPSILON = tl.constexpr(1e-5)


@triton.jit
def product(a, b, total, MODE: tl.constexpr):
    """Return total + a b, with operands rounded as the precision says and sums in float32."""
    if MODE == BF16:
        return tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16), total)
    if MODE == TF32:
        return tl.dot(a.to(tl.float32), b.to(tl.float32), total, input_precision="tf32")
    return tl.dot(a.to(tl.float32), b.to(tl.float32), total, input_precision="ieee")


@triton.jit
def layer_norm(x, D: tl.constexpr):
    """(x − mean) / √(variance + ε) of each row, and 1 / √(variance + ε)."""
    centred = x - (tl.sum(x, axis=1) / D)[:, None]
    inverse = 1 / tl.sqrt(tl.sum(centred * centred, axis=1) / D + LAYER_NORM_EPSILON)
    return centred * inverse[:, None], inverse


@triton.jit
def layer_norm_gradient(scaled, inverse, upstream, weight, D: tl.constexpr):
    """Gradient of the rows, given that of w · scaled + b."""
    own = upstream * weight[None, :]
    along = tl.sum(own * scaled, axis=1) / D
    mean = tl.sum(own, axis=1) / D
    return (own - mean[:, None] - scaled * along[:, None]) * inverse[:, None]


@triton.jit
def activation(x, RELU: tl.constexpr):
    """Exact GELU, x Φ(x), or ReLU."""
    if RELU:
        return tl.maximum(x, 0.0)
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))


@triton.jit
def activation_slope(x, RELU: tl.constexpr):
    """Φ(x) + x φ(x), or the step."""
    if RELU:
        return tl.where(x > 0, 1.0, 0.0)
    return 0.5 * (1 + tl.erf(x * 0.7071067811865476)) + x * tl.exp(-0.5 * x * x) * 0.3989422804014327
