"""The rows that a step trains on, out of tables of all rows."""

import triton
import triton.language as tl
from torch import Tensor

__all__ = ["Batch", "choose_batch"]

BLOCK, NUMBERS = 512, 128  # rows, and numbers of a row, of a tile
Batch = tuple[Tensor, Tensor, Tensor]
"""Inputs, labels, and how many rows of each run count."""


@triton.jit
def _choose_batch(
    rows, counts, counter, tokens, labels, chosen_tokens, chosen_labels, chosen_counts, runs, batch, inputs,
    L: tl.constexpr, LABELLED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Tokens at L positions and classes of the step's rows, and how many of them count."""
    run, i = tl.program_id(1).to(tl.int64), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at, here = tl.load(counter) * runs + run, i < batch
    row = tl.load(rows + at * batch + i, mask=here, other=0)
    for position in tl.static_range(L):
        token = tl.load(tokens + (run * L + position) * inputs + row, mask=here, other=0)
        tl.store(chosen_tokens + (run * L + position) * batch + i, token, mask=here)
    if LABELLED:
        tl.store(chosen_labels + run * batch + i, tl.load(labels + run * inputs + row, mask=here, other=0), mask=here)
    if tl.program_id(0) == 0:
        tl.store(chosen_counts + run, tl.load(counts + at).to(tl.int32))


@triton.jit
def _choose_vectors(rows, counter, table, chosen, runs, batch, inputs, F, BN: tl.constexpr):
    """F numbers of one of the step's rows."""
    run, i = tl.program_id(2).to(tl.int64), tl.program_id(1)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    row = tl.load(rows + (tl.load(counter) * runs + run) * batch + i)
    value = tl.load(table + (run * inputs + row) * F + n, mask=n < F, other=0.0)
    tl.store(chosen + (run * batch + i) * F + n, value, mask=n < F)


def choose_batch(rows: Tensor, counts: Tensor, counter: Tensor, tables: tuple[Tensor, Tensor], chosen: Batch) -> None:
    """Inputs, labels and count of the step that the counter names.

    Tables are tokens int32 [runs, length, inputs] or vectors [runs, inputs, features], and labels int32 [runs, inputs]
    or real [runs, inputs, outputs].
    """
    _, runs, batch = rows.shape
    inputs = tables[1].shape[1]
    block = min(BLOCK, triton.next_power_of_2(batch))
    _choose_batch[(triton.cdiv(batch, block), runs)](
        rows, counts, counter, *tables, *chosen, runs, batch, inputs,
        L=0 if tables[0].is_floating_point() else tables[0].shape[1], LABELLED=not tables[1].is_floating_point(),
        BLOCK=block,
    )  # fmt: skip
    for table, to in zip(tables, chosen[:2], strict=True):
        if table.is_floating_point():
            F = table.shape[2]
            _choose_vectors[(triton.cdiv(F, NUMBERS), batch, runs)](
                rows, counter, table, to, runs, batch, inputs, F, BN=NUMBERS, num_warps=1
            )  # fmt: skip
