"""Arithmetic of residues: primes and their roots, and polynomials as they stand in a task's name.

`a2+ab+b2` is a² + ab + b².
"""

import re

import numpy as np

from grokscope.errors import require, shown
from grokscope.shapes import Int

__all__ = ["PATTERN", "is_prime", "parse_polynomial", "polynomial_values", "primitive_root", "root_powers"]

TERM = r"(?:[0-9]{0,6}a[0-9]{0,2}b[0-9]{0,2}|[0-9]{0,6}a[0-9]{0,2}|[0-9]{0,6}b[0-9]{0,2}|[0-9]{1,6})"
PATTERN = rf"-?{TERM}(?:[+-]{TERM}){{0,31}}"
Terms = tuple[tuple[int, int, int], ...]


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


def parse_polynomial(text: str) -> Terms:
    """Terms (coefficient, power of a, power of b); a number after a letter is its power.

    >>> parse_polynomial("a2-3ab+b2")
    ((1, 2, 0), (-3, 1, 1), (1, 0, 2))
    """
    require(
        re.fullmatch(PATTERN, text),
        f"{shown(text)} is not a polynomial in a and b; expected one such as a2+ab+b2 for a² + ab + b²",
    )
    with_powers = re.sub(r"([ab])(?![0-9])", r"\g<1>1", text)  # so that no power differs from no letter
    terms = re.findall(r"([+-]?)([0-9]*)(?:a([0-9]*))?(?:b([0-9]*))?", with_powers)
    return tuple(
        (int(coefficient or 1) * (-1 if sign == "-" else 1), int(a or 0), int(b or 0))
        for sign, coefficient, a, b in terms
        if coefficient or a or b
    )


def polynomial_values(
    terms: Terms, a: Int[np.ndarray, " inputs"], b: Int[np.ndarray, " inputs"], modulus: int
) -> Int[np.ndarray, " inputs"]:
    """Σ coefficient · aⁱ · bʲ modulo `modulus` for residues a and b, reduced at every step: nothing overflows."""
    total = np.zeros_like(a)
    for coefficient, i, j in terms:
        total = (total + coefficient % modulus * (_power(a, i, modulus) * _power(b, j, modulus) % modulus)) % modulus
    return total


def _power(x: np.ndarray, exponent: int, modulus: int) -> np.ndarray:
    return np.array([pow(residue, exponent, modulus) for residue in range(modulus)])[x]
