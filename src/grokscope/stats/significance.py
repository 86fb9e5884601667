"""Tests that need no distribution: signs, and many tests at once."""

from dataclasses import dataclass

import numpy as np
import scipy.stats

from grokscope.errors import InputError, shown
from grokscope.shapes import Float
from grokscope.stats.numbers import Numbers, column

__all__ = ["SignTest", "holm", "sign_test"]


@dataclass(frozen=True)
class SignTest:
    """How many values lie on either side of zero, and how surprising that is."""

    positive: int
    """Values above zero."""
    negative: int
    """Values below zero."""
    zero: int
    """Values that are zero: counted here, and left out of the test."""
    p_value: float
    """Two-sided and exact; 1 where every value is zero."""


def sign_test(values: Numbers) -> SignTest:
    """Exact two-sided sign test: is the median zero? Paper: §5.1, 2·2⁻⁹ for 9 of 9.

    Zeros say nothing of a sign: they are dropped (Dixon and Mood, 1946) and counted. Infinite values have a sign, so a
    lead known only to be negative can stand as −∞. n values cannot go below 2^(1−n): five primes give 0.0625 at best.

    >>> sign_test([2500, 3000, 1000, 1500, 1500, 3000, 500, 500, 2000]).p_value
    0.00390625
    """
    found = column(values, finite=False)
    positive, negative = int((found > 0).sum()), int((found < 0).sum())
    decided = positive + negative
    p_value = float(scipy.stats.binomtest(positive, decided).pvalue) if decided else 1.0
    return SignTest(positive, negative, len(found) - decided, p_value)


def holm(p_values: Numbers) -> Float[np.ndarray, " items"]:
    """p-values adjusted for their number by Holm's step-down rule (1979), in the order given.

    The k-th smallest of m is multiplied by m − k + 1; none is below a smaller one's, none above 1.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    found = column(p_values, "p_values")
    if len(found) and not (found.min() >= 0 and found.max() <= 1):
        raise InputError(f"p_values must lie in [0, 1], got {shown(found.tolist())}")
    order = np.argsort(found, kind="stable")
    factors = np.arange(len(found), 0, -1)
    adjusted = np.empty_like(found)
    adjusted[order] = np.minimum(np.maximum.accumulate(found[order] * factors), 1)
    return adjusted
