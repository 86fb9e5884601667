"""What intervals and adjusted p-values must be, by other formulas than the package's."""

import pytest
import scipy.stats

from grokscope.view.table import Cell


def clopper_pearson(hits: int, trials: int) -> tuple[float, float]:
    """By beta quantiles."""
    low = 0.0 if hits == 0 else scipy.stats.beta.ppf(0.025, hits, trials - hits + 1)
    high = 1.0 if hits == trials else scipy.stats.beta.ppf(0.975, hits + 1, trials - hits)
    return float(low), float(high)


def holm(p_values: list[float]) -> list[float]:
    """By the definition: the largest of the smaller ones' products."""
    ranked = sorted(p_values)
    return [max(min(1.0, (len(p_values) - ranked.index(q)) * q) for q in ranked if q <= p) for p in p_values]


def same_share(cell: Cell, hits: int, trials: int) -> None:
    """The cell is this share with its exact interval."""
    assert cell.ours == pytest.approx(hits / trials)
    assert cell.interval == pytest.approx(clopper_pearson(hits, trials), abs=1e-6)
    assert cell.n == trials
