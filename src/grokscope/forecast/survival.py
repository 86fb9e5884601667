"""From the distribution of the grok step to forecasts: one place for all forecasters."""

from collections.abc import Sequence

import numpy as np

from grokscope.forecast.forecast import LEVELS, Forecast
from grokscope.forecast.prefix import Prefix
from grokscope.shapes import Float

__all__ = ["LEFT", "forecasts_from"]

LEFT = np.concatenate([[0.0], np.geomspace(25, 400_000, 113)])  # 113 points are 8.6 % apart
"""Steps left at which survival is computed: 0, then evenly in logarithms."""


def forecasts_from(
    prefixes: Sequence[Prefix],
    survival: Float[np.ndarray, "runs left"],
    horizon: int | Sequence[int],
    tier: int,
    outside: Sequence[tuple[str, ...]] | None = None,
) -> list[Forecast]:
    """Forecasts of runs of which P(T − now > s | T > now) is given at every s of `LEFT`; linear between them.

    `horizon` is one for all, or that of each run.

    >>> run = Prefix(np.array([0, 100]), {})
    >>> [found] = forecasts_from([run], np.where(LEFT[None] < 1000, 1 - LEFT[None] / 1000, 0.0), 500, tier=0)
    >>> round(found.probability, 2), round(found.median)
    (0.5, 500)
    """
    reasons = outside or [()] * len(prefixes)
    horizons = [horizon] * len(prefixes) if isinstance(horizon, int) else horizon
    found = []
    for run, above, why, ahead in zip(prefixes, survival, reasons, horizons, strict=True):
        if run.grokked is not None:
            found.append(Forecast(run.step, 1.0, ahead, dict.fromkeys(LEVELS, 0.0), tier, why, run.grokked))
            continue
        reached = np.maximum.accumulate(np.clip(1 - above, 0, 1))
        probability = float(np.interp(ahead, LEFT, reached))
        found.append(Forecast(run.step, probability, ahead, _quantiles(reached), tier, why))
    return found


def _quantiles(reached: Float[np.ndarray, " left"]) -> dict[float, float]:
    """Steps left at which each level is reached; infinite where it never is."""
    places = np.searchsorted(reached, LEVELS)
    found = {}
    for level, place in zip(LEVELS, places, strict=True):
        if place >= len(LEFT):
            found[level] = np.inf
        elif place == 0:
            found[level] = 0.0
        else:
            low, high = reached[place - 1], reached[place]
            found[level] = float(LEFT[place - 1] + (level - low) / (high - low) * (LEFT[place] - LEFT[place - 1]))
    return found
