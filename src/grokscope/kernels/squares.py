"""Mean squared error at the read position: the loss with its gradient while training, scores while evaluating.

Targets are real answers [runs, rows, outputs], or one-hot vectors of classes [runs, rows].
"""

import triton
import triton.language as tl
from torch import Tensor

from grokscope.kernels.head import tile_of
from grokscope.kernels.pieces import accumulator

__all__ = ["loss_and_gradient", "scores"]


@triton.jit
def _away(
    outputs, bias, labels, place, label_row, c, run, own, here, bias_run, C, OUTPUTS: tl.constexpr, ACC: tl.constexpr,
    BIASED: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """Outputs of a tile, times SCALE, and how far from the targets; 0 where a run's task has no such output."""
    inside = here[:, None] & (c < own)[None, :]
    value = tl.load(outputs + place, mask=inside, other=0.0).to(ACC)
    if BIASED:
        value += tl.load(bias + run * bias_run + c, mask=c < own, other=0.0).to(ACC)[None, :]
    if SCALE != 1:
        value *= SCALE
    if OUTPUTS > 0:
        target = tl.load(labels + label_row[:, None] * OUTPUTS + c[None, :], mask=inside, other=0.0).to(ACC)
    else:
        label = tl.load(labels + label_row, mask=here, other=0)
        target = tl.where(c[None, :] == label[:, None], 1.0, 0.0).to(ACC)
    return value, tl.where(inside, value - target, 0.0)


@triton.jit
def _loss_and_gradient(
    outputs, bias, labels, classes, counts, gradient, losses, parts, inputs, C, bias_run,
    BM: tl.constexpr, CP: tl.constexpr, OUTPUTS: tl.constexpr, ACC: tl.constexpr, BIASED: tl.constexpr,
    SCALE: tl.constexpr,
):  # fmt: skip
    """Σ of the tile's losses, and the gradient of the mean loss, whose Σ over rows is the bias's."""
    run, tile, c = tl.program_id(1).to(tl.int64), tl.program_id(0), tl.arange(0, CP)
    m = tile * BM + tl.arange(0, BM)
    here = m < inputs
    place, own = (run * inputs + m)[:, None] * C + c[None, :], tl.load(classes + run)
    _, away = _away(
        outputs, bias, labels, place, run * inputs + m, c, run, own, here, bias_run, C, OUTPUTS, ACC, BIASED, SCALE
    )
    count = tl.load(counts + run)
    counted = m < count
    loss = tl.sum(away * away, axis=1) / own.to(ACC)
    tl.store(losses + run * tl.num_programs(0) + tile, tl.sum(tl.where(counted, loss, 0.0), axis=0))
    share = tl.where(counted, 2 / (count.to(ACC) * own.to(ACC)), 0.0)
    grad = away * share[:, None]
    if SCALE != 1:
        grad *= SCALE
    tl.store(gradient + place, grad, mask=here[:, None] & (c < C)[None, :])
    if BIASED:
        part = parts + (run * tl.num_programs(0) + tile) * C + c
        tl.store(part, tl.sum(tl.where(here[:, None], grad, 0.0), axis=0), mask=c < C)


@triton.jit
def _scores(
    outputs, bias, labels, classes, kinds, tolerances, parts, inputs, C, bias_run, label_run, first_tile, tiles,
    BM: tl.constexpr, CP: tl.constexpr, OUTPUTS: tl.constexpr, ACC: tl.constexpr, BIASED: tl.constexpr,
    SCALE: tl.constexpr, KINDS: tl.constexpr,
):  # fmt: skip
    """Σ of right answers and losses over the tile's rows of kind 1, then of kind 2, and so on."""
    run, tile, c = tl.program_id(1).to(tl.int64), tl.program_id(0), tl.arange(0, CP)
    m = tile * BM + tl.arange(0, BM)
    here = m < inputs
    place, own = (run * inputs + m)[:, None] * C + c[None, :], tl.load(classes + run)
    value, away = _away(
        outputs, bias, labels, place, run * label_run + m, c, run, own, here, bias_run, C, OUTPUTS, ACC, BIASED, SCALE
    )
    loss = tl.sum(away * away, axis=1) / own.to(ACC)
    if OUTPUTS > 0:
        right = (loss <= tl.load(tolerances + run).to(ACC)).to(ACC)
    else:
        value = tl.where((c < own)[None, :], value, float("-inf"))
        top = tl.max(value, axis=1)
        answer = tl.min(tl.where(value == top[:, None], c[None, :], CP), axis=1)
        right = (answer == tl.load(labels + run * label_run + m, mask=here, other=0)).to(ACC)
    right = tl.where(loss == loss, right, loss)
    kind = tl.load(kinds + run * label_run + m, mask=here, other=0)
    part = parts + (run * tiles + first_tile + tile) * 2 * KINDS
    for k in tl.static_range(KINDS):
        tl.store(part + 2 * k, tl.sum(tl.where(kind == k + 1, right, 0.0), axis=0))
        tl.store(part + 2 * k + 1, tl.sum(tl.where(kind == k + 1, loss, 0.0), axis=0))


def loss_and_gradient(
    outputs: Tensor, bias: Tensor | None, labels: Tensor, classes: Tensor, counts: Tensor, gradient: Tensor,
    losses: Tensor, parts: Tensor, temperature: float = 1.0,
) -> None:  # fmt: skip
    """As `head.loss_and_gradient`, of the squared error: L = Σ_rows Σ_c (y_c − t_c)² / (rows · outputs)."""
    runs, inputs, C = outputs.shape
    BM, CP = tile_of(C)
    _loss_and_gradient[(triton.cdiv(inputs, BM), runs)](
        outputs, bias, labels, classes, counts, gradient, losses, parts, inputs, C,
        0 if bias is None else bias.stride(0), BM=BM, CP=CP, OUTPUTS=labels.shape[2] if labels.ndim == 3 else 0,
        ACC=accumulator(losses.dtype), BIASED=bias is not None, SCALE=1 / temperature, num_warps=4,
    )  # fmt: skip


def scores(
    outputs: Tensor, bias: Tensor | None, labels: Tensor, classes: Tensor, kinds: Tensor, tolerances: Tensor,
    parts: Tensor, first_tile: int, temperature: float = 1.0,
) -> None:  # fmt: skip
    """As `head.scores`, of the squared error; a real answer is right where that is at most its run's tolerance.

    Labels and kinds may be rows of wider tables, of equally many rows.
    """
    runs, inputs, C = outputs.shape
    BM, CP = tile_of(C)
    _scores[(triton.cdiv(inputs, BM), runs)](
        outputs, bias, labels, classes, kinds, tolerances, parts, inputs, C, 0 if bias is None else bias.stride(0),
        kinds.stride(0), first_tile, parts.shape[1], BM=BM, CP=CP, OUTPUTS=labels.shape[2] if labels.ndim == 3 else 0,
        ACC=accumulator(outputs.dtype), BIASED=bias is not None, SCALE=1 / temperature,
        KINDS=parts.shape[2] // 2, num_warps=4,
    )  # fmt: skip
