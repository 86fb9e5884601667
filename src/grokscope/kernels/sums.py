"""Sums in a fixed order: of tiles' parts, of all numbers of a run, of a neuron over the pairs with each answer."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from grokscope.kernels.pieces import ACTIVATIONS, accumulator, activation

__all__ = ["answer_sums", "dots", "finish_parts"]

NUMBERS = 4096  # of a run that one program adds up
TILES = 64  # that are added at once
NEURONS = 128


@triton.jit
def _finish_parts(
    parts, plan, out, out_run, ENTRY: tl.constexpr, BT: tl.constexpr, BN: tl.constexpr, ACC: tl.constexpr
):  # fmt: skip
    """Σ over the tiles of one entry of the plan."""
    run, row, n = tl.program_id(2).to(tl.int64), plan + tl.program_id(1) * ENTRY, tl.arange(0, BN)
    first, parts_run, stride = tl.load(row), tl.load(row + 1), tl.load(row + 2)
    tiles, columns, to = tl.load(row + 3), tl.load(row + 4), tl.load(row + 5)
    n += tl.program_id(0) * BN
    if tl.program_id(0) * BN < columns:
        total, t = tl.zeros((BT, BN), ACC), tl.arange(0, BT)
        start = tiles * 0
        while start < tiles:  # Triton's interpreter has no `range` over what was loaded
            here = (start + t < tiles)[:, None] & (n < columns)[None, :]
            place = run * parts_run + first + (start + t)[:, None] * stride + n[None, :]
            total += tl.load(parts + place, mask=here, other=0.0)
            start += BT
        tl.store(out + run * out_run + to + n, tl.sum(total, axis=0), mask=n < columns)


@triton.jit(do_not_specialize=["a_run", "b_run"])  # else one run and a stack would add up in different orders
def _dots(a, b, parts, numbers, a_run, b_run, BLOCK: tl.constexpr):
    """Σ a·b over a block of a run's numbers."""
    run, i = tl.program_id(1).to(tl.int64), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(a + run * a_run + i, mask=i < numbers, other=0.0).to(tl.float64)
    y = tl.load(b + run * b_run + i, mask=i < numbers, other=0.0).to(tl.float64)
    tl.store(parts + run * tl.num_programs(0) + tl.program_id(0), tl.sum(x * y, axis=0))


@triton.jit
def _run_totals(parts, out, tiles: tl.constexpr, BLOCK: tl.constexpr):
    """Σ over a run's parts."""
    run, i = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float64)
    for start in range(0, tiles, BLOCK):
        total += tl.load(parts + run * tiles + start + i, mask=start + i < tiles, other=0.0)
    tl.store(out + run, tl.sum(total, axis=0))


@triton.jit
def _answer_sums(
    before, bias, origin, ends, sums, squares, first, rows, answers, N, bias_run, ends_run, BM: tl.constexpr,
    BN: tl.constexpr, KIND: tl.constexpr, BIASED: tl.constexpr, ACTIVE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Add Σ(x − origin) and Σ(x − origin)² over the pairs with one answer to what earlier chunks found."""
    run, columns = tl.program_id(1).to(tl.int64), tl.cdiv(N, BN)
    answer = tl.program_id(0) // columns
    n, m = tl.program_id(0) % columns * BN + tl.arange(0, BN), tl.arange(0, BM)
    start = tl.maximum(tl.load(ends + run * ends_run + answer) - first, 0)
    end = tl.minimum(tl.load(ends + run * ends_run + answer + 1) - first, rows)
    if end > start:
        shift = tl.zeros((BN,), ACC)
        if BIASED:
            shift = tl.load(bias + run * bias_run + n, mask=n < N, other=0.0).to(ACC)
        around = tl.load(origin + run * N + n, mask=n < N, other=0.0).to(ACC)
        total, square = tl.zeros((BM, BN), ACC), tl.zeros((BM, BN), ACC)
        while start < end:
            here = (start + m < end)[:, None] & (n < N)[None, :]
            place = (run * rows + start + m)[:, None] * N + n[None, :]
            value = tl.load(before + place, mask=here, other=0.0).to(ACC) + shift[None, :]
            if ACTIVE:
                value = activation(value, KIND)
            away = tl.where(here, value - around[None, :], 0.0)
            total += away
            square += away * away
            start += BM
        to = (run * answers + answer) * N + n
        now = tl.load(sums + to, mask=n < N, other=0.0) + tl.sum(total, axis=0).to(tl.float64)
        tl.store(sums + to, now, mask=n < N)
        now = tl.load(squares + to, mask=n < N, other=0.0) + tl.sum(square, axis=0).to(tl.float64)
        tl.store(squares + to, now, mask=n < N)


def finish_parts(parts: Tensor, plan: Tensor, out: Tensor, most_columns: int) -> None:
    """Σ over tiles of every entry of a plan, for each run, in one launch.

    An entry has the place of its first part, the distances from run to run and from tile to tile, tiles, columns,
    and the place within a run's row of `out`.
    """
    _finish_parts[(triton.cdiv(most_columns, NEURONS), len(plan), len(out))](
        parts, plan, out, out.stride(0), ENTRY=plan.shape[1], BT=TILES, BN=NEURONS, ACC=accumulator(parts.dtype)
    )  # fmt: skip


def dots(a: Tensor, b: Tensor) -> Tensor:
    """Σ a·b of each run in float64, for [runs, numbers] whose numbers stand side by side."""
    runs, numbers = a.shape
    tiles = triton.cdiv(numbers, NUMBERS)
    parts = a.new_empty(runs, tiles, dtype=torch.float64)
    _dots[(tiles, runs)](a, b, parts, numbers, a.stride(0), b.stride(0), BLOCK=NUMBERS)
    total = parts.new_empty(runs)
    _run_totals[(runs,)](parts, total, tiles=tiles, BLOCK=128)
    return total


def answer_sums(
    before: Tensor,
    bias: Tensor | None,
    origin: Tensor,
    ends: Tensor,
    sums: Tensor,
    squares: Tensor,
    first: int,
    activation: str | None,
) -> None:
    """Add a chunk's Σ and Σ² of every neuron around its origin, over the pairs with each answer, to float64 totals.

    The chunk's rows are pairs first, first + 1, …, ordered by answer; those with answer s end before `ends[s + 1]`.
    """
    runs, rows, N = before.shape
    answers = ends.shape[1] - 1
    _answer_sums[(answers * triton.cdiv(N, NEURONS), runs)](
        before, bias, origin, ends, sums, squares, first, rows, answers, N, 0 if bias is None else bias.stride(0),
        ends.stride(0), BM=16, BN=NEURONS, KIND=ACTIVATIONS[activation or "gelu"], BIASED=bias is not None,
        ACTIVE=activation is not None, ACC=accumulator(before.dtype), num_warps=4,
    )  # fmt: skip
