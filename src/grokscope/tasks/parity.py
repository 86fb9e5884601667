"""Sparse parity: k of n bits decide, and nothing else does.

What FSD and rank mean here. A function of n bits is a sum of characters χ_S(x) = ∏_{j ∈ S} (−1)^{x_j}, one for each set
S of bits (the Walsh–Hadamard basis, the Fourier basis of Z_2^n); parity is a single one of them. Two answers are too
few to be read in any basis, so activations are averaged over the rows with each setting of some bits, the relevant
ones first: A[s, j] with s a setting of m bits, of which every mode is a set. A neuron's dominant mode is the set of
bits that it depends on most, FSD says how far neurons agree on one, and the rank of a neuron is the number of sets
that it needs. An untrained neuron depends a little on every bit, so its rank grows with m and neurons agree on nothing;
one that has found the rule depends on sets of relevant bits alone, of which there are 2^k − 1. No artefact of
frequencies of Z_p can show here, for there are none.
"""

from functools import cache

import numpy as np

from grokscope.errors import require, shown
from grokscope.shapes import Int
from grokscope.tasks.kinds import Kind, Number, Numbers
from grokscope.tasks.modes import walsh_modes
from grokscope.tasks.task import Basis, Condition, Task

__all__ = ["PARITY", "conditioned_bits"]

ENUMERATED = 12  # bits up to which every input is a row
SAMPLED_ROWS = 4096
MOST_BITS = 62  # an input is one 64-bit word
MOST_CONDITIONED = 10  # bits: 1,023 modes
ROWS_PER_SETTING = 32  # at least, where inputs are sampled: what the other bits do averages out


def _parity_task(name: str, numbers: Numbers) -> Task:
    n, k = int(numbers["n"]), int(numbers["k"])
    require(k <= n, f"parity of k of n bits needs k ≤ n in {shown(name)}", k)
    words = _words(name, n, numbers["rows"], int(numbers["seed"]))
    bits = words[:, None] >> np.arange(n) & 1
    conditioned = conditioned_bits(n, k, len(words))
    settings = words & (2**conditioned - 1)  # the relevant bits are the first k
    reads_tokens = bool(numbers["tokens"])
    separators = np.full((len(words), 1), 2)
    return Task(
        name=name,
        title=f"the parity of {k} of {n} bits",
        answers=bits[:, :k].sum(axis=1) % 2,
        classes=2,
        tokens=np.concatenate([bits, separators], axis=1) if reads_tokens else None,
        vectors=None if reads_tokens else 1.0 - 2.0 * bits,
        vocabulary=3 if reads_tokens else 0,
        bases={"walsh": cache(lambda: Basis("walsh", np.arange(2**conditioned), walsh_modes(conditioned), "input"))},
        conditions={"input": Condition(settings, 2**conditioned)},
    )


def conditioned_bits(n: int, k: int, rows: int) -> int:
    """m, over whose settings activations are averaged: the k relevant bits and as many others as fit.

    All bits where every setting is a row, at most 10. Where inputs are sampled, so few that each setting has 32 rows.

    >>> conditioned_bits(8, 3, 256), conditioned_bits(40, 3, 4096)
    (8, 7)
    """
    if rows == 2**n:
        return max(k, min(n, MOST_CONDITIONED))
    return max(k, min(n, MOST_CONDITIONED, (rows // ROWS_PER_SETTING).bit_length() - 1))


def _words(name: str, n: int, rows: int | float, seed: int) -> Int[np.ndarray, " rows"]:
    """Inputs as words, bit j for x_j: all of them, or a sample."""
    if np.isnan(rows):
        if n <= ENUMERATED:
            require(not seed, f"every input is a row of {shown(name)}: nothing is drawn from seed", seed)
            return np.arange(2**n)
        rows = SAMPLED_ROWS
    from grokscope.tasks.sampling import distinct_numbers  # loads torch; other names can be checked without it

    return distinct_numbers(seed, 0, int(rows), 2**n)


PARITY = Kind(
    "parity",
    (
        Number("n", 2, MOST_BITS),
        Number("k", 1, MOST_CONDITIONED),
        Number("rows", 16, 2**20, default=np.nan),
        Number("seed", 0, 10**9, default=0),
    ),
    _parity_task,
    "parity_n40_k3",
    "the parity of k of n bits, as vectors of ±1 or, with _tokens, as a sequence",
    flags=("tokens",),
)
