"""How well a number is known: means over items or clusters, shares, correlation, and the paper's bootstrap.

>>> round(correlation([1, 2, 3, 4], [1, 2, 3, 5]).value, 3)
0.983

>>> share_that(lead > 0 for lead in (500, -200, 100, 300)).value
0.75
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special
import scipy.stats

from grokscope.errors import InputError
from grokscope.shapes import Float
from grokscope.stats.numbers import Numbers, column, flags, require_level, same_length

__all__ = [
    "Estimate",
    "cluster_means",
    "clustered_share",
    "correlation",
    "estimate_mean",
    "jackknife",
    "percentile_bootstrap",
    "share",
    "share_that",
]

NUMBERS_AT_ONCE = 2**23  # 64 MiB of doubles


@dataclass(frozen=True)
class Estimate:
    """A number and its interval."""

    value: float
    """The estimated number."""
    low: float
    """Lower end; NaN where the data give none."""
    high: float
    """Upper end; NaN where the data give none."""
    items: int
    """How many independent things it rests on."""
    level: float = 0.95
    """Coverage the interval aims at."""


def estimate_mean(values: Numbers, clusters: Sequence[Hashable] | None = None, level: float = 0.95) -> Estimate:
    """The mean with its t interval, mean ± t(n − 1)·s/√n; with clusters, over the means of the clusters.

    Runs that share a prime are no independent evidence; every cluster counts once, however many runs it has. A
    bootstrap's percentiles are too narrow for few items (`benchmarks/coverage.py`). A single item has no interval.

    >>> estimate_mean([1, 2, 3]).high.__round__(2), estimate_mean([1, 3, 5], ["a", "a", "b"]).value
    (4.48, 3.5)
    """
    found = column(values) if clusters is None else cluster_means(values, clusters)
    require_level(level)
    if len(found) == 0:
        raise InputError("a mean needs at least one value, got none")
    mean = float(found.mean())
    if len(found) == 1:
        return Estimate(mean, np.nan, np.nan, 1, level)
    half = float(scipy.stats.t.ppf((1 + level) / 2, len(found) - 1) * found.std(ddof=1) / np.sqrt(len(found)))
    return Estimate(mean, mean - half, mean + half, len(found), level)


def jackknife(
    value: float,
    left_out: Numbers,
    groups: Sequence[Hashable] | None = None,
    *,
    is_log: bool = False,
    level: float = 0.95,
) -> Estimate:
    """A statistic with a t interval from its values with one cluster left out, clusters independent within groups.

    se² = Σ over groups of (g − 1)/g · Σ(value − left out)², with Σ(g − 1) degrees of freedom: the estimator CV3 of
    MacKinnon, Nielsen and Webb (2023), which covers with few clusters. Of a positive statistic the interval is that of
    its logarithm (`is_log`). No interval where a group has one cluster, or where the others do not determine the value.

    >>> jackknife(2.0, [2.5, 2.0, 1.5]).high.__round__(2)
    4.48
    """
    found = np.asarray(left_out, dtype=np.float64)
    names: list[Hashable] = [0] * len(found) if groups is None else [*groups]
    same_length(left_out=found, groups=names)
    require_level(level)
    sizes = np.array([names.count(name) for name in names])
    fewest = int(sizes.min(initial=len(found)))
    with np.errstate(divide="ignore", invalid="ignore"):
        centre, others = (np.log([value]), np.log(found)) if is_log else (np.array([value]), found)
    variance = float((((sizes - 1) / sizes) * (others - centre) ** 2).sum())
    if fewest < 2 or not np.isfinite(variance):
        return Estimate(value, np.nan, np.nan, fewest, level)
    half = float(scipy.stats.t.ppf((1 + level) / 2, len(found) - len(set(names))) * np.sqrt(variance))
    with np.errstate(over="ignore"):
        low, high = np.exp(centre[0] + np.array([-half, half])) if is_log else (value - half, value + half)
    return Estimate(value, float(low), float(high), fewest, level)


def percentile_bootstrap(
    values: Numbers,
    statistic: Callable[..., Any] = np.mean,
    *,
    seed: int,
    resamples: int = 100_000,
    level: float = 0.95,
) -> Estimate:
    """The paper's interval: percentiles of a statistic over resampled items, or `cluster_means`. Paper: §5.1, B = 10⁵.

    Kept to give back what the paper reports: of 5, 8 and 16 items it covers about 83, 88 and 92 % at nominal 95 %.
    What grokscope itself reports is `estimate_mean`. The statistic takes `axis`, as numpy's do. A single item has no
    interval: the percentiles of its copies would claim certainty.

    >>> percentile_bootstrap([500, 500, 500], seed=0).high
    500.0
    """
    found = column(values)
    require_level(level)
    if len(found) == 0:
        raise InputError("a bootstrap needs at least one value, got none")
    value = float(statistic(found, axis=0))
    if len(found) == 1:
        return Estimate(value, np.nan, np.nan, 1, level)
    interval = scipy.stats.bootstrap(
        (found,),
        statistic,
        n_resamples=resamples,
        batch=max(1, NUMBERS_AT_ONCE // len(found)),
        vectorized=True,
        confidence_level=level,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Estimate(value, float(interval.low), float(interval.high), len(found), level)


def cluster_means(values: Numbers, clusters: Sequence[Hashable]) -> Float[np.ndarray, " clusters"]:
    """The mean of each cluster's values, in the order in which clusters first appear.

    >>> cluster_means([1, 2, 9], ["a", "a", "b"])
    array([1.5, 9. ])
    """
    found = column(values)
    same_length(values=found, clusters=clusters)
    members: dict[Hashable, list[float]] = {}
    for value, cluster in zip(found, clusters, strict=True):
        members.setdefault(cluster, []).append(float(value))
    return np.array([np.mean(group) for group in members.values()], dtype=np.float64)


def share(successes: int, trials: int, level: float = 0.95) -> Estimate:
    """A binomial share with its Clopper–Pearson interval, which never covers less than its level.

    Without trials nothing is known: NaN in [0, 1].

    >>> share(0, 3).high.__round__(3)
    0.708
    """
    require_level(level)
    if not 0 <= successes <= trials:
        raise InputError(f"successes must lie in [0, {trials}], got {successes}")
    if trials == 0:
        return Estimate(np.nan, 0.0, 1.0, 0, level)
    return Estimate(successes / trials, *_clopper_pearson(successes, trials, level), trials, level)


def clustered_share(hits: Iterable[bool], clusters: Sequence[Hashable], level: float = 0.95) -> Estimate | None:
    """The share of things of which something holds, where those of one cluster may share their fate; None without any.

    Clopper–Pearson for the effective number of things, p(1 − p)/v and at most n, with v the variance of the share over
    its g clusters (after Korn and Graubard, 1998). Where all or none holds v tells nothing, and that number is g.

    >>> clustered_share([True, True, False, False], ["a", "a", "b", "b"]).low < share(2, 4).low
    True
    """
    found = flags([*hits])
    same_length(hits=found, clusters=clusters)
    require_level(level)
    size, groups = len(found), len(set(clusters))
    if size == 0:
        return None
    value = float(found.mean())
    if groups == 1 and size > 1:
        return Estimate(value, 0.0, 1.0, 1, level)
    places = {cluster: place for place, cluster in enumerate(dict.fromkeys(clusters))}
    sums = np.bincount([places[cluster] for cluster in clusters], found - value)
    variance = groups / max(groups - 1, 1) * float((sums**2).sum()) / size**2
    if groups == size or value in (0, 1):
        effective = float(groups)
    else:
        effective = value * (1 - value) / max(variance, value * (1 - value) / size)
    return Estimate(value, *_clopper_pearson(value * effective, effective, level), groups, level)


def _clopper_pearson(successes: float | int, trials: float | int, level: float) -> tuple[float, float]:
    """Ends of the interval; neither number need be whole."""
    tail, misses = (1 - level) / 2, trials - successes
    low = scipy.special.betaincinv(successes, misses + 1, tail) if successes > 0 else 0.0
    high = scipy.special.betaincinv(successes + 1, misses, 1 - tail) if misses > 0 else 1.0
    return float(low), float(high)


def share_that(hits: Iterable[bool]) -> Estimate | None:
    """The share of things of which something holds; None without any."""
    found = list(hits)
    return share(sum(found), len(found)) if found else None


def correlation(x: Numbers, y: Numbers, level: float = 0.95) -> Estimate:
    """Pearson's correlation with Fisher's interval tanh(artanh r ± z/√(n − 3)). Paper: §5.1, FSD and accuracy.

    The interval is for independent pairs: evaluations of one run are not, and know less than it claims. NaN where
    a column does not vary.
    """
    first, second = column(x, "x"), column(y, "y")
    same_length(x=first, y=second)
    require_level(level)
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Estimate(np.nan, np.nan, np.nan, len(first), level)
    found = scipy.stats.pearsonr(first, second)
    if len(first) < 4:  # no degree of freedom is left for an interval
        return Estimate(float(found.statistic), -1.0, 1.0, len(first), level)
    interval = found.confidence_interval(level)
    return Estimate(float(found.statistic), float(interval.low), float(interval.high), len(first), level)
