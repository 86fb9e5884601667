"""LayerNorm followed by a linear map, over a stack: forward, gradient of the input, gradient of the weights."""

import triton
import triton.language as tl

from benchmarks.fused.blocks import layer_norm, layer_norm_gradient, product

__all__ = ["input_gradient_kernel", "linear_kernel", "weight_gradient_kernel"]


@triton.jit
def linear_kernel(
    x, norm_w, norm_b, w, b, out,
    rows, N, x_run, first_row, p_run, w_columns, out_run,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, MODE: tl.constexpr,
):  # fmt: skip
    """Set out = LN(x) W + b for the rows from `first_row` on; W's columns begin where its pointer does."""
    run = tl.program_id(1).to(tl.int64)
    tiles_n = tl.cdiv(N, BN)
    m, n = tl.program_id(0) // tiles_n * BM + tl.arange(0, BM), tl.program_id(0) % tiles_n * BN + tl.arange(0, BN)
    d = tl.arange(0, D)
    here = (m < rows)[:, None]
    tile = tl.load(x + run * x_run + (first_row + m)[:, None] * D + d[None, :], mask=here, other=0.0).to(tl.float32)
    scaled, _ = layer_norm(tile, D)
    normed = scaled * tl.load(norm_w + run * p_run + d)[None, :] + tl.load(norm_b + run * p_run + d)[None, :]
    inside = (n < N)[None, :]
    columns = tl.load(w + run * p_run + d[:, None] * w_columns + n[None, :], mask=inside, other=0.0)
    bias = tl.load(b + run * p_run + n, mask=n < N, other=0.0)
    value = product(normed, columns, tl.zeros((BM, BN), tl.float32), MODE) + bias[None, :]
    tl.store(out + run * out_run + m[:, None] * N + n[None, :], value, mask=here & inside)


@triton.jit
def weight_gradient_kernel(
    x, norm_w, norm_b, dy, dw, db,
    rows, N, x_run, first_row, p_run, dy_run, dy_columns, w_columns, g_run,
    D: tl.constexpr, NORM: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr, MODE: tl.constexpr,
):  # fmt: skip
    """Set dW = f(x)ᵀ dy and db = Σ dy over the rows, with f = LayerNorm or nothing."""
    run = tl.program_id(1).to(tl.int64)
    n, d, r = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, D), tl.arange(0, BR)
    inside = (n < N)[None, :]
    if NORM:
        weight, shift = tl.load(norm_w + run * p_run + d)[None, :], tl.load(norm_b + run * p_run + d)[None, :]
    total, bias = tl.zeros((D, BN), tl.float32), tl.zeros((BN,), tl.float32)
    for start in range(0, rows, BR):
        here = (start + r < rows)[:, None]
        tile = tl.load(x + run * x_run + (first_row + start + r)[:, None] * D + d[None, :], mask=here, other=0.0).to(
            tl.float32
        )
        if NORM:
            scaled, _ = layer_norm(tile, D)
            tile = scaled * weight + shift
        own = tl.load(
            dy + run * dy_run + (start + r)[:, None] * dy_columns + n[None, :], mask=here & inside, other=0.0
        ).to(tl.float32)
        total = product(tl.trans(tile), own, total, MODE)
        bias += tl.sum(own, axis=0)
    tl.store(dw + run * g_run + d[:, None] * w_columns + n[None, :], total, mask=inside)
    tl.store(db + run * g_run + n, bias, mask=n < N)


@triton.jit
def input_gradient_kernel(
    x, norm_w, w, dy, dq, dres, dx, dnorm,
    rows, N, Q, first_q, first_res, x_run, p_run, w_columns, dy_run, dq_run, dres_run, dnorm_run, dx_run,
    D: tl.constexpr, HAS_Q: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, MODE: tl.constexpr,
):  # fmt: skip
    """Set dx = dres + LN'ᵀ(dy Wᵀ); W's first Q columns belong to `dq`, whose rows begin at `first_q`.

    `dres`, the gradient that passes by, has rows from `first_res` on. dnorm gets the tile's part of LayerNorm's own
    gradients, [tiles, 2, D].
    """
    run, tile_m = tl.program_id(1).to(tl.int64), tl.program_id(0)
    m, n, d = tile_m * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    here = (m < rows)[:, None]
    total = tl.zeros((BM, D), tl.float32)
    for start in range(0, N, BN):
        inside = (start + n < N)[None, :]
        own = tl.load(dy + run * dy_run + m[:, None] * N + start + n[None, :], mask=here & inside, other=0.0)
        columns = tl.load(w + run * p_run + d[:, None] * w_columns + Q + start + n[None, :], mask=inside, other=0.0)
        total = product(own, tl.trans(columns), total, MODE)
    if HAS_Q:  # noqa: SIM102 (known when compiling; the other is not)
        if tile_m * BM + BM > first_q:
            for start in range(0, Q, BN):
                asked = (m >= first_q)[:, None] & here & (start + n < Q)[None, :]
                own = tl.load(
                    dq + run * dq_run + (m - first_q)[:, None] * Q + start + n[None, :], mask=asked, other=0.0
                )
                columns = tl.load(
                    w + run * p_run + d[:, None] * w_columns + start + n[None, :],
                    mask=(start + n < Q)[None, :],
                    other=0.0,
                )
                total = product(own, tl.trans(columns), total, MODE)
    place = m[:, None] * D + d[None, :]
    scaled, inverse = layer_norm(tl.load(x + run * x_run + place, mask=here, other=0.0).to(tl.float32), D)
    grad = layer_norm_gradient(scaled, inverse, total, tl.load(norm_w + run * p_run + d), D)
    passing = here & (m >= first_res)[:, None]
    grad += tl.load(dres + run * dres_run + place - first_res * D, mask=passing, other=0.0)
    tl.store(dx + run * dx_run + place, grad, mask=here)
    part = dnorm + run * dnorm_run + tile_m * 2 * D + d
    tl.store(part, tl.sum(tl.where(here, total * scaled, 0.0), axis=0))
    tl.store(part + D, tl.sum(total, axis=0))
