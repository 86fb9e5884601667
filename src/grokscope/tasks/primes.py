"""Prime moduli: what multiplication and its characters need."""

import numpy as np

from grokscope.shapes import Int

__all__ = ["is_prime", "primitive_root", "root_powers"]


def is_prime(n: int) -> bool:
    """Whether n is a prime number, by trial division.

    >>> [n for n in range(20) if is_prime(n)]
    [2, 3, 5, 7, 11, 13, 17, 19]
    """
    return n >= 2 and all(n % d for d in range(2, int(n**0.5) + 1))


def primitive_root(p: int) -> int:
    """The least g whose powers are all of 1 … p − 1.

    >>> primitive_root(97)
    5
    """
    factors = [q for q in range(2, p) if is_prime(q) and (p - 1) % q == 0]
    return next(g for g in range(1, p) if all(pow(g, (p - 1) // q, p) != 1 for q in factors))


def root_powers(p: int) -> Int[np.ndarray, " units"]:
    """gᵏ mod p for k = 0 … p − 2: the nonzero residues in the order of their discrete logarithm.

    >>> root_powers(7).tolist()
    [1, 3, 2, 6, 4, 5]
    """
    g = primitive_root(p)
    return np.array([pow(g, k, p) for k in range(p - 1)])
