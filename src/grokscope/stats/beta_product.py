"""What is known of survival and of its median: the beta product, exact without censoring.

S at the j-th event has the distribution of a product of Beta(nᵢ, 1) over the events i ≤ j with nᵢ runs at risk. Without
censoring that is Beta(n − j + 1, j), which gives Clopper and Pearson's interval for S, and order statistics for the
median; with it, a beta distribution of the same two moments stands for the product (Fay, Brittain and Proschan, 2013).
"""

from math import inf

import numpy as np
from scipy.special import betainc, betaincinv

from grokscope.shapes import Bool, Float

__all__ = ["median_interval", "survival_band"]

_Beta = tuple[Float[np.ndarray, " events"], Float[np.ndarray, " events"]]


def median_interval(
    when: Float[np.ndarray, " items"], happened: Bool[np.ndarray, " items"], level: float
) -> tuple[float, float]:
    """Where the median lies; −∞ or ∞ where too few events bound it on that side.

    The chance that the j-th event comes before the median is known. Between the two events at which it passes the
    level, the end is interpolated as Hettmansperger and Sheather (1986) do: an order statistic alone covers too much.
    """
    times, at_risk = _events(when, happened)
    if not len(times):
        return -inf, inf
    first, second = _beta(at_risk)
    least = (1 + level) / 2
    # The largest time that the median is beyond, and from the other side the smallest that it is not.
    after = betainc(first, second, 0.5)
    low = _interpolated(times, 1 - after, first, second, least)
    high = _interpolated(-times[::-1], after[::-1], second[::-1], first[::-1], least)
    return low, -high


def survival_band(
    at: Float[np.ndarray, " times"],
    when: Float[np.ndarray, " items"],
    happened: Bool[np.ndarray, " items"],
    level: float,
) -> tuple[Float[np.ndarray, " times"], Float[np.ndarray, " times"]]:
    """The pointwise interval of S from each of these times on: it covers at least as often as its level.

    Its upper end knows the events until then, its lower end counts one more, of the runs that are left.
    """
    times, at_risk = _events(when, happened)
    past, left = np.searchsorted(times, at, side="right"), (when[:, None] > at).sum(axis=0)
    low, high = np.zeros(len(at)), np.ones(len(at))
    for place, (events, more) in enumerate(zip(past, left, strict=True)):
        if events:
            first, second = _beta(at_risk[:events])
            high[place] = betaincinv(first[-1], second[-1], (1 + level) / 2)
        if more:
            first, second = _beta(np.append(at_risk[:events], more))
            low[place] = betaincinv(first[-1], second[-1], (1 - level) / 2)
    return low, high


def _events(
    when: Float[np.ndarray, " items"], happened: Bool[np.ndarray, " items"]
) -> tuple[Float[np.ndarray, " events"], Float[np.ndarray, " events"]]:
    """The time of each event, one by one where several come at once, and the runs at risk just before it."""
    order = np.lexsort((~happened, when))
    at_risk = np.arange(len(when), 0, -1, dtype=np.float64)
    return when[order][happened[order]], at_risk[happened[order]]


def _beta(at_risk: Float[np.ndarray, " events"]) -> _Beta:
    """The two parameters of S's distribution at each event."""
    mean, square = np.cumprod(at_risk / (at_risk + 1)), np.cumprod(at_risk / (at_risk + 2))
    total = (mean - square) / (square - mean**2)
    return mean * total, (1 - mean) * total


def _interpolated(
    times: Float[np.ndarray, " events"],
    chances: Float[np.ndarray, " events"],
    first: Float[np.ndarray, " events"],
    second: Float[np.ndarray, " events"],
    least: float,
) -> float:
    """Where along rising times the falling chance passes `least`; −∞ where even the first has a smaller one."""
    beyond = np.flatnonzero(chances >= least)
    if not len(beyond):
        return -inf
    last = int(beyond[-1])
    if last + 1 == len(times):
        return float(times[last])
    part = (chances[last] - least) / (chances[last] - chances[last + 1])
    rest, rank = first[last] - 1, second[last]
    weight = rest * part / (rank + (rest - rank) * part)
    return float(times[last] + weight * (times[last + 1] - times[last]))
