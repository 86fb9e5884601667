"""The table over (token, position), and gradients summed back onto its rows and onto the embeddings."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from grokscope.kernels.pieces import accumulator, table_row

__all__ = ["embedding_gradient", "gather_rows", "order_inputs", "order_tokens", "row_gradient", "row_table"]

TOKENS = 32  # of a tile of the table
ORDERED, COMPARED = 16, 4096  # inputs whose places one program finds; at most so many
INPUTS, COLUMNS, WARPS = 8, 128, 1  # of a tile of gradients
SEPARATORS, SHARES = 128, 8  # all inputs have the separator's row: more of them at once, and its columns shared out


@triton.jit
def _row_table(embed, position, separators, table, V, p_run, D: tl.constexpr, DP: tl.constexpr, BV: tl.constexpr):
    """Embedding + position for a's tokens, b's tokens and the separator: [2V + 1, D]."""
    run = tl.program_id(1).to(tl.int64)
    r, d = tl.program_id(0) * BV + tl.arange(0, BV), tl.arange(0, DP)
    separator = tl.load(separators + run)
    which = tl.minimum(r // V, 2)
    token = tl.where(which == 2, separator, r - which * V)
    here = (r < 2 * V + 1)[:, None] & (d < D)[None, :]
    value = tl.load(embed + run * p_run + token[:, None] * D + d[None, :], mask=here, other=0.0)
    value += tl.load(position + run * p_run + which[:, None] * D + d[None, :], mask=here, other=0.0)
    tl.store(table + run * (2 * V + 1) * D + r[:, None] * D + d[None, :], value, mask=here)


@triton.jit
def _gather_rows(table, tokens, out, inputs, V, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr):
    """Each input's three rows of the table."""
    run, d = tl.program_id(1).to(tl.int64), tl.arange(0, DP)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    here = (m < 3 * inputs)[:, None] & (d < D)[None, :]
    at = table_row(tokens, run, m // inputs, m % inputs, m < 3 * inputs, inputs, V)
    value = tl.load(table + (run * (2 * V + 1) + at)[:, None] * D + d[None, :], mask=here, other=0.0)
    tl.store(out + (run * 3 * inputs + m)[:, None] * D + d[None, :], value, mask=here)


@triton.jit
def _order_tokens(tokens, order, ends, V, t_run, inputs: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr):
    """The inputs in the order of their tokens at a position (ties by number), and where each token's end."""
    run, position = tl.program_id(1).to(tl.int64), tl.program_id(2)
    i, j = tl.program_id(0) * BI + tl.arange(0, BI), tl.arange(0, BJ)
    base, place = tokens + run * t_run + position * inputs, run * tl.num_programs(2) + position
    key = tl.load(base + i, mask=i < inputs, other=0) * inputs + i
    before = tl.zeros((BI,), tl.int32)
    for start in range(0, inputs, BJ):
        other = tl.load(base + start + j, mask=start + j < inputs, other=0) * inputs + start + j
        before += tl.sum(((other[None, :] < key[:, None]) & (start + j < inputs)[None, :]).to(tl.int32), axis=1)
    tl.store(order + place * inputs + before, i, mask=i < inputs)
    if tl.program_id(0) * BI < V + 1:
        below = tl.zeros((BI,), tl.int32)
        for start in range(0, inputs, BJ):
            other = tl.load(base + start + j, mask=start + j < inputs, other=V + 1)
            below += tl.sum((other[None, :] < i[:, None]).to(tl.int32), axis=1)
        tl.store(ends + place * (V + 1) + i, below, mask=i < V + 1)


@triton.jit
def _row_gradient(
    source, order, ends, out, inputs, V, columns, positions, FIRST: tl.constexpr,
    BI: tl.constexpr, BS: tl.constexpr, BN: tl.constexpr, SHARES: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Σ of the gradients [positions, inputs, columns] of the inputs that gathered a row, in the order of the inputs.

    Positions before FIRST were not gathered: their rows get zero. All inputs have the separator's row, the last; it
    comes first, as the longest sum, in SHARES programs.
    """
    job, run = tl.program_id(1), tl.program_id(2).to(tl.int64)
    if job < SHARES:
        c, s = tl.program_id(0) * BN + job * (BN // SHARES) + tl.arange(0, BN // SHARES), tl.arange(0, BS)
        last = source + (run * positions + 2 - FIRST) * inputs * columns + c[None, :]
        all_rows, done = tl.zeros((BS, BN // SHARES), ACC), job * 0
        while done < inputs:  # Triton's interpreter has no `range` over arguments
            m = (done + s)[:, None]
            all_rows += tl.load(last + m * columns, mask=(m < inputs) & (c < columns)[None, :], other=0.0).to(ACC)
            done += BS
        tl.store(out + (run * (2 * V + 1) + 2 * V) * columns + c, tl.sum(all_rows, axis=0), mask=c < columns)
    else:
        row, n = job - SHARES, tl.program_id(0) * BN + tl.arange(0, BN)
        inside, position = (n < columns)[None, :], row // V
        base = source + (run * positions + position - FIRST) * inputs * columns
        to = out + (run * (2 * V + 1) + row) * columns + n
        place, token, i = run * 2 + position, row - position * V, tl.arange(0, BI)
        start = tl.load(ends + place * (V + 1) + token)
        end = tl.load(ends + place * (V + 1) + token + 1)
        if position < FIRST:
            end = start
        total = tl.zeros((BI, BN), ACC)
        while start < end:
            here = start + i < end
            at = tl.load(order + place * inputs + start + i, mask=here, other=0)[:, None]
            total += tl.load(base + at * columns + n[None, :], mask=here[:, None] & inside, other=0.0).to(ACC)
            start += BI
        tl.store(to, tl.sum(total, axis=0), mask=n < columns)


@triton.jit
def _embedding_gradient(
    dtable, separators, dembed, dposition, g_run, V: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, BV: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Of each token: its rows as a and as b, and the separator's; of each position: all of its rows."""
    run, tile, d = tl.program_id(1).to(tl.int64), tl.program_id(0), tl.arange(0, DP)
    inside = d < D
    base = dtable + run * (2 * V + 1) * D
    last = tl.load(base + 2 * V * D + d, mask=inside, other=0.0)
    if tile < tl.cdiv(V, BV):
        v = tile * BV + tl.arange(0, BV)
        here = (v < V)[:, None] & inside[None, :]
        total = tl.load(base + v[:, None] * D + d[None, :], mask=here, other=0.0)
        total += tl.load(base + (V + v)[:, None] * D + d[None, :], mask=here, other=0.0)
        separator = tl.load(separators + run)
        total += tl.where((v == separator)[:, None], last[None, :], 0.0)
        tl.store(dembed + run * g_run + v[:, None] * D + d[None, :], total, mask=here)
    else:
        for position in tl.static_range(2):
            sums = tl.zeros((BV, DP), ACC)
            for start in range(0, V, BV):
                v = start + tl.arange(0, BV)
                part = base + (position * V + v)[:, None] * D + d[None, :]
                sums += tl.load(part, mask=(v < V)[:, None] & inside[None, :], other=0.0)
            tl.store(dposition + run * g_run + position * D + d, tl.sum(sums, axis=0), mask=inside)
        tl.store(dposition + run * g_run + 2 * D + d, last, mask=inside)


def row_table(embed: Tensor, position: Tensor, separators: Tensor) -> Tensor:
    """Embedding + position for a's tokens, b's tokens and the separator: [runs, 2 vocabulary + 1, width]."""
    runs, V, D = embed.shape
    table = embed.new_empty(runs, 2 * V + 1, D)
    _row_table[(triton.cdiv(2 * V + 1, TOKENS), runs)](
        embed, position, separators, table, V, embed.stride(0), D=D, DP=triton.next_power_of_2(D), BV=TOKENS
    )  # fmt: skip
    return table


def gather_rows(table: Tensor, tokens: Tensor) -> Tensor:
    """Each input's three rows of the table, [runs, 3 inputs, width]."""
    runs, rows, D = table.shape
    inputs = tokens.shape[2]
    out = table.new_empty(runs, 3 * inputs, D)
    _gather_rows[(triton.cdiv(3 * inputs, TOKENS), runs)](
        table, tokens, out, inputs, (rows - 1) // 2, D=D, DP=triton.next_power_of_2(D), BM=TOKENS
    )  # fmt: skip
    return out


def order_inputs(tokens: Tensor, vocabulary: int) -> tuple[Tensor, Tensor]:
    """Inputs in the order of a's and of b's tokens [runs, 2, inputs], and where each token's begin and end there."""
    return order_tokens(tokens[:, :2], vocabulary)


def order_tokens(tokens: Tensor, vocabulary: int) -> tuple[Tensor, Tensor]:
    """Numbers of the last axis of [runs, positions, inputs] in the order of their tokens, and where each token's end.

    Token t has the inputs between the ends t and t + 1; those of one token keep their order.
    """
    runs, positions, inputs = tokens.shape
    if inputs > COMPARED:  # the kernel compares all with all
        values, sorted_inputs = tokens.sort(dim=2, stable=True)
        wanted = torch.arange(vocabulary + 1, dtype=tokens.dtype, device=tokens.device).expand(runs, positions, -1)
        return sorted_inputs.int(), torch.searchsorted(values, wanted.contiguous(), out_int32=True)
    order = tokens.new_empty(runs, positions, inputs)
    ends = tokens.new_empty(runs, positions, vocabulary + 1)
    _order_tokens[(triton.cdiv(max(inputs, vocabulary + 1), ORDERED), runs, positions)](
        tokens, order, ends, vocabulary, tokens.stride(0), inputs=inputs, BI=ORDERED, BJ=128
    )  # fmt: skip
    return order, ends


def row_gradient(gradient: Tensor, ordered: tuple[Tensor, Tensor], first: int = 0) -> Tensor:
    """Σ over the inputs that gathered each row of the table, of a gradient [runs, positions × inputs, columns].

    The gradient has the positions from `first` on.
    """
    (order, ends), (runs, _, columns) = ordered, gradient.shape
    vocabulary = ends.shape[2] - 1
    out = gradient.new_empty(runs, 2 * vocabulary + 1, columns)
    _row_gradient[(triton.cdiv(columns, COLUMNS), 2 * vocabulary + SHARES, runs)](
        gradient, order, ends, out, order.shape[2], vocabulary, columns, 3 - first, FIRST=first, BI=INPUTS,
        BS=SEPARATORS, BN=COLUMNS, SHARES=SHARES, ACC=accumulator(gradient.dtype), num_warps=WARPS,
    )  # fmt: skip
    return out


def embedding_gradient(dtable: Tensor, separators: Tensor, dembed: Tensor, dposition: Tensor) -> None:
    """Gradients of token and position embeddings, given that of the table."""
    runs, V, D = dembed.shape
    _embedding_gradient[(triton.cdiv(V, TOKENS) + 1, runs)](
        dtable, separators, dembed, dposition, dembed.stride(0), V=V, D=D, DP=triton.next_power_of_2(D),
        BV=TOKENS, ACC=accumulator(dtable.dtype),
    )  # fmt: skip
