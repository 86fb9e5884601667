"""Whether it pays to train a run on, and what stopping it would save."""

from dataclasses import dataclass

from grokscope.errors import plural
from grokscope.forecast.forecast import Forecast

__all__ = ["Advice", "stopping_advice"]

UNLIKELY = 0.05
SURE_AFTER = 2000  # steps after grokking for which a run must be seen to be called stable


@dataclass(frozen=True)
class Advice:
    """What a forecast suggests; whoever trains decides."""

    stops: bool
    """Whether it suggests to stop."""
    saves: int
    """Steps that stopping now would save."""
    sentence: str
    """Both, as a person reads them."""


def stopping_advice(forecast: Forecast, budget: int) -> Advice:
    """Advice from the forecast of grokking by the end of the budget.

    A run is to be stopped if that is less likely than 5 %, or once it has grokked and was seen for 2,000 steps more.
    Where the forecaster was fitted to no such runs, no advice to stop is given.

    >>> stopping_advice(Forecast(6000, 0.004, 9000, {0.5: float("inf")}, tier=5), 15_000).sentence
    'stop: grokking by step 15,000 has a probability below 1 %; saves 9,000 steps'
    """
    left = max(budget - forecast.step, 0)
    if left == 0:
        return Advice(False, 0, "ended")
    if forecast.grokked is not None:
        until = forecast.grokked + SURE_AFTER
        if forecast.step >= until:
            return Advice(True, left, f"stop: it grokked at step {forecast.grokked:,}; saves {plural(left, 'step')}")
        return Advice(False, 0, f"go on to step {until:,}, to see whether it stays grokked")
    if forecast.outside:
        return Advice(False, 0, "go on: unlike the runs that the forecaster was fitted to")
    if forecast.probability < UNLIKELY:
        share = "below 1 %" if forecast.probability < 0.01 else f"of {100 * forecast.probability:.0f} %"
        reason = f"grokking by step {budget:,} has a probability {share}"
        return Advice(True, left, f"stop: {reason}; saves {plural(left, 'step')}")
    return Advice(False, 0, "go on")
