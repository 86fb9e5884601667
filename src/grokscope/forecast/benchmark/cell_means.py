"""Means over runs, with intervals over cells: runs of one cell are alike, and say no more than a few of them would."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grokscope.shapes import Float

__all__ = ["Score", "Summed", "mean_over_cells"]

RESAMPLES = 1000
Summed = tuple[float, float]  # of a cell: sum, weight


@dataclass(frozen=True)
class Score:
    """A mean over cells, with its interval."""

    value: float
    """NaN where nothing could be compared."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end."""
    cells: int
    """Cells behind it."""

    def __str__(self) -> str:
        if np.isnan(self.value):
            return "–"
        return f"{self.value:.2f}" + ("" if np.isnan(self.low) else f" [{self.low:.2f}, {self.high:.2f}]")


def mean_over_cells(cells: Sequence[Summed]) -> Score:
    """Σ sums / Σ weights, with the percentiles of that over resamples of cells.

    >>> print(mean_over_cells([(8.0, 10.0), (5.0, 5.0)]))
    0.87 [0.80, 1.00]
    """
    known = np.array([cell for cell in cells if cell[1] > 0]).reshape(-1, 2)
    if not len(known):
        return Score(float("nan"), float("nan"), float("nan"), 0)
    rng = np.random.default_rng(0)
    drawn: Float[np.ndarray, "resamples cells two"] = known[rng.integers(len(known), size=(RESAMPLES, len(known)))]
    sums = drawn.sum(axis=1)
    low, high = np.quantile(sums[:, 0] / sums[:, 1], [0.025, 0.975])
    total = known.sum(axis=0)
    return Score(float(total[0] / total[1]), float(low), float(high), len(known))
