"""Attention over the three positions, and its gradient.

Keys and values of a position come from the rows of the table over (token, position) in block 0, and from the
position's own rows elsewhere. Sums over three keys are written out; a head is an axis of a tile.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from grokscope.kernels.pieces import accumulator, table_row

__all__ = ["INPUTS", "Attention", "attend", "attend_gradient"]

INPUTS, WARPS = 4, 2  # of a tile


@triton.jit
def _row(tokens, run, i, here, position, inputs, V, TABLE: tl.constexpr):
    """Where the keys and values of these inputs stand at a position."""
    if TABLE:
        return table_row(tokens, run, position, i, here, inputs, V)
    return position * inputs + i


@triton.jit
def _tile(base, bias, row, columns, here, column, inside, ACC: tl.constexpr, BIASED: tl.constexpr):
    """A tile of rows [inputs, heads, head width], its bias added."""
    mask = here[:, None, None] & inside[None]
    tile = tl.load(base + row[:, None, None].to(tl.int64) * columns + column[None], mask=mask, other=0.0).to(ACC)
    if BIASED:
        tile += tl.load(bias + column, mask=inside, other=0.0).to(ACC)[None]
    return tile


@triton.jit
def _pattern(q, k0, k1, k2, position, SCALE: tl.constexpr, CAUSAL: tl.constexpr):
    """softmax(q·k/√e) over the three keys, each [inputs, heads]."""
    s0, s1, s2 = tl.sum(q * k0, axis=2) * SCALE, tl.sum(q * k1, axis=2) * SCALE, tl.sum(q * k2, axis=2) * SCALE
    if CAUSAL:
        s1 = tl.where(position >= 1, s1, float("-inf"))
        s2 = tl.where(position >= 2, s2, float("-inf"))
    top = tl.maximum(tl.maximum(s0, s1), s2)
    e0, e1, e2 = tl.exp(s0 - top), tl.exp(s1 - top), tl.exp(s2 - top)
    total = e0 + e1 + e2
    return e0 / total, e1 / total, e2 / total


@triton.jit
def _attend(
    q, k, v, bias, tokens, z, inputs, V, q_run, q_columns, kv_run, kv_columns, bias_run,
    FIRST: tl.constexpr, TABLE: tl.constexpr, APART: tl.constexpr, CAUSAL: tl.constexpr, BIASED: tl.constexpr,
    SCALE: tl.constexpr, D: tl.constexpr, H: tl.constexpr, HP: tl.constexpr, EP: tl.constexpr, T: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    """Mixed values of the query positions from FIRST on."""
    run, i = tl.program_id(1).to(tl.int64), tl.program_id(0) * T + tl.arange(0, T)
    here = i < inputs
    h, e = tl.arange(0, HP)[:, None], tl.arange(0, EP)[None, :]
    column, inside = h * (D // H) + e, (h < H) & (e < D // H)
    q, k, v, bias = q + run * q_run, k + run * kv_run, v + run * kv_run, bias + run * bias_run
    r0 = _row(tokens, run, i, here, 0, inputs, V, TABLE)
    r1 = _row(tokens, run, i, here, 1, inputs, V, TABLE)
    r2 = _row(tokens, run, i, here, 2, inputs, V, TABLE)
    k0 = _tile(k, bias + D, r0, kv_columns, here, column, inside, ACC, BIASED)
    k1 = _tile(k, bias + D, r1, kv_columns, here, column, inside, ACC, BIASED)
    k2 = _tile(k, bias + D, r2, kv_columns, here, column, inside, ACC, BIASED)
    v0 = _tile(v, bias + 2 * D, r0, kv_columns, here, column, inside, ACC, BIASED)
    v1 = _tile(v, bias + 2 * D, r1, kv_columns, here, column, inside, ACC, BIASED)
    v2 = _tile(v, bias + 2 * D, r2, kv_columns, here, column, inside, ACC, BIASED)
    for position in tl.static_range(FIRST, 3):
        own = (position - FIRST) * inputs + i if APART else _row(tokens, run, i, here, position, inputs, V, TABLE)
        ask = _tile(q, bias, own, q_columns, here, column, inside, ACC, BIASED)
        p0, p1, p2 = _pattern(ask, k0, k1, k2, position, SCALE, CAUSAL)
        mixed = p0[:, :, None] * v0 + p1[:, :, None] * v1 + p2[:, :, None] * v2
        place = (run * (3 - FIRST) + position - FIRST) * inputs + i
        tl.store(z + place[:, None, None] * D + column[None], mixed, mask=here[:, None, None] & inside[None])


@triton.jit
def _attend_gradient(
    q, k, v, bias, tokens, dz, dq, dkv, parts,
    inputs, V, q_run, q_columns, kv_run, kv_columns, bias_run, dq_run, dq_columns, dkv_run, dkv_columns,
    FIRST: tl.constexpr, TABLE: tl.constexpr, APART: tl.constexpr, CAUSAL: tl.constexpr, BIASED: tl.constexpr,
    SCALE: tl.constexpr, D: tl.constexpr, H: tl.constexpr, HP: tl.constexpr, EP: tl.constexpr, T: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    """Gradients of q, k and v for every position of a tile of inputs, and the tile's Σ of each for the bias."""
    run, i = tl.program_id(1).to(tl.int64), tl.program_id(0) * T + tl.arange(0, T)
    here = i < inputs
    h, e = tl.arange(0, HP)[:, None], tl.arange(0, EP)[None, :]
    column, inside = h * (D // H) + e, (h < H) & (e < D // H)
    mask = here[:, None, None] & inside[None]
    q, k, v, bias = q + run * q_run, k + run * kv_run, v + run * kv_run, bias + run * bias_run
    r0 = _row(tokens, run, i, here, 0, inputs, V, TABLE)
    r1 = _row(tokens, run, i, here, 1, inputs, V, TABLE)
    r2 = _row(tokens, run, i, here, 2, inputs, V, TABLE)
    k0 = _tile(k, bias + D, r0, kv_columns, here, column, inside, ACC, BIASED)
    k1 = _tile(k, bias + D, r1, kv_columns, here, column, inside, ACC, BIASED)
    k2 = _tile(k, bias + D, r2, kv_columns, here, column, inside, ACC, BIASED)
    v0 = _tile(v, bias + 2 * D, r0, kv_columns, here, column, inside, ACC, BIASED)
    v1 = _tile(v, bias + 2 * D, r1, kv_columns, here, column, inside, ACC, BIASED)
    v2 = _tile(v, bias + 2 * D, r2, kv_columns, here, column, inside, ACC, BIASED)
    dk0, dk1, dk2 = tl.zeros_like(k0), tl.zeros_like(k0), tl.zeros_like(k0)
    dv0, dv1, dv2, dask = tl.zeros_like(k0), tl.zeros_like(k0), tl.zeros_like(k0), tl.zeros_like(k0)
    for position in tl.static_range(FIRST, 3):
        own = (position - FIRST) * inputs + i if APART else _row(tokens, run, i, here, position, inputs, V, TABLE)
        ask = _tile(q, bias, own, q_columns, here, column, inside, ACC, BIASED)
        p0, p1, p2 = _pattern(ask, k0, k1, k2, position, SCALE, CAUSAL)
        place = (position - FIRST) * inputs + i
        up = tl.load(
            dz + (run * (3 - FIRST) * inputs + place)[:, None, None] * D + column[None], mask=mask, other=0.0
        ).to(ACC)
        g0, g1, g2 = tl.sum(up * v0, axis=2), tl.sum(up * v1, axis=2), tl.sum(up * v2, axis=2)
        mean = p0 * g0 + p1 * g1 + p2 * g2
        s0 = (p0 * (g0 - mean) * SCALE)[:, :, None]
        s1 = (p1 * (g1 - mean) * SCALE)[:, :, None]
        s2 = (p2 * (g2 - mean) * SCALE)[:, :, None]
        grad = s0 * k0 + s1 * k1 + s2 * k2
        tl.store(dq + run * dq_run + place[:, None, None] * dq_columns + column[None], grad, mask=mask)
        dask += grad
        dk0 += s0 * ask
        dk1 += s1 * ask
        dk2 += s2 * ask
        dv0 += p0[:, :, None] * up
        dv1 += p1[:, :, None] * up
        dv2 += p2[:, :, None] * up
    to = dkv + run * dkv_run + i[:, None, None] * dkv_columns + column[None]
    step = inputs * dkv_columns
    tl.store(to, dk0, mask=mask)
    tl.store(to + step, dk1, mask=mask)
    tl.store(to + 2 * step, dk2, mask=mask)
    tl.store(to + D, dv0, mask=mask)
    tl.store(to + step + D, dv1, mask=mask)
    tl.store(to + 2 * step + D, dv2, mask=mask)
    if BIASED:
        part = parts + (run * tl.num_programs(0) + tl.program_id(0)) * 3 * D + column
        tl.store(part, tl.sum(tl.where(mask, dask, 0.0), axis=0), mask=inside)
        tl.store(part + D, tl.sum(tl.where(mask, dk0 + dk1 + dk2, 0.0), axis=0), mask=inside)
        tl.store(part + 2 * D, tl.sum(tl.where(mask, dv0 + dv1 + dv2, 0.0), axis=0), mask=inside)


@dataclass(frozen=True)
class Attention:
    """One block's queries, keys and values, and how they meet."""

    q: Tensor | None
    """[runs, inputs, width] where only the read position asks; else the queries stand in `kv`, before the keys."""
    kv: Tensor
    """[runs, rows, …]: queries, keys and values, or keys and values; rows of the table, or positions × inputs."""
    bias: Tensor | None
    """Of queries, keys and values, [runs, 3 width]."""
    tokens: Tensor | None
    """[runs, 3, inputs] where the rows are a table's."""
    inputs: int
    """Pairs."""
    first: int
    """The first position that asks."""
    heads: int
    """Attention heads."""
    causal: bool
    """Whether a position sees only itself and those before it."""

    @property
    def width(self) -> int:
        """Of the stream."""
        return self.kv.shape[2] // (3 if self.q is None else 2)

    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values as views."""
        D, kv = self.width, self.kv
        return (kv, kv[..., D:], kv[..., 2 * D :]) if self.q is None else (self.q, kv, kv[..., D:])

    def strides(self) -> tuple[int, ...]:
        """Run and row of the queries, then of keys and values, then of the bias."""
        q, k, _ = self.parts()
        return (q.stride(0), q.stride(1), k.stride(0), k.stride(1), 0 if self.bias is None else self.bias.stride(0))

    def sizes(self, work: Tensor) -> dict[str, Any]:
        """Compile-time sizes and choices."""
        D, H = self.width, self.heads
        return {
            "FIRST": self.first,
            "TABLE": self.tokens is not None,
            "APART": self.q is not None,
            "CAUSAL": self.causal,
            "BIASED": self.bias is not None,
            "SCALE": 1 / sqrt(D // H),
            "D": D,
            "H": H,
            "HP": triton.next_power_of_2(H),
            "EP": triton.next_power_of_2(D // H),
            "T": INPUTS,
            "ACC": accumulator(work.dtype),
            "num_warps": WARPS,
        }


def attend(asked: Attention, work: Tensor) -> Tensor:
    """softmax(q·k/√e) v, heads joined: [runs, query positions × inputs, width]; `work` has the precision of sums."""
    q, k, v = asked.parts()
    z = q.new_empty(len(q), (3 - asked.first) * asked.inputs, asked.width)
    rows = (asked.kv.shape[1] - 1) // 2
    _attend[(triton.cdiv(asked.inputs, INPUTS), len(q))](
        q, k, v, q if asked.bias is None else asked.bias, asked.tokens, z, asked.inputs, rows, *asked.strides(),
        **asked.sizes(work),
    )  # fmt: skip
    return z


def attend_gradient(asked: Attention, dz: Tensor, parts: Tensor) -> tuple[Tensor | None, Tensor]:
    """Gradients of queries that stand apart, and of the rest for each input, not yet summed over the table's rows.

    `parts` [runs, tiles, 3 width] gets each tile's Σ for the bias.
    """
    q, k, v = asked.parts()
    D, positions = asked.width, 3 * asked.inputs
    if asked.q is None:
        # Positions that do not ask keep a gradient of zero.
        new = q.new_empty if asked.first == 0 else q.new_zeros
        dq, joint = None, new(len(q), positions, 3 * D)
        to_q, to_kv = joint[:, asked.first * asked.inputs :], joint[..., D:]
    else:
        dq, joint = q.new_empty(len(q), asked.inputs, D), q.new_empty(len(q), positions, 2 * D)
        to_q, to_kv = dq, joint
    _attend_gradient[(triton.cdiv(asked.inputs, INPUTS), len(q))](
        q, k, v, q if asked.bias is None else asked.bias, asked.tokens, dz, to_q, to_kv, parts,
        asked.inputs, (asked.kv.shape[1] - 1) // 2, *asked.strides(), to_q.stride(0), to_q.stride(1),
        to_kv.stride(0), to_kv.stride(1), **asked.sizes(parts),
    )  # fmt: skip
    return dq, joint
