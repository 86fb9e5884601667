"""Where some seeds grok within the budget and some do not: bisection on the train fraction, every probe kept."""

from collections.abc import Mapping

from grokscope.errors import require

__all__ = ["MIXED", "next_fraction"]

MIXED = (0.2, 0.8)
"""Shares of seeds that grok between which a cell is on the boundary."""
FINEST = 0.005  # of train fractions; closer ones are the same few rows
MOST_PROBES = 6

Probes = Mapping[float, float]


def next_fraction(probes: Probes, bracket: tuple[float, float]) -> tuple[float, bool]:
    """The train fraction to train next, and whether it is the cell's own; `probes`: fraction → share that grokked.

    More data make grokking sooner. The first fraction with a share between 20 % and 80 % is the cell's; without one
    after six probes, or where probes are half a percent apart, it is the one nearest to one half.

    >>> next_fraction({}, (0.05, 0.35))
    (0.2, False)
    >>> next_fraction({0.2: 1.0}, (0.05, 0.35))
    (0.125, False)
    >>> next_fraction({0.2: 1.0, 0.125: 0.5}, (0.05, 0.35))
    (0.125, True)
    """
    low, high = bracket
    require(0 < low < high < 1, "a bracket must lie in (0, 1) and rise", bracket)
    for fraction, share in probes.items():
        require(0 <= share <= 1, "a share of seeds must lie in [0, 1]", share)
        if MIXED[0] <= share <= MIXED[1]:
            return fraction, True
        low, high = (low, min(high, fraction)) if share > MIXED[1] else (max(low, fraction), high)
    if probes and (len(probes) >= MOST_PROBES or high - low < 2 * FINEST):
        return min(probes, key=lambda fraction: abs(probes[fraction] - 0.5)), True
    return round((low + high) / 2, 4), False
