"""Where a run is heading: the probability that it groks by a horizon, and the steps left, from what was seen so far."""

from grokscope.forecast.advice import Advice, stopping_advice
from grokscope.forecast.clock import ClockForecaster, decay_clock
from grokscope.forecast.fan import Fan, forecast_fan, forecast_fans
from grokscope.forecast.forecast import LEVELS, TIERS, Forecast, Forecaster
from grokscope.forecast.load import doubts_of, forecast_runs, forecast_to, load_forecaster
from grokscope.forecast.prefix import CONFIGURATION, Prefix, run_configuration, run_prefix
from grokscope.forecast.signals import SIGNALS, signals_at

__all__ = [
    "CONFIGURATION",
    "LEVELS",
    "SIGNALS",
    "TIERS",
    "Advice",
    "ClockForecaster",
    "Fan",
    "Forecast",
    "Forecaster",
    "Prefix",
    "decay_clock",
    "doubts_of",
    "forecast_fan",
    "forecast_fans",
    "forecast_runs",
    "forecast_to",
    "load_forecaster",
    "run_configuration",
    "run_prefix",
    "signals_at",
    "stopping_advice",
]
