"""The MLP branch, x + W₂ act(W₁ LN(x) + b₁) + b₂, over a stack: the hidden layer never leaves the chip."""

import triton
import triton.language as tl

from benchmarks.fused.blocks import activation, activation_slope, layer_norm, layer_norm_gradient, product

__all__ = ["mlp_input_gradient_kernel", "mlp_kernel", "mlp_weight_gradient_kernel"]


@triton.jit
def mlp_kernel(
    x, norm_w, norm_b, w_in, b_in, w_out, b_out, out,
    rows, x_run, p_run, out_run, in_k, in_n, out_k, out_n,
    D: tl.constexpr, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, RELU: tl.constexpr, MODE: tl.constexpr,
):  # fmt: skip
    """The branch, added to the residual stream."""
    run = tl.program_id(1).to(tl.int64)
    m, d, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    here = (m < rows)[:, None]
    place = m[:, None] * D + d[None, :]
    tile = tl.load(x + run * x_run + place, mask=here, other=0.0)
    scaled, _ = layer_norm(tile, D)
    normed = scaled * tl.load(norm_w + run * p_run + d)[None, :] + tl.load(norm_b + run * p_run + d)[None, :]
    total = tl.zeros((BM, D), tl.float32)
    for start in range(0, N, BN):
        first = tl.load(w_in + run * p_run + d[:, None] * in_k + (start + n)[None, :] * in_n)
        bias = tl.load(b_in + run * p_run + start + n)[None, :]
        hidden = activation(product(normed, first, tl.zeros((BM, BN), tl.float32), MODE) + bias, RELU)
        second = tl.load(w_out + run * p_run + (start + n)[:, None] * out_k + d[None, :] * out_n)
        total = product(hidden, second, total, MODE)
    total += tile + tl.load(b_out + run * p_run + d)[None, :]
    tl.store(out + run * out_run + place, total, mask=here)


@triton.jit
def mlp_input_gradient_kernel(
    x, norm_w, norm_b, w_in, b_in, w_out, w_back, dy, dx, dnorm,
    rows, x_run, p_run, dy_run, dnorm_run, in_k, in_n, out_k, out_n, back_k, back_n,
    D: tl.constexpr, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, RELU: tl.constexpr, MODE: tl.constexpr,
):  # fmt: skip
    """Set dx = dy + LN'ᵀ(W₁(act'(h) · W₂ dy)), with h computed again; dnorm gets LayerNorm's part of this tile."""
    run, tile_m = tl.program_id(1).to(tl.int64), tl.program_id(0)
    m, d, n = tile_m * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    here = (m < rows)[:, None]
    place = m[:, None] * D + d[None, :]
    scaled, inverse = layer_norm(tl.load(x + run * x_run + place, mask=here, other=0.0), D)
    weight = tl.load(norm_w + run * p_run + d)
    normed = scaled * weight[None, :] + tl.load(norm_b + run * p_run + d)[None, :]
    upstream = tl.load(dy + run * dy_run + place, mask=here, other=0.0)
    total = tl.zeros((BM, D), tl.float32)
    for start in range(0, N, BN):
        first = tl.load(w_in + run * p_run + d[:, None] * in_k + (start + n)[None, :] * in_n)
        bias = tl.load(b_in + run * p_run + start + n)[None, :]
        before = product(normed, first, tl.zeros((BM, BN), tl.float32), MODE) + bias
        second = tl.load(w_out + run * p_run + (start + n)[:, None] * out_k + d[None, :] * out_n)
        hidden = product(upstream, tl.trans(second), tl.zeros((BM, BN), tl.float32), MODE)
        back = tl.load(w_back + run * p_run + (start + n)[:, None] * back_k + d[None, :] * back_n)
        total = product(hidden * activation_slope(before, RELU), back, total, MODE)
    grad = upstream + layer_norm_gradient(scaled, inverse, total, weight, D)
    tl.store(dx + run * x_run + place, grad, mask=here)
    part = dnorm + run * dnorm_run + tile_m * 2 * D + d
    tl.store(part, tl.sum(tl.where(here, total * scaled, 0.0), axis=0))
    tl.store(part + D, tl.sum(tl.where(here, total, 0.0), axis=0))


@triton.jit
def mlp_weight_gradient_kernel(
    x, norm_w, norm_b, w_in, b_in, w_out, dy, dw_in, db_in, dw_out, db_out,
    rows, x_run, p_run, dy_run, g_run, in_k, in_n, out_k, out_n,
    D: tl.constexpr, N: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr, RELU: tl.constexpr, MODE: tl.constexpr,
):  # fmt: skip
    """dW₁ = LN(x)ᵀ dh, dW₂ = act(h)ᵀ dy and the biases' gradients, for a tile of hidden neurons."""
    run = tl.program_id(1).to(tl.int64)
    n, d, r = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, D), tl.arange(0, BR)
    weight, shift = tl.load(norm_w + run * p_run + d)[None, :], tl.load(norm_b + run * p_run + d)[None, :]
    first = tl.load(w_in + run * p_run + d[:, None] * in_k + n[None, :] * in_n)
    bias = tl.load(b_in + run * p_run + n)[None, :]
    second = tl.load(w_out + run * p_run + d[:, None] * out_n + n[None, :] * out_k)
    total_in, total_out = tl.zeros((D, BN), tl.float32), tl.zeros((D, BN), tl.float32)
    bias_in, bias_out = tl.zeros((BN,), tl.float32), tl.zeros((D,), tl.float32)
    for start in range(0, rows, BR):
        here = (start + r < rows)[:, None]
        place = (start + r)[:, None] * D + d[None, :]
        scaled, _ = layer_norm(tl.load(x + run * x_run + place, mask=here, other=0.0), D)
        normed = scaled * weight + shift
        upstream = tl.load(dy + run * dy_run + place, mask=here, other=0.0)
        before = product(normed, first, tl.zeros((BR, BN), tl.float32), MODE) + bias
        hidden = product(upstream, second, tl.zeros((BR, BN), tl.float32), MODE) * activation_slope(before, RELU)
        total_in = product(tl.trans(normed), hidden, total_in, MODE)
        total_out = product(tl.trans(upstream), activation(before, RELU), total_out, MODE)
        bias_in += tl.sum(hidden, axis=0)
        bias_out += tl.sum(upstream, axis=0)
    tl.store(dw_in + run * g_run + d[:, None] * N + n[None, :], total_in)
    tl.store(db_in + run * g_run + n, bias_in)
    tl.store(dw_out + run * g_run + n[None, :] * D + d[:, None], total_out)
    if tl.program_id(0) == 0:
        tl.store(db_out + run * g_run + d, bias_out)
