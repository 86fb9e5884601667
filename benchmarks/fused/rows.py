"""The table over (token, position), and gradients summed back onto its rows and the embeddings."""

import triton
import triton.language as tl

from benchmarks.fused.blocks import product

__all__ = ["embedding_gradient_kernel", "norm_gradient_kernel", "row_gradient_kernel", "table_kernel"]


@triton.jit
def table_kernel(embed, position, tokens, table, inputs, V, p_run, D: tl.constexpr, BV: tl.constexpr):
    """Embedding + position for a's tokens, b's tokens and the separator: [2V + 1, D]."""
    run = tl.program_id(1).to(tl.int64)
    r, d = tl.program_id(0) * BV + tl.arange(0, BV), tl.arange(0, D)
    separator = tl.load(tokens + (run * 3 + 2) * inputs)
    which = tl.minimum(r // V, 2)
    token = tl.where(which == 2, separator, r - which * V)
    here = (r < 2 * V + 1)[:, None]
    value = tl.load(embed + run * p_run + token[:, None] * D + d[None, :], mask=here, other=0.0)
    value += tl.load(position + run * p_run + which[:, None] * D + d[None, :], mask=here, other=0.0)
    tl.store(table + run * (2 * V + 1) * D + r[:, None] * D + d[None, :], value, mask=here)


@triton.jit
def row_gradient_kernel(
    source, tokens, out, inputs, V, columns,
    BV: tl.constexpr, BI: tl.constexpr, BN: tl.constexpr, MODE: tl.constexpr,
):  # fmt: skip
    """Σ of the gradients [positions, inputs, columns] of all inputs that gathered a row, as a product with 0 and 1."""
    run = tl.program_id(1).to(tl.int64)
    tiles_n, tiles_v = tl.cdiv(columns, BN), tl.cdiv(V, BV)
    n, tile = tl.program_id(0) % tiles_n * BN + tl.arange(0, BN), tl.program_id(0) // tiles_n
    position = tl.minimum(tile // tiles_v, 2)
    v, i = (tile - position * tiles_v) * BV + tl.arange(0, BV), tl.arange(0, BI)
    inside = (n < columns)[None, :]
    total = tl.zeros((BV, BN), tl.float32)
    for start in range(0, inputs, BI):
        here = start + i < inputs
        token = tl.load(tokens + (run * 3 + position) * inputs + start + i, mask=here, other=0)
        token = tl.where(position == 2, 0, token)
        chosen = tl.where((v[:, None] == token[None, :]) & here[None, :], 1.0, 0.0)
        own = tl.load(
            source + run * 3 * inputs * columns + (position * inputs + start + i)[:, None] * columns + n[None, :],
            mask=here[:, None] & inside, other=0.0,
        )  # fmt: skip
        total = product(chosen, own, total, MODE)
    last = tl.where(position == 2, 1, V)
    place = run * (2 * V + 1) * columns + (position * V + v)[:, None] * columns + n[None, :]
    tl.store(out + place, total, mask=(v < last)[:, None] & inside)


@triton.jit
def embedding_gradient_kernel(
    dtable, tokens, dembed, dposition, inputs, V, g_run, D: tl.constexpr, BV: tl.constexpr
):  # fmt: skip
    """Of each token: its rows as a and as b, and the separator's; of each position: all of its rows."""
    run, tile = tl.program_id(1).to(tl.int64), tl.program_id(0)
    d = tl.arange(0, D)
    base = dtable + run * (2 * V + 1) * D
    last = tl.load(base + 2 * V * D + d)
    if tile < tl.cdiv(V, BV):
        v = tile * BV + tl.arange(0, BV)
        here = (v < V)[:, None]
        total = tl.load(base + v[:, None] * D + d[None, :], mask=here, other=0.0)
        total += tl.load(base + (V + v)[:, None] * D + d[None, :], mask=here, other=0.0)
        separator = tl.load(tokens + (run * 3 + 2) * inputs)
        total += tl.where((v == separator)[:, None], last[None, :], 0.0)
        tl.store(dembed + run * g_run + v[:, None] * D + d[None, :], total, mask=here)
    else:
        for position in tl.static_range(2):
            sums = tl.zeros((D,), tl.float32)
            for start in range(0, V, BV):
                v = start + tl.arange(0, BV)
                part = base + (position * V + v)[:, None] * D + d[None, :]
                sums += tl.sum(tl.load(part, mask=(v < V)[:, None], other=0.0), axis=0)
            tl.store(dposition + run * g_run + position * D + d, sums)
        tl.store(dposition + run * g_run + 2 * D + d, last)


@triton.jit
def norm_gradient_kernel(parts, plan, grads, parts_run, g_run, D: tl.constexpr):
    """Σ over tiles of each LayerNorm's gradients; the plan has first tile, tiles and the places of w and b."""
    run, which = tl.program_id(1).to(tl.int64), tl.program_id(0)
    first, tiles = tl.load(plan + which * 4), tl.load(plan + which * 4 + 1)
    d = tl.arange(0, D)
    weight, shift = tl.zeros((D,), tl.float32), tl.zeros((D,), tl.float32)
    for tile in range(tiles):
        part = parts + run * parts_run + (first + tile) * 2 * D + d
        weight += tl.load(part)
        shift += tl.load(part + D)
    tl.store(grads + run * g_run + tl.load(plan + which * 4 + 2) + d, weight)
    tl.store(grads + run * g_run + tl.load(plan + which * 4 + 3) + d, shift)
