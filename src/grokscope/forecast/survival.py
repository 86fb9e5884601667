"""From the distribution of the grok step to forecasts: one place for all forecasters."""

from collections.abc import Sequence

import numpy as np

from grokscope.forecast.forecast import LEVELS, Forecast
from grokscope.forecast.prefix import Prefix
from grokscope.shapes import Float

__all__ = ["LEFT", "forecast_from", "forecasts_from", "reached_at"]

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
        found.append(forecast_from(above, run.step, ahead, tier, why))
    return found


def forecast_from(
    above: Float[np.ndarray, " left"], step: int, horizon: int, tier: int, outside: tuple[str, ...] = ()
) -> Forecast:
    """The forecast of a run that has not grokked.

    >>> forecast_from(np.where(LEFT < 1000, 1 - LEFT / 1000, 0.0), 100, 500, tier=0).step
    100
    """
    reached = reached_at(above)
    return Forecast(step, float(np.interp(horizon, LEFT, reached)), horizon, _quantiles(reached), tier, outside)


def reached_at(above: Float[np.ndarray, "*runs left"]) -> Float[np.ndarray, "*runs left"]:
    """P(T − now ≤ s) from P(T − now > s), made to rise from 0 to 1 where rounding has it otherwise.

    >>> reached_at(np.array([1.0, 0.4, 0.5])).tolist()
    [0.0, 0.6, 0.6]
    """
    return np.maximum.accumulate(np.clip(1 - above, 0, 1), axis=-1)


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
