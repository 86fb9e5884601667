"""The forecaster that commands and pages use."""

from collections.abc import Sequence

from grokscope.forecast.clock import ClockForecaster
from grokscope.forecast.forecast import Forecast, Forecaster
from grokscope.forecast.prefix import Prefix

__all__ = ["forecast_runs", "load_forecaster"]


def load_forecaster(tier: int = 5) -> Forecaster:
    """The forecaster fitted for a tier: the best that reads no more than this.

    >>> load_forecaster(tier=0).tier
    0
    """
    return ClockForecaster()


def forecast_runs(prefixes: Sequence[Prefix], horizon: int) -> list[Forecast]:
    """A forecast of each run by the forecaster of the highest tier whose columns it has.

    >>> import numpy as np
    >>> run = Prefix(np.array([0, 1000]), {}, {"weight_decay": 1.0, "learning_rate": 1e-3})
    >>> [found] = forecast_runs([run], horizon=20_000)
    >>> found.probability > 0.9
    True
    """
    return list(load_forecaster().predict(prefixes, horizon))
