"""How well a number is known: bootstrap over items or clusters, shares, correlation."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats

from grokscope.errors import InputError
from grokscope.shapes import Float
from grokscope.stats.numbers import Numbers, column, require_level, same_length

__all__ = ["Estimate", "bootstrap", "cluster_means", "clustered_bootstrap", "correlation", "share", "share_that"]

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


def bootstrap(
    values: Numbers,
    statistic: Callable[..., Any] = np.mean,
    *,
    seed: int,
    resamples: int = 100_000,
    level: float = 0.95,
) -> Estimate:
    """Percentile bootstrap of a statistic over the items. Paper: §5.1, config-level, B = 10⁵.

    The statistic takes `axis`, as numpy's do. The paper's intervals are percentile ones; scipy's default, BCa,
    gives others. A single item has no interval: the percentiles of its copies would claim certainty.

    >>> bootstrap([500, 500, 500], seed=0).high
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


def clustered_bootstrap(
    values: Numbers,
    clusters: Sequence[Hashable],
    statistic: Callable[..., Any] = np.mean,
    *,
    seed: int,
    resamples: int = 100_000,
    level: float = 0.95,
) -> Estimate:
    """Percentile bootstrap over clusters, after averaging within each. Paper: §5.1, over the five primes.

    Runs that share a prime are no independent evidence; every cluster counts once, however many runs it has.
    """
    means = cluster_means(values, clusters)
    return bootstrap(means, statistic, seed=seed, resamples=resamples, level=level)


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
    interval = scipy.stats.binomtest(successes, trials).proportion_ci(level, method="exact")
    return Estimate(successes / trials, float(interval.low), float(interval.high), trials, level)


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
