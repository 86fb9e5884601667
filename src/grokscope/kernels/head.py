"""Cross-entropy at the read position: the loss with its gradient while training, scores while evaluating.

Of softmax, or of StableMax (`is_stable`), whose s(x) = x + 1 for x ≥ 0, 1 / (1 − x) for x < 0 takes the place of eˣ.
"""

import triton
import triton.language as tl
from torch import Tensor

from grokscope.kernels.pieces import accumulator

__all__ = ["loss_and_gradient", "loss_tiles", "scores", "tile_of"]

LOGITS = 4096  # of a tile


@triton.jit
def _biased(
    logits, bias, place, c, run, own, here, bias_run, C, ACC: tl.constexpr, BIASED: tl.constexpr,
    SCALE: tl.constexpr,
):  # fmt: skip
    """Logits of a tile, times SCALE; −∞ where a run's task has no such class."""
    value = tl.load(logits + place, mask=here[:, None] & (c < C)[None, :], other=0.0).to(ACC)
    if BIASED:
        value += tl.load(bias + run * bias_run + c, mask=c < C, other=0.0).to(ACC)[None, :]
    if SCALE != 1:
        value *= SCALE
    return tl.where((c < own)[None, :], value, float("-inf"))


@triton.jit
def _stable(value):
    """s(x) of StableMax: 0 where x is −∞."""
    is_negative = value < 0
    return tl.where(is_negative, 1 / (1 - tl.where(is_negative, value, 0.0)), value + 1)


@triton.jit
def _loss_and_gradient(
    logits, bias, labels, classes, counts, gradient, losses, parts, inputs, C, bias_run,
    BM: tl.constexpr, CP: tl.constexpr, ACC: tl.constexpr, BIASED: tl.constexpr, SCALE: tl.constexpr,
    STABLE: tl.constexpr,
):  # fmt: skip
    """Σ of the tile's losses, and the gradient of the mean loss, whose Σ over rows is the bias's."""
    run, tile, c = tl.program_id(1).to(tl.int64), tl.program_id(0), tl.arange(0, CP)
    m = tile * BM + tl.arange(0, BM)
    here = m < inputs
    place = (run * inputs + m)[:, None] * C + c[None, :]
    value = _biased(logits, bias, place, c, run, tl.load(classes + run), here, bias_run, C, ACC, BIASED, SCALE)
    label = tl.load(labels + run * inputs + m, mask=here, other=0)
    is_label = c[None, :] == label[:, None]
    if STABLE:
        each = _stable(value)
        total = tl.sum(each, axis=1)
        own = tl.sum(tl.where(is_label, each, 0.0), axis=1)
    else:
        top = tl.max(value, axis=1)
        each = tl.exp(value - top[:, None])
        total = tl.sum(each, axis=1)
    count = tl.load(counts + run)
    counted = m < count
    if STABLE:
        loss = tl.log(total) - tl.log(own)
    else:
        loss = top + tl.log(total) - tl.sum(tl.where(is_label, value, 0.0), axis=1)
    tl.store(losses + run * tl.num_programs(0) + tile, tl.sum(tl.where(counted, loss, 0.0), axis=0))
    share = tl.where(counted, 1 / count.to(ACC), 0.0)
    if STABLE:
        slope = tl.where(value < 0, each * each, 1.0)
        grad = slope * (1 / total[:, None] - tl.where(is_label, 1 / own[:, None], 0.0)) * share[:, None]
    else:
        grad = (each / total[:, None] - tl.where(is_label, 1.0, 0.0)) * share[:, None]
    if SCALE != 1:
        grad *= SCALE
    tl.store(gradient + place, grad, mask=here[:, None] & (c < C)[None, :])
    if BIASED:
        part = parts + (run * tl.num_programs(0) + tile) * C + c
        tl.store(part, tl.sum(tl.where(here[:, None], grad, 0.0), axis=0), mask=c < C)


@triton.jit
def _scores(
    logits, bias, labels, classes, kinds, parts, inputs, C, bias_run, label_run, first_tile, tiles,
    BM: tl.constexpr, CP: tl.constexpr, ACC: tl.constexpr, BIASED: tl.constexpr, SCALE: tl.constexpr,
    KINDS: tl.constexpr, STABLE: tl.constexpr,
):  # fmt: skip
    """Σ of right answers and losses over the tile's rows of kind 1, then of kind 2, and so on."""
    run, tile, c = tl.program_id(1).to(tl.int64), tl.program_id(0), tl.arange(0, CP)
    m = tile * BM + tl.arange(0, BM)
    here = m < inputs
    place = (run * inputs + m)[:, None] * C + c[None, :]
    value = _biased(logits, bias, place, c, run, tl.load(classes + run), here, bias_run, C, ACC, BIASED, SCALE)
    label = tl.load(labels + run * label_run + m, mask=here, other=0)
    kind = tl.load(kinds + run * label_run + m, mask=here, other=0)
    top = tl.max(value, axis=1)
    if STABLE:
        each = _stable(value)
        loss = tl.log(tl.sum(each, axis=1))
        loss -= tl.log(tl.sum(tl.where(c[None, :] == label[:, None], each, 0.0), axis=1))
    else:
        loss = top + tl.log(tl.sum(tl.exp(value - top[:, None]), axis=1))
        loss -= tl.sum(tl.where(c[None, :] == label[:, None], value, 0.0), axis=1)
    # The first of the classes that tie; logits that are not numbers answer neither right nor wrong.
    answer = tl.min(tl.where(value == top[:, None], c[None, :], CP), axis=1)
    right = tl.where(loss == loss, (answer == label).to(ACC), loss)
    part = parts + (run * tiles + first_tile + tile) * 2 * KINDS
    for k in tl.static_range(KINDS):
        tl.store(part + 2 * k, tl.sum(tl.where(kind == k + 1, right, 0.0), axis=0))
        tl.store(part + 2 * k + 1, tl.sum(tl.where(kind == k + 1, loss, 0.0), axis=0))


def tile_of(columns: int) -> tuple[int, int]:
    """Rows and padded columns of a tile."""
    padded = triton.next_power_of_2(columns)
    return max(1, LOGITS // padded), padded


def loss_tiles(inputs: int, columns: int) -> int:
    """Tiles of so many rows of logits."""
    return triton.cdiv(inputs, tile_of(columns)[0])


def loss_and_gradient(
    logits: Tensor, bias: Tensor | None, labels: Tensor, classes: Tensor, counts: Tensor, gradient: Tensor,
    losses: Tensor, parts: Tensor, temperature: float = 1.0, is_stable: bool = False,
) -> None:  # fmt: skip
    """Gradient of each run's mean loss over its first `counts` rows by its logits [runs, inputs, classes].

    The logits are still to be divided by the temperature. `gradient` may be the logits themselves. `losses`
    [runs, tiles] gets Σ of losses tile by tile, `parts` [runs, tiles, classes] Σ for the bias.
    """
    runs, inputs, C = logits.shape
    BM, CP = tile_of(C)
    _loss_and_gradient[(triton.cdiv(inputs, BM), runs)](
        logits, bias, labels, classes, counts, gradient, losses, parts, inputs, C,
        0 if bias is None else bias.stride(0), BM=BM, CP=CP, ACC=accumulator(losses.dtype), BIASED=bias is not None,
        SCALE=1 / temperature, STABLE=is_stable, num_warps=4,
    )  # fmt: skip


def scores(
    logits: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    classes: Tensor,
    kinds: Tensor,
    parts: Tensor,
    first_tile: int,
    temperature: float = 1.0,
    is_stable: bool = False,
) -> None:
    """Σ of right answers and of losses over rows of each kind from 1 on, tile by tile into [runs, tiles, 2 kinds].

    Labels and kinds [runs, inputs] may be columns of wider tables.
    """
    runs, inputs, C = logits.shape
    BM, CP = tile_of(C)
    _scores[(triton.cdiv(inputs, BM), runs)](
        logits, bias, labels, classes, kinds, parts, inputs, C, 0 if bias is None else bias.stride(0),
        labels.stride(0), first_tile, parts.shape[1], BM=BM, CP=CP, ACC=accumulator(logits.dtype),
        BIASED=bias is not None, SCALE=1 / temperature, KINDS=parts.shape[2] // 2, STABLE=is_stable, num_warps=4,
    )  # fmt: skip
