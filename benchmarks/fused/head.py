"""Final LayerNorm, unembedding, cross-entropy and the way back to the residual stream, over a stack."""

import triton
import triton.language as tl

from benchmarks.fused.blocks import layer_norm, layer_norm_gradient, product

__all__ = ["head_kernel"]


@triton.jit
def head_kernel(
    x, norm_w, norm_b, w, b, labels, counts, classes, counter, dlogits, dx, dnorm, loss,
    inputs, runs, C, x_run, p_run, dlogits_run, dnorm_run, loss_run, dx_run,
    D: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr, MODE: tl.constexpr,
):  # fmt: skip
    """Σ of the tile's losses, the gradient of the mean loss by logits and by x; rows past `counts` are padding."""
    run, tile_m = tl.program_id(1).to(tl.int64), tl.program_id(0)
    m, d, c = tile_m * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BC)
    here = m < inputs
    place = m[:, None] * D + d[None, :]
    scaled, inverse = layer_norm(tl.load(x + run * x_run + place, mask=here[:, None], other=0.0), D)
    weight = tl.load(norm_w + run * p_run + d)
    normed = scaled * weight[None, :] + tl.load(norm_b + run * p_run + d)[None, :]
    label = tl.load(labels + run * inputs + m, mask=here, other=0)
    own = tl.load(classes + run)
    top = tl.full((BM,), float("-inf"), tl.float32)
    total, right = tl.zeros((BM,), tl.float32), tl.zeros((BM,), tl.float32)
    for start in range(0, C, BC):
        k = start + c
        columns = tl.load(w + run * p_run + d[:, None] * C + k[None, :], mask=(k < C)[None, :], other=0.0)
        bias = tl.load(b + run * p_run + k, mask=k < C, other=0.0)[None, :]
        logits = product(normed, columns, tl.zeros((BM, BC), tl.float32), MODE) + bias
        right += tl.sum(tl.where(k[None, :] == label[:, None], logits, 0.0), axis=1)
        logits = tl.where((k < own)[None, :], logits, float("-inf"))
        higher = tl.maximum(top, tl.max(logits, axis=1))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(logits - higher[:, None]), axis=1)
        top = higher
    count = tl.load(counts + tl.load(counter) * runs + run)
    trained = m < count
    each = top + tl.log(total) - right
    tl.store(loss + run * loss_run + tile_m, tl.sum(tl.where(trained, each, 0.0), axis=0))
    share = tl.where(trained, 1.0 / count.to(tl.float32), 0.0)
    back = tl.zeros((BM, D), tl.float32)
    for start in range(0, C, BC):
        k = start + c
        columns = tl.load(w + run * p_run + d[:, None] * C + k[None, :], mask=(k < C)[None, :], other=0.0)
        bias = tl.load(b + run * p_run + k, mask=k < C, other=0.0)[None, :]
        logits = product(normed, columns, tl.zeros((BM, BC), tl.float32), MODE) + bias
        chance = tl.where((k < own)[None, :], tl.exp(logits - top[:, None]) / total[:, None], 0.0)
        grad = (chance - tl.where(k[None, :] == label[:, None], 1.0, 0.0)) * share[:, None]
        tl.store(dlogits + run * dlogits_run + m[:, None] * C + k[None, :], grad, mask=here[:, None] & (k < C)[None, :])
        back = product(grad, tl.trans(columns), back, MODE)
    grad = layer_norm_gradient(scaled, inverse, back, weight, D)
    tl.store(dx + run * dx_run + place, grad, mask=here[:, None])
    part = dnorm + run * dnorm_run + tile_m * 2 * D + d
    tl.store(part, tl.sum(tl.where(here[:, None], back * scaled, 0.0), axis=0))
    tl.store(part + D, tl.sum(tl.where(here[:, None], back, 0.0), axis=0))
