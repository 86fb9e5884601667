"""Columns of numbers as few bytes: exact where they fit, else to as many digits as do, else every n-th evaluation.

A number of d decimal digits survives p binary ones if 2^(p − 1) > 10^d, so what is shown is what was stored, rounded.
"""

import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2, nan

import numpy as np

from grokscope.shapes import Float

__all__ = ["BUDGET", "Packed", "deflated", "packed_columns"]

BUDGET = 2_300_000  # characters of all columns: what a page of 3 MB leaves them
LEVELS = (None, 6, 5, 4)  # significant digits, None for all; float32 has room for six
LONGEST_STRIDE = 1024
SAMPLE = 100  # runs by which the size of all is guessed
FLOAT32_BITS = 23

Columns = Mapping[str, Sequence[float | int]]


@dataclass(frozen=True)
class Packed:
    """Many runs' columns in one text."""

    names: tuple[str, ...]
    """The columns besides the step, in the order of the bytes."""
    lengths: tuple[int, ...]
    """Evaluations of each run."""
    digits: int | None
    """Significant digits kept; None if every number is exact."""
    stride: int
    """Every so many evaluations are kept, and each run's last."""
    text: str
    """Base64 of the deflated bytes: steps as differences in int32, then the columns, each with its bytes sorted by
    place (all first bytes, all second ones …), which repeat more."""


def packed_columns(runs: Sequence[Columns], names: Sequence[str], budget: int = BUDGET) -> Packed:
    """The most exact packing that keeps to the budget; the roughest if none does."""
    *levels, roughest = [
        (2**i, digits)
        for i in range(LONGEST_STRIDE.bit_length())
        for digits in LEVELS
        if i == 0 or digits == LEVELS[-1]
    ]
    for stride, digits in levels:
        if _may_fit(runs, names, digits, stride, budget):
            found = _packed(runs, names, digits, stride)
            if len(found.text) <= budget:
                return found
    stride, digits = roughest
    return _packed(runs, names, digits, stride)


def _may_fit(runs: Sequence[Columns], names: Sequence[str], digits: int | None, stride: int, budget: int) -> bool:
    """Whether a packing is worth trying: of many runs some are packed first, and twice the budget is hopeless."""
    if len(runs) <= 2 * SAMPLE:
        return True
    some = runs[:: len(runs) // SAMPLE]
    return len(_packed(some, names, digits, stride).text) * len(runs) / len(some) <= 2 * budget


def _thinned(run: Columns, stride: int) -> Columns:
    count = len(run.get("step", ()))
    if stride == 1 or count < 3:
        return run
    kept = sorted({*range(0, count, stride), count - 1})
    return {name: [values[i] for i in kept] for name, values in run.items()}


def _packed(every: Sequence[Columns], names: Sequence[str], digits: int | None, stride: int) -> Packed:
    runs = [_thinned(run, stride) for run in every]
    lengths = tuple(len(run.get("step", ())) for run in runs)
    steps = np.concatenate([np.zeros(0), *(np.asarray(run.get("step", ()), dtype=np.float64) for run in runs)])
    differences = np.diff(steps, prepend=0).astype("<i4")
    parts = [_sorted_bytes(differences)]
    for name in names:
        values = [run.get(name, [nan] * length) for run, length in zip(runs, lengths, strict=True)]
        column = np.concatenate([np.zeros(0), *(np.asarray(part, dtype=np.float64) for part in values)])
        parts.append(_sorted_bytes(column.astype("<f8") if digits is None else rounded(column, digits)))
    return Packed(tuple(names), lengths, digits, stride, deflated(b"".join(parts)))


def rounded(column: Float[np.ndarray, " evaluations"], digits: int) -> Float[np.ndarray, " evaluations"]:
    """Numbers to so many significant digits, in float32 with every bit zero that they do not need."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        exponent = np.floor(np.log10(np.abs(column)))
        scale = 10.0 ** (digits - 1 - np.where(np.isfinite(exponent), exponent, 0))
        decimal = np.where(np.isfinite(column) & (column != 0), np.round(column * scale) / scale, column)
    bits = decimal.astype("<f4").view("<u4")
    spare = FLOAT32_BITS - (ceil(log2(10**digits)))
    half = np.uint32(1 << (spare - 1)) if spare > 0 else np.uint32(0)
    kept = np.where(np.isfinite(decimal), (bits + half) & np.uint32(0xFFFFFFFF << max(spare, 0) & 0xFFFFFFFF), bits)
    return kept.astype("<u4").view("<f4")


def _sorted_bytes(column: np.ndarray) -> bytes:
    """All first bytes, then all second ones, and so on."""
    return np.ascontiguousarray(column).view(np.uint8).reshape(len(column), column.itemsize).T.tobytes()


def deflated(content: bytes) -> str:
    """Bytes as text that no page can be broken with."""
    return b64encode(zlib.compress(content, 9)).decode()
