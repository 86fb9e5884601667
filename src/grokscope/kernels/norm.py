"""The residual stream between two branches: add a branch's output and bias, and normalise for the next branch."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from grokscope.kernels.pieces import accumulator, layer_norm, layer_norm_gradient, table_row

__all__ = ["ROWS", "Source", "add_and_norm", "add_and_norm_gradient"]

ROWS, WARPS = 16, 2  # of a tile; with more warps a row is spread over several, and sums have to meet


@dataclass(frozen=True)
class Source:
    """Where the stream's rows are found: in order, or in the table over (token, position)."""

    stream: Tensor
    """[runs, rows, width]; of a table, its rows."""
    tokens: Tensor | None = None
    """[runs, 3, inputs] where the stream is a table."""
    first: int = 0
    """The first position that is wanted of a table."""

    @property
    def rows(self) -> int:
        """Rows of the stream."""
        return self.stream.shape[1] if self.tokens is None else (3 - self.first) * self.tokens.shape[2]


@triton.jit
def _add_and_norm(
    x, out, bias, w, b, tokens, total, normed, total_tail, normed_tail,
    rows, inputs, V, tail, x_run, bias_run, w_run, FIRST: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, ACC: tl.constexpr,
    TABLE: tl.constexpr, HAS_OUT: tl.constexpr, HAS_BIAS: tl.constexpr, NORM: tl.constexpr, TAIL: tl.constexpr,
    WHOLE: tl.constexpr,
):  # fmt: skip
    """Store x + out + bias and w · LN(…) + b; rows from `tail` on once more, for what reads these alone."""
    run, d = tl.program_id(1).to(tl.int64), tl.arange(0, DP)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    inside = (d < D)[None, :]
    here = (m < rows)[:, None] & inside
    at = m
    if TABLE:
        at = table_row(tokens, run, FIRST + m // inputs, m % inputs, m < rows, inputs, V)
    value = tl.load(x + run * x_run + at[:, None].to(tl.int64) * D + d[None, :], mask=here, other=0.0).to(ACC)
    place = run * rows * D + m[:, None] * D + d[None, :]
    if HAS_OUT:
        value += tl.load(out + place, mask=here, other=0.0).to(ACC)
    if HAS_BIAS:
        value += tl.load(bias + run * bias_run + d, mask=d < D, other=0.0).to(ACC)[None, :]
    if WHOLE:
        tl.store(total + place, value, mask=here)
    ready = value
    if NORM:
        scaled, _ = layer_norm(value, inside, D)
        weight = tl.load(w + run * w_run + d, mask=d < D, other=0.0).to(ACC)
        ready = scaled * weight[None, :] + tl.load(b + run * w_run + d, mask=d < D, other=0.0).to(ACC)[None, :]
    tl.store(normed + place, ready, mask=here)
    if TAIL:
        last = here & (m >= tail)[:, None]
        place = run * (rows - tail) * D + (m - tail)[:, None] * D + d[None, :]
        tl.store(total_tail + place, value, mask=last)
        tl.store(normed_tail + place, ready, mask=last)


@triton.jit
def _add_and_norm_gradient(
    total, w, dtotal, dnormed, dnormed_tail, dx, dx_again, parts,
    rows, first_total, tail, w_run, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, ACC: tl.constexpr,
    NORM: tl.constexpr, HAS_TOTAL: tl.constexpr, TAIL: tl.constexpr, AGAIN: tl.constexpr,
):  # fmt: skip
    """Gradient of every row of the sum; `parts` gets the tile's Σ for w, b and the branch's bias."""
    run, d = tl.program_id(1).to(tl.int64), tl.arange(0, DP)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    inside = (d < D)[None, :]
    here = (m < rows)[:, None] & inside
    place = run * rows * D + m[:, None] * D + d[None, :]
    grad = tl.load(dnormed + place, mask=here, other=0.0).to(ACC)
    if TAIL:
        last = here & (m >= tail)[:, None]
        own = run * (rows - tail) * D + (m - tail)[:, None] * D + d[None, :]
        grad += tl.load(dnormed_tail + own, mask=last, other=0.0).to(ACC)
    part = parts + (run * tl.num_programs(0) + tl.program_id(0)) * 3 * D + d
    if NORM:
        scaled, inverse = layer_norm(tl.load(total + place, mask=here, other=0.0).to(ACC), inside, D)
        tl.store(part, tl.sum(grad * scaled, axis=0), mask=d < D)
        tl.store(part + D, tl.sum(grad, axis=0), mask=d < D)
        weight = tl.load(w + run * w_run + d, mask=d < D, other=0.0).to(ACC)
        grad = layer_norm_gradient(scaled, inverse, grad * weight[None, :], D)
    if HAS_TOTAL:
        own = run * (rows - first_total) * D + (m - first_total)[:, None] * D + d[None, :]
        grad += tl.load(dtotal + own, mask=here & (m >= first_total)[:, None], other=0.0).to(ACC)
    tl.store(dx + place, grad, mask=here)
    if AGAIN:
        tl.store(dx_again + place, grad, mask=here)
    tl.store(part + 2 * D, tl.sum(tl.where(here, grad, 0.0), axis=0), mask=d < D)


def add_and_norm(
    source: Source,
    out: Tensor | None,
    bias: Tensor | None,
    norm: tuple[Tensor, Tensor] | None,
    compute: torch.dtype,
    tail: int = 0,
    is_whole: bool = True,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """The stream after a branch and its LayerNorm, in `compute`; with `tail` > 0 both again from that row on.

    Without a LayerNorm the second is a copy of the first. The first is left unwritten where it is not wanted whole.
    """
    x, rows = source.stream, source.rows
    runs, D = len(x), x.shape[2]
    total, normed = x.new_empty(runs, rows, D), x.new_empty(runs, rows, D, dtype=compute)
    tails = (x.new_empty(runs, rows - tail, D), normed.new_empty(runs, rows - tail, D)) if tail else (None, None)
    weight, shift = norm or (None, None)
    tokens = source.tokens
    _add_and_norm[(triton.cdiv(rows, ROWS), runs)](
        x, out, bias, weight, shift, tokens, total, normed, *tails,
        rows, 1 if tokens is None else tokens.shape[2], (x.shape[1] - 1) // 2, tail,
        x.stride(0), 0 if bias is None else bias.stride(0), 0 if weight is None else weight.stride(0),
        FIRST=source.first, D=D, DP=triton.next_power_of_2(D), BM=ROWS, ACC=accumulator(x.dtype),
        TABLE=tokens is not None, HAS_OUT=out is not None, HAS_BIAS=bias is not None, NORM=norm is not None,
        TAIL=tail > 0, WHOLE=is_whole, num_warps=WARPS,
    )  # fmt: skip
    return total, normed, *tails


def add_and_norm_gradient(
    total: Tensor,
    weight: Tensor | None,
    dtotal: Tensor | None,
    dnormed: Tensor,
    dnormed_tail: Tensor | None,
    compute: torch.dtype,
    parts: Tensor,
) -> tuple[Tensor, Tensor]:
    """Gradients of the stream and of the branch's output, which differ in precision only.

    `parts` [runs, tiles, 3 width] gets each tile's Σ for the LayerNorm's weight and shift and for the branch's bias.
    """
    runs, rows, D = total.shape
    dx = torch.empty_like(total)
    again = dx if compute == total.dtype else torch.empty_like(total, dtype=compute)
    tail = 0 if dnormed_tail is None else rows - dnormed_tail.shape[1]
    _add_and_norm_gradient[(triton.cdiv(rows, ROWS), runs)](
        total, weight, dtotal, dnormed, dnormed_tail, dx, again, parts,
        rows, 0 if dtotal is None else rows - dtotal.shape[1], tail, 0 if weight is None else weight.stride(0),
        D=D, DP=triton.next_power_of_2(D), BM=ROWS, ACC=accumulator(total.dtype), NORM=weight is not None,
        HAS_TOTAL=dtotal is not None, TAIL=dnormed_tail is not None, AGAIN=again is not dx, num_warps=WARPS,
    )  # fmt: skip
    return dx, again
