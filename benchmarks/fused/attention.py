"""Attention over the three positions with its output projection, and its gradient, over a stack.

Keys and values of a position come from the rows of a table over (token, position) in block 0, and from the position's
own rows elsewhere. Sums over three keys are written out; a head is a reshaped tile.
"""

import triton
import triton.language as tl

from benchmarks.fused.blocks import product

__all__ = ["attention_gradient_kernel", "attention_kernel"]


@triton.jit
def _row(tokens, run, i, here, position, inputs, V, ROWS: tl.constexpr):
    """Where the keys and values of these inputs stand at a position."""
    if ROWS:
        if position == 2:
            return 2 * V + 0 * i
        token = tl.load(tokens + (run * 3 + position) * inputs + i, mask=here, other=0)
        return token + position * V
    return position * inputs + i


@triton.jit
def _tile(base, row, columns, here, T: tl.constexpr, H: tl.constexpr, D: tl.constexpr):
    """A tile of rows as [T, heads, head width], in float32."""
    d = tl.arange(0, D)
    tile = tl.load(base + row[:, None].to(tl.int64) * columns + d[None, :], mask=here[:, None], other=0.0)
    return tl.reshape(tile.to(tl.float32), (T, H, D // H))


@triton.jit
def _pattern(q, k0, k1, k2, position, CAUSAL: tl.constexpr, SCALE: tl.constexpr):
    """softmax(q·k/√e) over the three keys, each [T, heads]."""
    s0, s1, s2 = tl.sum(q * k0, axis=2) * SCALE, tl.sum(q * k1, axis=2) * SCALE, tl.sum(q * k2, axis=2) * SCALE
    if CAUSAL:
        s1 = tl.where(position >= 1, s1, float("-inf"))
        s2 = tl.where(position >= 2, s2, float("-inf"))
    top = tl.maximum(tl.maximum(s0, s1), s2)
    e0, e1, e2 = tl.exp(s0 - top), tl.exp(s1 - top), tl.exp(s2 - top)
    total = e0 + e1 + e2
    return e0 / total, e1 / total, e2 / total


@triton.jit
def attention_kernel(
    q, k, v, x, tokens, w, b, z_out, out,
    inputs, V, q_run, q_columns, kv_run, kv_columns, x_run, p_run, z_run,
    FIRST: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, H: tl.constexpr, T: tl.constexpr,
    CAUSAL: tl.constexpr, SCALE: tl.constexpr, MODE: tl.constexpr,
):  # fmt: skip
    """X + (attention) W_O + b_O for the query positions from FIRST on; z, the mixed values, is kept."""
    run = tl.program_id(1).to(tl.int64)
    position = FIRST + tl.program_id(0) % (3 - FIRST)
    i, d = tl.program_id(0) // (3 - FIRST) * T + tl.arange(0, T), tl.arange(0, D)
    here = i < inputs
    q, k, v = q + run * q_run, k + run * kv_run, v + run * kv_run
    at = _row(tokens, run, i, here, position, inputs, V, ROWS)
    own = at if ROWS else (position - FIRST) * inputs + i
    r0, r1, r2 = (
        _row(tokens, run, i, here, 0, inputs, V, ROWS),
        _row(tokens, run, i, here, 1, inputs, V, ROWS),
        _row(tokens, run, i, here, 2, inputs, V, ROWS),
    )
    p0, p1, p2 = _pattern(
        _tile(q, own, q_columns, here, T, H, D),
        _tile(k, r0, kv_columns, here, T, H, D),
        _tile(k, r1, kv_columns, here, T, H, D),
        _tile(k, r2, kv_columns, here, T, H, D),
        position, CAUSAL, SCALE,
    )  # fmt: skip
    mixed = p0[:, :, None] * _tile(v, r0, kv_columns, here, T, H, D)
    mixed += p1[:, :, None] * _tile(v, r1, kv_columns, here, T, H, D)
    mixed += p2[:, :, None] * _tile(v, r2, kv_columns, here, T, H, D)
    z = tl.reshape(mixed, (T, D))
    place = ((position - FIRST) * inputs + i)[:, None] * D + d[None, :]
    tl.store(z_out + run * z_run + place, z, mask=here[:, None])
    weight = tl.load(w + run * p_run + d[:, None] * D + d[None, :])
    value = product(z, weight, tl.zeros((T, D), tl.float32), MODE) + tl.load(b + run * p_run + d)[None, :]
    value += tl.load(x + run * x_run + at[:, None] * D + d[None, :], mask=here[:, None], other=0.0)
    tl.store(out + run * z_run + place, value, mask=here[:, None])


@triton.jit
def attention_gradient_kernel(
    q, k, v, dout, tokens, w, dq, dkv,
    inputs, V, q_run, q_columns, kv_run, kv_columns, p_run, z_run, dq_run, dq_columns, dkv_run, dkv_columns,
    FIRST: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, H: tl.constexpr, T: tl.constexpr,
    CAUSAL: tl.constexpr, SCALE: tl.constexpr, MODE: tl.constexpr,
):  # fmt: skip
    """Gradients of q, k and v, each [positions, inputs, D], for a tile of inputs; k's before v's in `dkv`."""
    run = tl.program_id(1).to(tl.int64)
    i, d = tl.program_id(0) * T + tl.arange(0, T), tl.arange(0, D)
    here = i < inputs
    q, k, v = q + run * q_run, k + run * kv_run, v + run * kv_run
    r0, r1, r2 = (
        _row(tokens, run, i, here, 0, inputs, V, ROWS),
        _row(tokens, run, i, here, 1, inputs, V, ROWS),
        _row(tokens, run, i, here, 2, inputs, V, ROWS),
    )
    k0, k1, k2 = (
        _tile(k, r0, kv_columns, here, T, H, D),
        _tile(k, r1, kv_columns, here, T, H, D),
        _tile(k, r2, kv_columns, here, T, H, D),
    )
    v0, v1, v2 = (
        _tile(v, r0, kv_columns, here, T, H, D),
        _tile(v, r1, kv_columns, here, T, H, D),
        _tile(v, r2, kv_columns, here, T, H, D),
    )
    weight = tl.trans(tl.load(w + run * p_run + d[:, None] * D + d[None, :]))
    dk0, dk1, dk2 = tl.zeros_like(k0), tl.zeros_like(k0), tl.zeros_like(k0)
    dv0, dv1, dv2 = tl.zeros_like(k0), tl.zeros_like(k0), tl.zeros_like(k0)
    for position in tl.static_range(FIRST, 3):
        at = _row(tokens, run, i, here, position, inputs, V, ROWS)
        own = at if ROWS else (position - FIRST) * inputs + i
        ask = _tile(q, own, q_columns, here, T, H, D)
        p0, p1, p2 = _pattern(ask, k0, k1, k2, position, CAUSAL, SCALE)
        place = ((position - FIRST) * inputs + i)[:, None]
        upstream = tl.load(dout + run * z_run + place * D + d[None, :], mask=here[:, None], other=0.0)
        dz = tl.reshape(product(upstream, weight, tl.zeros((T, D), tl.float32), MODE), (T, H, D // H))
        g0, g1, g2 = tl.sum(dz * v0, axis=2), tl.sum(dz * v1, axis=2), tl.sum(dz * v2, axis=2)
        mean = p0 * g0 + p1 * g1 + p2 * g2
        s0, s1, s2 = (
            (p0 * (g0 - mean) * SCALE)[:, :, None],
            (p1 * (g1 - mean) * SCALE)[:, :, None],
            (p2 * (g2 - mean) * SCALE)[:, :, None],
        )
        asked = tl.reshape(s0 * k0 + s1 * k1 + s2 * k2, (T, D))
        tl.store(dq + run * dq_run + place * dq_columns + d[None, :], asked, mask=here[:, None])
        dk0 += s0 * ask
        dk1 += s1 * ask
        dk2 += s2 * ask
        dv0 += p0[:, :, None] * dz
        dv1 += p1[:, :, None] * dz
        dv2 += p2[:, :, None] * dz
    base = dkv + run * dkv_run + i[:, None] * dkv_columns + d[None, :]
    step = inputs * dkv_columns
    tl.store(base, tl.reshape(dk0, (T, D)), mask=here[:, None])
    tl.store(base + step, tl.reshape(dk1, (T, D)), mask=here[:, None])
    tl.store(base + 2 * step, tl.reshape(dk2, (T, D)), mask=here[:, None])
    tl.store(base + D, tl.reshape(dv0, (T, D)), mask=here[:, None])
    tl.store(base + D + step, tl.reshape(dv1, (T, D)), mask=here[:, None])
    tl.store(base + D + 2 * step, tl.reshape(dv2, (T, D)), mask=here[:, None])
