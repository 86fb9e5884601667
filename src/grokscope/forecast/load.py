"""The forecasters that commands and pages use: one for each tier, fitted to the stored development runs."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from grokscope.errors import require
from grokscope.forecast.forecast import TIERS, Forecast
from grokscope.forecast.hazard import HazardForecaster
from grokscope.forecast.prefix import Prefix

__all__ = ["FITTED", "available_tier", "doubts_of", "fitted_tiers", "forecast_runs", "forecast_to", "load_forecaster"]

FITTED = Path(__file__).with_name("fitted")
"""Parameters with their provenance; `python -m grokscope.forecast.refitting` writes them."""
TIER_FILES = {tier: f"tier-{tier}.json" for tier in range(len(TIERS))}
"""Of which there are those whose signals the runs fitted to have."""
NEEDED = {  # of each tier, the columns of which one must have been measured
    5: ("validation_loss", "validation_accuracy"),
    4: ("output_entropy",),
    3: ("train_share",),
    2: ("norm",),
    1: ("train_loss", "train_accuracy"),
}


def load_forecaster(tier: int = 5) -> HazardForecaster:
    """The forecaster fitted for a tier: the best that reads no more than this.

    >>> load_forecaster(tier=2).tier
    2
    """
    require(0 <= tier < len(TIERS), f"a tier must lie in 0 … {len(TIERS) - 1}", tier)
    return _fitted(max(known for known in fitted_tiers() if known <= tier))


@lru_cache(maxsize=1)
def fitted_tiers() -> tuple[int, ...]:
    """The tiers that have a forecaster.

    >>> {0, 1, 2, 5} <= {*fitted_tiers()}
    True
    """
    return tuple(tier for tier, name in TIER_FILES.items() if (FITTED / name).is_file())


def forecast_runs(prefixes: Sequence[Prefix], horizon: int) -> list[Forecast]:
    """A forecast of each run by the forecaster of the highest tier whose columns it has.

    >>> run = Prefix(np.array([0, 1000]), {}, {"weight_decay": 1.0, "learning_rate": 1e-3})
    >>> [found] = forecast_runs([run], horizon=20_000)
    >>> found.tier, 0.5 < found.probability < 1
    (0, True)
    """
    return forecast_to(prefixes, [horizon] * len(prefixes))


def forecast_to(prefixes: Sequence[Prefix], horizons: Sequence[int]) -> list[Forecast]:
    """The same for a horizon of each run's own, such as the rest of its budget.

    >>> run = Prefix(np.array([0, 1000]), {}, {"weight_decay": 1.0, "learning_rate": 1e-3})
    >>> [one.horizon for one in forecast_to([run, run], [500, 20_000])]
    [500, 20000]
    """
    tiers = [available_tier(run) for run in prefixes]
    found: dict[int, Forecast] = {}
    for tier in set(tiers):
        places = [place for place, one in enumerate(tiers) if one == tier]
        own = [horizons[place] for place in places]
        forecasts = load_forecaster(tier).predict([prefixes[place] for place in places], own)
        found |= dict(zip(places, forecasts, strict=True))
    return [found[place] for place in range(len(prefixes))]


def available_tier(run: Prefix) -> int:
    """The highest tier that a run's columns allow.

    >>> available_tier(Prefix(np.array([0]), {"norm": np.array([90.0])}))
    2
    """
    for tier, names in NEEDED.items():
        if any(not np.all(np.isnan(run.column(name))) for name in names):
            return tier
    return 0


def doubts_of(run: Prefix) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a run's forecaster reads and the run lacks, and in what the run is known to differ from those fitted to.

    Where either is not empty, a number for a run of which nothing else is known would only be a guess.

    >>> doubts_of(Prefix(np.array([0, 1000]), {}, {"weight_decay": 30.0}))[0]
    ('η',)
    """
    forecaster = load_forecaster(available_tier(run))
    return forecaster.missing(run), forecaster.unlike(run)


@lru_cache(maxsize=8)
def _fitted(tier: int) -> HazardForecaster:
    return HazardForecaster.load(FITTED / TIER_FILES[tier])
