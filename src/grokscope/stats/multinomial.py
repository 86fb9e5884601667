"""The largest of multinomial counts: its exact distribution."""

from functools import lru_cache
from math import lgamma, log

import numpy as np

__all__ = ["SIGNIFICANCE", "critical_peak", "peak_tail"]

SIGNIFICANCE = 0.05


@lru_cache(maxsize=4096)
def peak_tail(peak: int, items: int, chances: tuple[float, ...]) -> float:
    """P(max_k n_k ≥ peak) for multinomial counts n of so many items, each of kind k with chance q_k: exact.

    Independent Poisson(N q_k) counts given their sum N are multinomial, so kind after kind is convolved; what has
    reached the peak is carried along rather than found as 1 − P(max < peak), so small tails keep all their digits.

    >>> round(peak_tail(9, 10, (0.5, 0.5)) * 2**10)  # one of 1 + 10 sets of items, of either kind
    22
    """
    if peak > items:
        return 0.0
    counts = np.arange(items + 1)
    log_factorial = np.array([lgamma(count + 1) for count in counts])
    below, reached = np.eye(1, items + 1)[0], np.zeros(items + 1)
    for chance in chances:
        if chance > 0:
            law = np.exp(counts * log(items * chance) - items * chance - log_factorial)
            is_low = counts < peak
            reached = _convolved(reached, law) + _convolved(below, law * ~is_low)
            below = _convolved(below, law * is_low)
    return float(reached[-1] / (reached[-1] + below[-1]))


def _convolved(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.convolve(one, other)[: len(one)]


def critical_peak(items: int, chances: tuple[float, ...], significance: float = SIGNIFICANCE) -> int:
    """The least peak whose exact p-value is at most the significance. Its tail is the size that the test attains.

    >>> critical_peak(10, (0.5, 0.5)), round(peak_tail(9, 10, (0.5, 0.5)), 6)
    (9, 0.021484)
    """
    low, high = 0, items + 1  # the tail of `low` is above the significance, that of `high` is not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if peak_tail(middle, items, chances) <= significance else (middle, high)
    return high
