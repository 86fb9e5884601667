"""From a number of each run to a number of a design: means, counts and medians over drawn runs, many designs at once.

>>> values = {"add_mod97": {"lead": np.array([[500.0, -200.0, np.nan], [100.0, 300.0, 200.0]])}}
>>> reduce_all({"mean lead": mean("lead"), "defined": count("lead")}, values)["mean lead"]
array([150., 200.])
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.stats

__all__ = [
    "Reduction",
    "Values",
    "count",
    "greatest",
    "least",
    "mean",
    "mean_high",
    "mean_low",
    "median",
    "rank_correlation",
    "reduce_all",
    "share_beyond_chance",
    "spread",
    "strata_low",
    "strata_mean",
    "total",
]

Array = Any  # of numpy; its last axis is the drawn units, those before it are designs
Values = Mapping[str, Mapping[str, Array]]
"""Stratum → column → one number of each drawn unit; NaN where it is not defined."""
How = Literal[
    "total", "count", "mean", "median", "least", "greatest", "spread", "low", "high",
    "strata", "strata low", "correlation", "beyond chance",
]  # fmt: skip


@dataclass(frozen=True)
class Reduction:
    """One number of the drawn units; units of which it is not defined are left out, and without any it is NaN."""

    how: How
    """Which."""
    column: str
    """Of which number of each unit."""
    strata: tuple[str, ...] = ()
    """The units of these strata; of all if empty."""
    other: str = ""
    """The second column of a relation between two."""

    def describe(self) -> str:
        """As a person reads it.

        >>> mean("lead", "add_mod97").describe()
        'mean of lead (add_mod97)'
        """
        place = f" ({', '.join(self.strata)})" if self.strata else ""
        return f"{WORDS[self.how]} {self.column}{f' and {self.other}' if self.other else ''}{place}"


WORDS: dict[How, str] = {
    "total": "total of",
    "count": "number of units with",
    "mean": "mean of",
    "median": "median of",
    "least": "least",
    "greatest": "greatest",
    "spread": "standard deviation of",
    "low": "lower end of the 95 % t interval of the mean",
    "high": "upper end of the 95 % t interval of the mean",
    "strata": "mean over strata of the mean",
    "strata low": "lower end of the 95 % t interval, over strata, of the mean",
    "correlation": "mean over strata of Spearman's correlation of",
    "beyond chance": "how much more often than in pairs at random, over strata, the first is the smaller of",
}


def total(column: str, *strata: str) -> Reduction:
    """The sum; of a yes-or-no column, how many units have it.

    >>> total("positive").describe()
    'total of positive'
    """
    return Reduction("total", column, strata)


def count(column: str, *strata: str) -> Reduction:
    """Of how many units it is defined.

    >>> count("lead").describe()
    'number of units with lead'
    """
    return Reduction("count", column, strata)


def mean(column: str, *strata: str) -> Reduction:
    """The mean; of a yes-or-no column, the share.

    >>> mean("positive").describe()
    'mean of positive'
    """
    return Reduction("mean", column, strata)


def median(column: str, *strata: str) -> Reduction:
    """The median; a step that was never reached is infinite and later than all others.

    >>> median("grok step").describe()
    'median of grok step'
    """
    return Reduction("median", column, strata)


def least(column: str, *strata: str) -> Reduction:
    """The least.

    >>> least("lead").describe()
    'least lead'
    """
    return Reduction("least", column, strata)


def greatest(column: str, *strata: str) -> Reduction:
    """The greatest.

    >>> greatest("lead").describe()
    'greatest lead'
    """
    return Reduction("greatest", column, strata)


def spread(column: str, *strata: str) -> Reduction:
    """The population standard deviation, as the paper's tables give it.

    >>> spread("Δt").describe()
    'standard deviation of Δt'
    """
    return Reduction("spread", column, strata)


def mean_low(column: str, *strata: str) -> Reduction:
    """The lower end of the mean's 95 % t interval.

    >>> mean_low("lead").describe()
    'lower end of the 95 % t interval of the mean lead'
    """
    return Reduction("low", column, strata)


def mean_high(column: str, *strata: str) -> Reduction:
    """The upper end of the mean's 95 % t interval.

    >>> mean_high("lead").describe()
    'upper end of the 95 % t interval of the mean lead'
    """
    return Reduction("high", column, strata)


def strata_mean(column: str, *strata: str) -> Reduction:
    """The mean over strata of each stratum's mean: every prime counts once, however many runs it has.

    >>> strata_mean("lead").describe()
    'mean over strata of the mean lead'
    """
    return Reduction("strata", column, strata)


def strata_low(column: str, *strata: str) -> Reduction:
    """The lower end of the 95 % t interval of that mean, whose items are the strata.

    >>> strata_low("lead").describe()
    'lower end of the 95 % t interval, over strata, of the mean lead'
    """
    return Reduction("strata low", column, strata)


def rank_correlation(column: str, other: str, *strata: str) -> Reduction:
    """Spearman's correlation of two columns, within each stratum and then averaged.

    >>> values = {"a": {"x": np.array([1.0, 2.0, 3.0]), "y": np.array([1.0, 5.0, 9.0])}}
    >>> float(reduce_all({"r": rank_correlation("x", "y")}, values)["r"])
    1.0
    """
    return Reduction("correlation", column, strata, other)


def share_beyond_chance(first: str, second: str, *strata: str) -> Reduction:
    """The share of units in which the first step comes before the second, less that over pairs of different units.

    Steps that both tend to come in one order come so in any pairing; only what exceeds it says that one step knows of
    the other.

    >>> values = {"a": {"x": np.array([1.0, 3.0]), "y": np.array([2.0, 4.0])}}
    >>> float(reduce_all({"excess": share_beyond_chance("x", "y")}, values)["excess"])
    0.5
    """
    return Reduction("beyond chance", first, strata, second)


def reduce_all(parts: Mapping[str, Reduction], values: Values) -> dict[str, Array]:
    """Each part by name, and `n`, the number of drawn units."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found = {name: _reduce(part, values) for name, part in parts.items()}
    sizes = [next(iter(columns.values())).shape[-1] for columns in values.values() if columns]
    return found | {"n": np.float64(sum(sizes))}


def _reduce(part: Reduction, values: Values) -> Array:
    chosen = [columns[part.column] for name, columns in values.items() if _is_meant(part, name, columns)]
    if not chosen:
        return np.float64(np.nan)
    if part.how in ("strata", "strata low"):
        means = np.stack([_mean(one) for one in chosen], axis=-1)
        return _mean(means) if part.how == "strata" else _end(means, -1)
    if part.other:
        others = [columns[part.other] for name, columns in values.items() if _is_meant(part, name, columns)]
        relate = _correlation if part.how == "correlation" else _beyond_chance
        return _mean(np.stack([relate(*pair) for pair in zip(chosen, others, strict=True)], axis=-1))
    return _REDUCE[part.how](np.concatenate(chosen, axis=-1))  # type: ignore[no-untyped-call]


def _is_meant(part: Reduction, stratum: str, columns: Mapping[str, Array]) -> bool:
    return part.column in columns and (not part.strata or stratum in part.strata)


def _known(x: Array) -> Array:
    return (~np.isnan(x)).sum(axis=-1)


def _sum(x: Array) -> Array:
    return np.where(np.isnan(x), 0.0, x).sum(axis=-1)


def _mean(x: Array) -> Array:
    return _sum(x) / np.where(_known(x) > 0, _known(x), np.nan)


def _median(x: Array) -> Array:
    ordered, n = np.sort(x, axis=-1), _known(x)  # NaN comes last
    low, high = np.maximum((n - 1) // 2, 0), np.minimum(n // 2, x.shape[-1] - 1)
    ends = [np.take_along_axis(ordered, place[..., None], axis=-1)[..., 0] for place in (low, high)]
    middle = np.where(ends[0] == ends[1], ends[0], (ends[0] + ends[1]) / 2)
    return np.where(n > 0, middle, np.nan)


def _least(x: Array) -> Array:
    return np.where(_known(x) > 0, np.where(np.isnan(x), np.inf, x).min(axis=-1), np.nan)


def _spread(x: Array, lost: int = 0) -> Array:
    away = (x - _mean(x)[..., None]) ** 2
    return np.sqrt(_sum(away) / np.where(_known(x) > lost, _known(x) - lost, np.nan))


def _end(x: Array, sign: int) -> Array:
    """Mean ± t(n − 1) s/√n."""
    n = _known(x)
    quantiles = scipy.stats.t.ppf(0.975, np.arange(x.shape[-1] + 1) - 1)
    return _mean(x) + sign * quantiles[n] * _spread(x, 1) / np.sqrt(np.maximum(n, 1))


def _ranks(x: Array) -> Array:
    """The rank of each among the known ones, ties sharing their mean rank."""
    return np.where(np.isnan(x), np.nan, scipy.stats.rankdata(np.where(np.isnan(x), np.inf, x), axis=-1))


def _correlation(x: Array, y: Array) -> Array:
    """Pearson's correlation of the ranks of units of which both are known."""
    unknown = np.isnan(x) | np.isnan(y)
    ranks = [_ranks(np.where(unknown, np.nan, one)) for one in (x, y)]
    a, b = (one - _mean(one)[..., None] for one in ranks)
    scale = np.sqrt(_sum(a * a) * _sum(b * b))
    return _sum(a * b) / np.where(scale > 0, scale, np.nan)


def _beyond_chance(x: Array, y: Array) -> Array:
    unknown = np.isnan(x) | np.isnan(y)
    first = (x[..., None, :] < y[..., :, None]) & ~unknown[..., None, :] & ~unknown[..., :, None]
    own, n = np.diagonal(first, axis1=-2, axis2=-1).sum(axis=-1), (~unknown).sum(axis=-1)
    pairs = np.where(n > 1, n * (n - 1), np.nan)
    return own / np.where(n > 0, n, np.nan) - (first.sum(axis=(-2, -1)) - own) / pairs


_REDUCE = {
    "total": _sum,
    "count": _known,
    "mean": _mean,
    "median": _median,
    "least": _least,
    "greatest": lambda x: -_least(-x),
    "spread": _spread,
    "low": lambda x: _end(x, -1),
    "high": lambda x: _end(x, 1),
}
