"""Polynomials in a and b, as they stand in a task's name: `a2+ab+b2` is a² + ab + b²."""

import re

import numpy as np

from grokscope.errors import require, shown
from grokscope.shapes import Int

__all__ = ["PATTERN", "parse_polynomial", "polynomial_values"]

TERM = r"(?:[0-9]{0,6}a[0-9]{0,2}b[0-9]{0,2}|[0-9]{0,6}a[0-9]{0,2}|[0-9]{0,6}b[0-9]{0,2}|[0-9]{1,6})"
PATTERN = rf"-?{TERM}(?:[+-]{TERM}){{0,31}}"
Terms = tuple[tuple[int, int, int], ...]


def parse_polynomial(text: str) -> Terms:
    """Terms (coefficient, power of a, power of b); a number after a letter is its power.

    >>> parse_polynomial("a2-3ab+b2")
    ((1, 2, 0), (-3, 1, 1), (1, 0, 2))
    """
    require(
        re.fullmatch(PATTERN, text),
        f"{shown(text)} is not a polynomial in a and b; expected one such as a2+ab+b2 for a² + ab + b²",
    )
    found = []
    for sign, coefficient, a, b in re.findall(r"([+-]?)([0-9]*)(?:a([0-9]*))?(?:b([0-9]*))?", _marked(text)):
        if coefficient or a or b:
            scale = int(coefficient or 1) * (-1 if sign == "-" else 1)
            found.append((scale, int(a or 0), int(b or 0)))
    return tuple(found)


def _marked(text: str) -> str:
    """Every letter with an explicit power, so that none is told from a missing letter."""
    return re.sub(r"([ab])(?![0-9])", r"\g<1>1", text)


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
