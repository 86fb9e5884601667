"""The λ·t clock: a run groks when ∫ηλ dt comes to about the same value in every configuration."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grokscope.forecast.forecast import Forecast
from grokscope.forecast.prefix import Prefix
from grokscope.forecast.survival import LEFT, forecasts_from
from grokscope.shapes import Float

__all__ = ["ClockForecaster", "decay_clock"]


@dataclass(frozen=True)
class ClockForecaster:
    """T is log-normal on the clock ∫ηλ dt: its median and the deviation of its logarithm are the same for all runs."""

    median: float = 3.4
    """∫ηλ dt at which half of the runs have grokked."""
    deviation: float = 0.35
    """Standard deviation of its logarithm."""
    name: str = "λ·t clock"
    """What a table calls it."""
    tier: int = 0
    """λ and η are configuration."""

    def predict(self, prefixes: Sequence[Prefix], horizon: int) -> list[Forecast]:
        """P(T − now > s | T > now) = S(c + ηλs)/S(c), with S of the log-normal and c the clock now.

        >>> run = Prefix(np.array([0, 1000]), {}, {"weight_decay": 1.0, "learning_rate": 1e-3})
        >>> [found] = ClockForecaster().predict([run], 20_000)
        >>> found.probability > 0.99, 2000 < found.median < 3000
        (True, True)
        """
        return forecasts_from(prefixes, np.array([self._survival(run) for run in prefixes]), horizon, self.tier)

    def _survival(self, run: Prefix) -> Float[np.ndarray, " left"]:
        from scipy.special import log_ndtr  # imported where used: whoever only attaches a monitor does not wait for it

        clock = decay_clock(run)
        rate = run.value("learning_rate") * _decay_now(run)
        if not rate > 0:  # without decay, or where it is not known, the clock says nothing
            return np.ones(len(LEFT))
        logs = np.log(np.maximum(clock[-1] + rate * LEFT, 1e-12) / self.median) / self.deviation
        return np.exp(log_ndtr(-logs) - log_ndtr(-logs[0]))


def decay_clock(run: Prefix) -> Float[np.ndarray, " evaluations"]:
    """c(t) = ∫₀ᵗ ηλ dt at each evaluation, from λ as logged where it changes and as configured elsewhere.

    >>> run = Prefix(np.array([0, 1000, 2000]), {}, {"weight_decay": 2.0, "learning_rate": 1e-3})
    >>> decay_clock(run).tolist()
    [0.0, 2.0, 4.0]
    """
    logged = run.column("weight_decay")
    decay = np.where(np.isnan(logged), run.value("weight_decay"), logged)
    spans = np.diff(run.steps, prepend=0)
    before = np.concatenate([decay[:1], decay[:-1]])  # λ from one evaluation to the next
    return run.value("learning_rate") * np.cumsum(spans * before)


def _decay_now(run: Prefix) -> float:
    logged = run.column("weight_decay")[-1]
    return run.value("weight_decay") if np.isnan(logged) else float(logged)
