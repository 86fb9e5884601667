"""What intervals and adjusted p-values must be, by other formulas than the package's."""

import numpy as np
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


def t_interval(values: list[float]) -> tuple[float, float]:
    """Of a mean, by scipy's test."""
    found = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95)
    return float(found.low), float(found.high)


def same_clustered_share(cell: Cell, hits: list[int], size: int) -> None:
    """The cell is this share over clusters of one size, with the exact interval of the effective number of things."""
    trials, clusters = size * len(hits), len(hits)
    p = sum(hits) / trials
    variance = float(np.var(np.array(hits) / size, ddof=1)) / clusters
    effective = clusters if p in (0, 1) else min(trials, p * (1 - p) / variance)
    low = 0.0 if p == 0 else scipy.stats.beta.ppf(0.025, p * effective, effective * (1 - p) + 1)
    high = 1.0 if p == 1 else scipy.stats.beta.ppf(0.975, p * effective + 1, effective * (1 - p))
    assert cell.ours == pytest.approx(p)
    assert cell.interval == pytest.approx((low, high), abs=1e-6)
    assert cell.n == clusters


def same_share(cell: Cell, hits: int, trials: int) -> None:
    """The cell is this share with its exact interval."""
    assert cell.ours == pytest.approx(hits / trials)
    assert cell.interval == pytest.approx(clopper_pearson(hits, trials), abs=1e-6)
    assert cell.n == trials
