"""Rows that tokens choose, at any number of positions, and gradients summed back onto them in a fixed order.

A transformer looks up embeddings and adds its positions'; an MLP sums the rows of its first map that one-hot vectors
choose, Σ_l W[l, t_l]. Pair tables have kernels of their own in `rows`.
"""

import triton
import triton.language as tl
from torch import Tensor

from grokscope.kernels.pieces import accumulator

__all__ = ["look_up", "position_gradient", "sum_rows", "token_gradient"]

ROWS, COLUMNS, WARPS = 16, 128, 4  # of a tile
LEAST, MOST = 8, 64  # rows of one token that are added at once


@triton.jit
def _look_up(
    embed, position, tokens, out, rows, inputs, e_run, p_run, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr,
    PLACED: tl.constexpr,
):  # fmt: skip
    """Each token's embedding, and that of its position where rows are ordered by position."""
    run, d = tl.program_id(1).to(tl.int64), tl.arange(0, DP)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    here = (m < rows)[:, None] & (d < D)[None, :]
    token = tl.load(tokens + run * rows + m, mask=m < rows, other=0)
    value = tl.load(embed + run * e_run + token[:, None] * D + d[None, :], mask=here, other=0.0)
    if PLACED:
        value += tl.load(position + run * p_run + (m // inputs)[:, None] * D + d[None, :], mask=here, other=0.0)
    tl.store(out + (run * rows + m)[:, None] * D + d[None, :], value, mask=here)


@triton.jit
def _sum_rows(
    weight, tokens, out, inputs, V, N, w_run, L: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ACC: tl.constexpr
):  # fmt: skip
    """Σ over positions of the row that each input's token chooses there."""
    run, columns = tl.program_id(1).to(tl.int64), tl.cdiv(N, BN)
    n = tl.program_id(0) % columns * BN + tl.arange(0, BN)
    m = tl.program_id(0) // columns * BM + tl.arange(0, BM)
    here = (m < inputs)[:, None] & (n < N)[None, :]
    total = tl.zeros((BM, BN), ACC)
    for position in range(L):
        token = tl.load(tokens + (run * L + position) * inputs + m, mask=m < inputs, other=0)
        row = (position * V + token)[:, None].to(tl.int64)
        total += tl.load(weight + run * w_run + row * N + n[None, :], mask=here, other=0.0).to(ACC)
    tl.store(out + (run * inputs + m)[:, None] * N + n[None, :], total, mask=here)


@triton.jit
def _token_gradient(
    source, order, ends, out, rows, inputs, V, N, out_run, BI: tl.constexpr, BN: tl.constexpr, ACC: tl.constexpr
):  # fmt: skip
    """Σ of the rows of the source that chose one token at one position, in their order."""
    run, row = tl.program_id(2).to(tl.int64), tl.program_id(1)
    position, token = row // V, row % V
    place = run * (tl.num_programs(1) // V) + position
    n, i = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BI)
    start = tl.load(ends + place * (V + 1) + token)
    end = tl.load(ends + place * (V + 1) + token + 1)
    total = tl.zeros((BI, BN), ACC)
    while start < end:
        here = start + i < end
        at = tl.load(order + place * inputs + start + i, mask=here, other=0)[:, None]
        inside = here[:, None] & (n < N)[None, :]
        total += tl.load(source + (run * rows + at) * N + n[None, :], mask=inside, other=0.0).to(ACC)
        start += BI
    tl.store(out + run * out_run + row * N + n, tl.sum(total, axis=0), mask=n < N)


@triton.jit
def _position_gradient(
    source, out, inputs, N, out_run, BI: tl.constexpr, BN: tl.constexpr, ACC: tl.constexpr
):  # fmt: skip
    """Σ over the inputs of the rows at one position."""
    run, position = tl.program_id(2).to(tl.int64), tl.program_id(1)
    n, i = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BI)
    base = source + (run * tl.num_programs(1) + position) * inputs * N
    total, start = tl.zeros((BI, BN), ACC), position * 0
    while start < inputs:  # Triton's interpreter has no `range` over arguments
        inside = (start + i < inputs)[:, None] & (n < N)[None, :]
        total += tl.load(base + (start + i)[:, None] * N + n[None, :], mask=inside, other=0.0).to(ACC)
        start += BI
    tl.store(out + run * out_run + position * N + n, tl.sum(total, axis=0), mask=n < N)


def look_up(embed: Tensor, position: Tensor | None, tokens: Tensor) -> Tensor:
    """Embeddings [runs, rows, width] of tokens [runs, length, inputs] in their order, with those of their positions."""
    runs, _, D = embed.shape
    rows = tokens[0].numel()
    out = embed.new_empty(runs, rows, D)
    _look_up[(triton.cdiv(rows, ROWS), runs)](
        embed, position, tokens, out, rows, tokens.shape[-1], embed.stride(0),
        0 if position is None else position.stride(0), D=D, DP=triton.next_power_of_2(D), BM=ROWS,
        PLACED=position is not None, num_warps=WARPS,
    )  # fmt: skip
    return out


def sum_rows(weight: Tensor, tokens: Tensor) -> Tensor:
    """Σ_l W[l, t_l]: [runs, inputs, columns] of a map [runs, length, vocabulary, columns] by [runs, length, inputs]."""
    runs, L, V, N = weight.shape
    inputs = tokens.shape[2]
    out = weight.new_empty(runs, inputs, N)
    _sum_rows[(triton.cdiv(inputs, ROWS) * triton.cdiv(N, COLUMNS), runs)](
        weight, tokens, out, inputs, V, N, weight.stride(0), L=L, BM=ROWS, BN=COLUMNS, ACC=accumulator(weight.dtype),
        num_warps=WARPS,
    )  # fmt: skip
    return out


def token_gradient(gradient: Tensor, ordered: tuple[Tensor, Tensor], out: Tensor) -> None:
    """Σ of the rows [runs, rows, columns] that chose each token, into `out` [runs, …] whose runs are contiguous.

    Rows are numbered as `order_tokens` numbered them, for every position anew.
    """
    (order, ends), (runs, rows, N) = ordered, gradient.shape
    _, positions, inputs = order.shape
    V = ends.shape[2] - 1
    at_once = min(MOST, max(LEAST, triton.next_power_of_2(inputs // V + 1)))
    _token_gradient[(triton.cdiv(N, COLUMNS), positions * V, runs)](
        gradient, order, ends, out, rows, inputs, V, N, out.stride(0), BI=at_once, BN=COLUMNS,
        ACC=accumulator(out.dtype), num_warps=WARPS,
    )  # fmt: skip


def position_gradient(gradient: Tensor, out: Tensor) -> None:
    """Σ over inputs of a gradient [runs, length × inputs, width], into `out` [runs, length, width]."""
    runs, rows, N = gradient.shape
    length = out.shape[1]
    _position_gradient[(triton.cdiv(N, COLUMNS), length, runs)](
        gradient, out, rows // length, N, out.stride(0), BI=MOST, BN=COLUMNS, ACC=accumulator(out.dtype),
        num_warps=WARPS,
    )  # fmt: skip
