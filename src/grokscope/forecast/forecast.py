"""What a forecaster says of a run, and what a forecaster is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Protocol, runtime_checkable

from grokscope.errors import require
from grokscope.forecast.prefix import Prefix

__all__ = ["LEVELS", "TIERS", "Forecast", "Forecaster"]

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Of the quantiles that our forecasters give."""

TIERS = (
    "configuration",
    "training losses and accuracies",
    "weights",
    "activations on training rows",
    "activations on all inputs, labels unseen",
    "validation labels",
)
"""What a forecaster reads: tier 0, 1, …; each tier includes those before it."""


@dataclass(frozen=True)
class Forecast:
    """Where a run is heading, from what was seen up to `step`."""

    step: int
    """The last evaluation that was seen."""
    probability: float
    """That it groks by `step + horizon`; 1 of a run that has."""
    horizon: int
    """Steps from now that the probability is for."""
    quantiles: Mapping[float, float]
    """Level → steps left until it groks; infinite where it is at least that likely never to."""
    tier: int
    """What was read, as an index into `TIERS`."""
    outside: tuple[str, ...] = ()
    """Each reason why the run is unlike all that the forecaster was fitted to; empty if it is not."""
    grokked: int | None = None
    """The step at which it had grokked, if it has."""
    basis: str = ""
    """What was read, and which runs the forecaster was fitted to; empty where a forecaster does not say."""

    def __post_init__(self) -> None:
        require(0 <= self.probability <= 1, "a probability must lie in [0, 1]", self.probability)
        require(0 <= self.tier < len(TIERS), f"a tier must lie in 0 … {len(TIERS) - 1}", self.tier)
        levels = sorted(self.quantiles)
        values = [self.quantiles[level] for level in levels]
        require(all(0 < level < 1 for level in levels), "quantiles have levels in (0, 1)", levels)
        require(all(value >= 0 for value in values), "steps left must be at least 0", values)
        require(values == sorted(values), "quantiles must not fall with their level", values)

    @property
    def is_inside(self) -> bool:
        """Whether the run is like those that the forecaster was fitted to."""
        return not self.outside

    @property
    def median(self) -> float:
        """Steps left that it is as likely to exceed as not; infinite if it is less likely than not ever to grok."""
        return float(self.quantiles.get(0.5, inf))

    @property
    def sentence(self) -> str:
        """The forecast as a person reads it.

        >>> print(Forecast(1000, 0.9, 5000, {0.1: 800.0, 0.5: 2000.0, 0.9: 9000.0}, tier=1).sentence)
        groks within 5,000 more steps with probability 90 %; half of such runs by step 3,000 (80 %: 1,800 to 10,000)
        """
        if self.grokked is not None:
            return f"grokked at step {self.grokked:,}"
        text = f"groks within {self.horizon:,} more steps with probability {_percent(self.probability)}"
        if isfinite(self.median):
            low, high = self.quantiles.get(0.1), self.quantiles.get(0.9)
            band = "" if low is None or high is None else f" (80 %: {self._at(low)} to {self._at(high)})"
            text += f"; half of such runs by step {self._at(self.median)}{band}"
        if self.outside:
            text += f"; this may not hold for it: {'; '.join(self.outside)}"
        return text

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: steps left that are infinite are null.

        >>> Forecast(1000, 0.2, 5000, {0.5: inf}, tier=1).to_dict()["steps_left"]
        {'0.5': None}
        """
        left = {f"{level:g}": value if isfinite(value) else None for level, value in self.quantiles.items()}
        return {
            "step": self.step,
            "grokked": self.grokked,
            "probability": self.probability,
            "horizon": self.horizon,
            "steps_left": left,
            "tier": self.tier,
            "outside": [*self.outside],
            "basis": self.basis,
        }

    def _at(self, left: float) -> str:
        return f"{round(self.step + left):,}" if isfinite(left) else "never"


@runtime_checkable
class Forecaster(Protocol):
    """Anything that forecasts runs from what was seen so far."""

    @property
    def name(self) -> str:
        """What a table calls it."""

    @property
    def tier(self) -> int:
        """The highest tier it reads."""

    def predict(self, prefixes: Sequence[Prefix], horizon: int, /) -> Sequence[Forecast]:
        """A forecast of each run for the next `horizon` steps.

        Each is made from its own run alone: what else is in the batch, and what was asked before, changes nothing. A
        scorer gives runs cut at the same evaluation; elsewhere they may be of any age.
        """


def _percent(share: float) -> str:
    """A share in words that never claim certainty."""
    return "below 1 %" if share < 0.01 else "above 99 %" if share > 0.99 else f"{share:.0%}".replace("%", " %")
