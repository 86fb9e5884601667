"""Attention over any number of positions, and its gradient.

A program has a tile of inputs at one position and passes over the others in their order; a head is an axis of a tile.
The softmax is summed on the way: what was summed so far is scaled down where a larger score comes (Milakov and
Gimelshein 2018). Biases are added before. Three positions of pair tables have kernels of their own in `attention`.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from grokscope.kernels.pieces import accumulator

__all__ = ["SequenceAttention", "attend", "attend_gradient"]

INPUTS, WARPS = 4, 2  # of a tile


@triton.jit
def _tile(base, row, columns, here, column, inside, ACC: tl.constexpr):
    """A tile of rows [inputs, heads, head width]."""
    mask = here[:, None, None] & inside[None]
    return tl.load(base + row[:, None, None].to(tl.int64) * columns + column[None], mask=mask, other=0.0).to(ACC)


@triton.jit
def _score(ask, key, of_query, of_key, SCALE: tl.constexpr, CAUSAL: tl.constexpr):
    """q·k/√e for every input and head; −∞ where a query must not see the key."""
    score = tl.sum(ask * key, axis=2) * SCALE
    if CAUSAL:
        score = tl.where(of_key <= of_query, score, float("-inf"))
    return score


@triton.jit
def _attend(
    q, k, v, z, sums, inputs, q_run, q_columns, kv_run, kv_columns,
    FIRST: tl.constexpr, L: tl.constexpr, CAUSAL: tl.constexpr, SCALE: tl.constexpr, D: tl.constexpr,
    H: tl.constexpr, HP: tl.constexpr, EP: tl.constexpr, T: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Mixed values of one query position, and ln Σ exp of its scores."""
    run, i = tl.program_id(2).to(tl.int64), tl.program_id(0) * T + tl.arange(0, T)
    here, asking = i < inputs, tl.program_id(1)
    h, e = tl.arange(0, HP)[:, None], tl.arange(0, EP)[None, :]
    column, inside = h * (D // H) + e, (h < H) & (e < D // H)
    k, v = k + run * kv_run, v + run * kv_run
    ask = _tile(q + run * q_run, asking * inputs + i, q_columns, here, column, inside, ACC)
    top, total = tl.full((T, HP), float("-inf"), ACC), tl.zeros((T, HP), ACC)
    mixed = tl.zeros((T, HP, EP), ACC)
    for position in range(L):
        row = position * inputs + i
        key = _tile(k, row, kv_columns, here, column, inside, ACC)
        score = _score(ask, key, asking + FIRST, position, SCALE, CAUSAL)
        higher = tl.maximum(top, score)
        kept, each = tl.exp(top - higher), tl.exp(score - higher)
        total = total * kept + each
        mixed = mixed * kept[:, :, None] + each[:, :, None] * _tile(v, row, kv_columns, here, column, inside, ACC)
        top = higher
    mixed /= total[:, :, None]
    place = (run * (L - FIRST) + asking) * inputs + i
    tl.store(z + place[:, None, None] * D + column[None], mixed, mask=here[:, None, None] & inside[None])
    heads = tl.arange(0, HP)[None, :]
    tl.store(sums + place[:, None] * H + heads, top + tl.log(total), mask=here[:, None] & (heads < H))


@triton.jit
def _query_gradient(
    q, k, v, dz, sums, means, dq, inputs, q_run, q_columns, kv_run, kv_columns, dq_run, dq_columns,
    FIRST: tl.constexpr, L: tl.constexpr, CAUSAL: tl.constexpr, SCALE: tl.constexpr, D: tl.constexpr,
    H: tl.constexpr, HP: tl.constexpr, EP: tl.constexpr, T: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Gradient of the queries of one position, and Σ p (dz·v), which the keys' need too."""
    run, i = tl.program_id(2).to(tl.int64), tl.program_id(0) * T + tl.arange(0, T)
    here, asking = i < inputs, tl.program_id(1)
    h, e = tl.arange(0, HP)[:, None], tl.arange(0, EP)[None, :]
    column, inside = h * (D // H) + e, (h < H) & (e < D // H)
    k, v = k + run * kv_run, v + run * kv_run
    ask = _tile(q + run * q_run, asking * inputs + i, q_columns, here, column, inside, ACC)
    place, heads = (run * (L - FIRST) + asking) * inputs + i, tl.arange(0, HP)[None, :]
    known = here[:, None] & (heads < H)
    up = _tile(dz, place, D, here, column, inside, ACC)
    whole = tl.load(sums + place[:, None] * H + heads, mask=known, other=0.0).to(ACC)
    mean, grad = tl.zeros((T, HP), ACC), tl.zeros((T, HP, EP), ACC)
    for position in range(L):
        row = position * inputs + i
        key = _tile(k, row, kv_columns, here, column, inside, ACC)
        score = _score(ask, key, asking + FIRST, position, SCALE, CAUSAL)
        gain = tl.sum(up * _tile(v, row, kv_columns, here, column, inside, ACC), axis=2)
        mean += tl.exp(score - whole) * gain
    for position in range(L):
        row = position * inputs + i
        key = _tile(k, row, kv_columns, here, column, inside, ACC)
        share = tl.exp(_score(ask, key, asking + FIRST, position, SCALE, CAUSAL) - whole)
        gain = tl.sum(up * _tile(v, row, kv_columns, here, column, inside, ACC), axis=2)
        grad += (share * (gain - mean) * SCALE)[:, :, None] * key
    to = dq + run * dq_run + (asking * inputs + i)[:, None, None].to(tl.int64) * dq_columns + column[None]
    tl.store(to, grad, mask=here[:, None, None] & inside[None])
    tl.store(means + place[:, None] * H + heads, mean, mask=known)


@triton.jit
def _key_gradient(
    q, k, v, dz, sums, means, dk, dv, inputs, q_run, q_columns, kv_run, kv_columns, dkv_run, dkv_columns,
    FIRST: tl.constexpr, L: tl.constexpr, CAUSAL: tl.constexpr, SCALE: tl.constexpr, D: tl.constexpr,
    H: tl.constexpr, HP: tl.constexpr, EP: tl.constexpr, T: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Gradients of the keys and values of one position."""
    run, i = tl.program_id(2).to(tl.int64), tl.program_id(0) * T + tl.arange(0, T)
    here, position = i < inputs, tl.program_id(1)
    h, e = tl.arange(0, HP)[:, None], tl.arange(0, EP)[None, :]
    column, inside = h * (D // H) + e, (h < H) & (e < D // H)
    row, heads = position * inputs + i, tl.arange(0, HP)[None, :]
    known = here[:, None] & (heads < H)
    key = _tile(k + run * kv_run, row, kv_columns, here, column, inside, ACC)
    value = _tile(v + run * kv_run, row, kv_columns, here, column, inside, ACC)
    of_key, of_value = tl.zeros((T, HP, EP), ACC), tl.zeros((T, HP, EP), ACC)
    for asking in range(L - FIRST):
        place = (run * (L - FIRST) + asking) * inputs + i
        ask = _tile(q + run * q_run, asking * inputs + i, q_columns, here, column, inside, ACC)
        up = _tile(dz, place, D, here, column, inside, ACC)
        whole = tl.load(sums + place[:, None] * H + heads, mask=known, other=0.0).to(ACC)
        mean = tl.load(means + place[:, None] * H + heads, mask=known, other=0.0).to(ACC)
        share = tl.exp(_score(ask, key, asking + FIRST, position, SCALE, CAUSAL) - whole)
        gain = tl.sum(up * value, axis=2)
        of_key += (share * (gain - mean) * SCALE)[:, :, None] * ask
        of_value += share[:, :, None] * up
    to = run * dkv_run + row[:, None, None].to(tl.int64) * dkv_columns + column[None]
    mask = here[:, None, None] & inside[None]
    tl.store(dk + to, of_key, mask=mask)
    tl.store(dv + to, of_value, mask=mask)


@dataclass(frozen=True)
class SequenceAttention:
    """One block's queries, keys and values [runs, positions × inputs, width], and how they meet."""

    q: Tensor
    """Of the positions that ask: the last ones."""
    k: Tensor
    """Of all positions, as the values; both may be columns of one tensor."""
    v: Tensor
    """See `k`."""
    inputs: int
    """Rows of a batch or chunk."""
    heads: int
    """Attention heads."""
    causal: bool
    """Whether a position sees only itself and those before it."""

    @property
    def asking(self) -> int:
        """Positions that ask."""
        return self.q.shape[1] // self.inputs

    def sizes(self, work: Tensor) -> dict[str, Any]:
        """Compile-time sizes and choices."""
        D, H, length = self.q.shape[2], self.heads, self.k.shape[1] // self.inputs
        return {
            "FIRST": length - self.asking,
            "L": length,
            "CAUSAL": self.causal,
            "SCALE": 1 / sqrt(D // H),
            "D": D,
            "H": H,
            "HP": triton.next_power_of_2(H),
            "EP": triton.next_power_of_2(D // H),
            "T": INPUTS,
            "ACC": accumulator(work.dtype),
            "num_warps": WARPS,
        }

    def strides(self) -> tuple[int, ...]:
        """Run and row of the queries, then of keys and values."""
        return (self.q.stride(0), self.q.stride(1), self.k.stride(0), self.k.stride(1))

    def grid(self, positions: int) -> tuple[int, ...]:
        """A program for each tile of inputs at each position of each run."""
        return (triton.cdiv(self.inputs, INPUTS), positions, len(self.q))


def attend(what: SequenceAttention, work: Tensor) -> tuple[Tensor, Tensor]:
    """softmax(q·k/√e) v with heads joined, [runs, query positions × inputs, width], and ln Σ exp of the scores.

    `work` has the precision of sums.
    """
    runs, rows, D = what.q.shape
    z = torch.empty(runs, rows, D, dtype=what.q.dtype, device=work.device)
    sums = torch.empty(runs, rows, what.heads, dtype=work.dtype, device=work.device)
    _attend[what.grid(what.asking)](what.q, what.k, what.v, z, sums, what.inputs, *what.strides(), **what.sizes(work))
    return z, sums


def attend_gradient(what: SequenceAttention, dz: Tensor, sums: Tensor, to: tuple[Tensor, Tensor, Tensor]) -> None:
    """Gradients of queries, keys and values, into tensors that are laid out as these."""
    (dq, dk, dv), means = to, torch.empty_like(sums)
    given = (what.q, what.k, what.v, dz, sums, means)
    sizes = what.sizes(sums)
    _query_gradient[what.grid(what.asking)](
        *given, dq, what.inputs, *what.strides(), dq.stride(0), dq.stride(1), **sizes
    )  # fmt: skip
    _key_gradient[what.grid(sizes["L"])](
        *given, dk, dv, what.inputs, *what.strides(), dk.stride(0), dk.stride(1), **sizes
    )  # fmt: skip
