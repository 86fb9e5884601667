"""The end of a step: which runs take it, and AdamW over the flat buffers."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from grokscope.kernels.pieces import accumulator

__all__ = ["GROUPS", "MOVED_APART", "SCALARS", "count_step", "update"]

NUMBERS = 1024  # of a run that one program updates
# η/(1 − β₁ᵗ), √(1 − β₂ᵗ), shrink of matrices, of vectors, β₁, β₂, 1 − β₁, 1 − β₂, ε, shrink of embeddings, of the head,
# whether it steps
SCALARS = 12
GROUPS = {"matrix": 0, "vector": 1, "embedding": 2, "head": 3}  # as kernels know them
MOVED_APART = 4  # numbers that another update moves


@triton.jit
def _count_step(
    loss_parts, counts, decays, counter, columns, step, age, alive, last_step, losses, scalars, runs,
    tiles: tl.constexpr, BLOCK: tl.constexpr, ACC: tl.constexpr, SCALARS: tl.constexpr,
):  # fmt: skip
    """Mean loss of a run's batch; whether it steps (alive, unfinished, finite loss), and the numbers of its step."""
    run, t = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), ACC)
    for start in range(0, tiles, BLOCK):
        total += tl.load(loss_parts + run * tiles + start + t, mask=start + t < tiles, other=0.0)
    loss = tl.sum(total, axis=0) / tl.load(counts + run).to(ACC)
    at = tl.load(counter) * runs + run
    running = (tl.load(alive + run) != 0) & (tl.load(step + run) < tl.load(last_step + run))
    finite = (loss - loss) == 0.0
    active = running & finite
    tl.store(losses + at, tl.where(running, loss, float("nan")))
    taken, grown = tl.load(step + run) + active.to(tl.int64), tl.load(age + run) + active.to(tl.int64)
    tl.store(step + run, taken)
    tl.store(age + run, grown)
    if running & (loss - loss != 0.0):
        tl.store(alive + run, tl.zeros((), tl.int8))
    column = columns + run
    rate, warmup = tl.load(column), tl.load(column + runs)
    beta1, beta2, epsilon = tl.load(column + 2 * runs), tl.load(column + 3 * runs), tl.load(column + 4 * runs)
    rate *= tl.where(warmup > 0, tl.minimum(taken.to(tl.float64) / tl.maximum(warmup, 1.0), 1.0), 1.0)
    decay, t64 = tl.load(decays + at), tl.maximum(grown, 1).to(tl.float64)
    to = scalars + run * SCALARS
    tl.store(to, rate / (1 - tl.exp(t64 * tl.log(beta1))))
    tl.store(to + 1, tl.sqrt(1 - tl.exp(t64 * tl.log(beta2))))
    tl.store(to + 2, 1 - rate * (decay * tl.load(column + 6 * runs)))
    tl.store(to + 3, 1 - rate * decay * tl.load(column + 5 * runs))
    tl.store(to + 4, beta1)
    tl.store(to + 5, beta2)
    tl.store(to + 6, 1 - beta1)
    tl.store(to + 7, 1 - beta2)
    tl.store(to + 8, epsilon)
    tl.store(to + 9, 1 - rate * (decay * tl.load(column + 7 * runs)))
    tl.store(to + 10, 1 - rate * (decay * tl.load(column + 8 * runs)))
    tl.store(to + 11, active.to(tl.float64))


@triton.jit
def _update(
    weights, first, second, gradients, rounded, groups, scalars, counter, numbers,
    BLOCK: tl.constexpr, ROUNDED: tl.constexpr, SCALARS: tl.constexpr,
):  # fmt: skip
    """AdamW on a block of a run's numbers but those moved apart; idle runs keep every bit. The counter moves on."""
    run, i = tl.program_id(1).to(tl.int64), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if (run == 0) & (tl.program_id(0) == 0):
        tl.store(counter, tl.load(counter) + 1)
    own = scalars + run * SCALARS
    if tl.load(own + 11) != 0.0:
        group, place = tl.load(groups + i, mask=i < numbers, other=4), run * numbers + i
        here = group != 4
        size, root, epsilon = tl.load(own), tl.load(own + 1), tl.load(own + 8)
        apart = tl.where(group == 2, tl.load(own + 9), tl.load(own + 10))
        shrink = tl.where(group == 0, tl.load(own + 2), tl.where(group == 1, tl.load(own + 3), apart))
        g = tl.load(gradients + place, mask=here, other=0.0)
        m = tl.load(first + place, mask=here, other=0.0) * tl.load(own + 4) + g * tl.load(own + 6)
        v = tl.load(second + place, mask=here, other=0.0) * tl.load(own + 5) + g * g * tl.load(own + 7)
        w = tl.load(weights + place, mask=here, other=0.0) * shrink - size * m / (tl.sqrt(v) / root + epsilon)
        tl.store(weights + place, w, mask=here)
        tl.store(first + place, m, mask=here)
        tl.store(second + place, v, mask=here)
        if ROUNDED:
            tl.store(rounded + place, w, mask=here)


def count_step(
    loss_parts: Tensor,
    chosen_counts: Tensor,
    decays: Tensor,
    counter: Tensor,
    columns: Tensor,
    state: tuple[Tensor, Tensor, Tensor, Tensor],
    losses: Tensor,
    scalars: Tensor,
) -> None:
    """Count the step of every run that takes it, and compute the numbers of its update in float64.

    `columns` [9, runs] has η, warm-up, β₁, β₂, ε and λ's factors for vectors, matrices, embeddings and head; the
    state is step, age, alive, last step.
    """
    step, age, alive, last_step = state
    runs, tiles = loss_parts.shape
    _count_step[(runs,)](
        loss_parts, chosen_counts, decays, counter, columns, step, age, alive.view(torch.int8), last_step, losses,
        scalars, runs, tiles=tiles, BLOCK=64, ACC=accumulator(losses.dtype), SCALARS=SCALARS, num_warps=1,
    )  # fmt: skip


def update(
    buffers: tuple[Tensor, Tensor, Tensor],
    gradients: Tensor,
    rounded: Tensor | None,
    groups: Tensor,
    scalars: Tensor,
    counter: Tensor,
) -> None:
    """AdamW on weights and moments [runs, numbers], and a rounded copy of the weights where one is kept.

    `groups` [numbers] tells by which λ a number is decayed, or that it is moved apart.

    w ← (1 − ηλ) w − η m̂ / (√v̂ + ε), with m = β₁m + (1 − β₁)g, v = β₂v + (1 − β₂)g².
    """
    runs, numbers = buffers[0].shape
    _update[(triton.cdiv(numbers, NUMBERS), runs)](
        *buffers, gradients, rounded, groups, scalars, counter, numbers, BLOCK=NUMBERS,
        ROUNDED=rounded is not None, SCALARS=SCALARS, num_warps=4,
    )  # fmt: skip
