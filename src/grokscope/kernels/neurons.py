"""Bias and activation of an MLP's neurons, and their gradient."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from grokscope.kernels.pieces import ACTIVATIONS, accumulator, activation, activation_slope

__all__ = ["activate", "activate_gradient", "column_parts", "tiles"]

COLUMNS, WARPS = 128, 4  # of a tile
ROWS = {2: 32, 4: 16, 8: 16}  # by the bytes of a number


@triton.jit
def _activate(
    before, bias, after, rows, N, bias_run, BM: tl.constexpr, BN: tl.constexpr, ACC: tl.constexpr,
    KIND: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    """Store act(before + bias)."""
    run, columns = tl.program_id(1).to(tl.int64), tl.cdiv(N, BN)
    n = tl.program_id(0) % columns * BN + tl.arange(0, BN)
    m = tl.program_id(0) // columns * BM + tl.arange(0, BM)
    here = (m < rows)[:, None] & (n < N)[None, :]
    place = run * rows * N + m[:, None] * N + n[None, :]
    value = tl.load(before + place, mask=here, other=0.0).to(ACC)
    if HAS_BIAS:
        value += tl.load(bias + run * bias_run + n, mask=n < N, other=0.0).to(ACC)[None, :]
    tl.store(after + place, activation(value, KIND), mask=here)


@triton.jit
def _activate_gradient(
    before, bias, dafter, dbefore, parts, rows, N, bias_run, BM: tl.constexpr, BN: tl.constexpr, ACC: tl.constexpr,
    KIND: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    """Store act'(before + bias) · dafter, and the tile's Σ of it."""
    run, columns = tl.program_id(1).to(tl.int64), tl.cdiv(N, BN)
    n, tile = tl.program_id(0) % columns * BN + tl.arange(0, BN), tl.program_id(0) // columns
    m = tile * BM + tl.arange(0, BM)
    here = (m < rows)[:, None] & (n < N)[None, :]
    place = run * rows * N + m[:, None] * N + n[None, :]
    value = tl.load(before + place, mask=here, other=0.0).to(ACC)
    if HAS_BIAS:
        value += tl.load(bias + run * bias_run + n, mask=n < N, other=0.0).to(ACC)[None, :]
    grad = tl.load(dafter + place, mask=here, other=0.0).to(ACC) * activation_slope(value, KIND)
    tl.store(dbefore + place, grad, mask=here)
    tl.store(parts + (run * tl.cdiv(rows, BM) + tile) * N + n, tl.sum(grad, axis=0), mask=n < N)


@triton.jit
def _column_parts(x, parts, rows, N, BM: tl.constexpr, BN: tl.constexpr, ACC: tl.constexpr):
    """The tile's Σ over rows."""
    run, columns = tl.program_id(1).to(tl.int64), tl.cdiv(N, BN)
    n, tile = tl.program_id(0) % columns * BN + tl.arange(0, BN), tl.program_id(0) // columns
    m = tile * BM + tl.arange(0, BM)
    here = (m < rows)[:, None] & (n < N)[None, :]
    value = tl.load(x + run * rows * N + m[:, None] * N + n[None, :], mask=here, other=0.0).to(ACC)
    tl.store(parts + (run * tl.cdiv(rows, BM) + tile) * N + n, tl.sum(value, axis=0), mask=n < N)


def tiles(x: Tensor) -> int:
    """Tiles of rows of [runs, rows, columns]."""
    return triton.cdiv(x.shape[1], ROWS[x.element_size()])


def _grid(x: Tensor) -> tuple[int, int]:
    return tiles(x) * triton.cdiv(x.shape[2], COLUMNS), len(x)


def activate(
    before: Tensor, bias: Tensor | None, kind: str, work: Tensor, compute: torch.dtype | None = None
) -> Tensor:
    """act(before + bias) of every neuron [runs, rows, neurons], in `compute` or the precision of `before`.

    `work` has the precision of sums.
    """
    after = before.new_empty(before.shape, dtype=compute or before.dtype)
    stride = 0 if bias is None else bias.stride(0)
    _activate[_grid(before)](
        before, bias, after, *before.shape[1:], stride, BM=ROWS[before.element_size()], BN=COLUMNS,
        ACC=accumulator(work.dtype), KIND=ACTIVATIONS[kind], HAS_BIAS=bias is not None, num_warps=WARPS,
    )  # fmt: skip
    return after


def activate_gradient(before: Tensor, bias: Tensor | None, dafter: Tensor, kind: str, parts: Tensor) -> Tensor:
    """Gradient of `before`; `parts` [runs, tiles, neurons] gets each tile's Σ for the bias."""
    stride = 0 if bias is None else bias.stride(0)
    dbefore = before.new_empty(before.shape)
    _activate_gradient[_grid(before)](
        before, bias, dafter, dbefore, parts, *before.shape[1:], stride, BM=ROWS[before.element_size()], BN=COLUMNS,
        ACC=accumulator(parts.dtype), KIND=ACTIVATIONS[kind], HAS_BIAS=bias is not None, num_warps=WARPS,
    )  # fmt: skip
    return dbefore


def column_parts(x: Tensor, parts: Tensor) -> None:
    """Each tile's Σ over the rows of [runs, rows, columns], into `parts` [runs, tiles, columns]."""
    _column_parts[_grid(x)](
        x, parts, *x.shape[1:], BM=ROWS[x.element_size()], BN=COLUMNS, ACC=accumulator(parts.dtype), num_warps=WARPS
    )  # fmt: skip
