"""How a run's forecast has gone: at each of some evaluations so far, whether and when it was to grok."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from grokscope.errors import require
from grokscope.forecast.advice import Advice, stopping_advice
from grokscope.forecast.forecast import Forecast
from grokscope.forecast.load import forecast_to
from grokscope.forecast.prefix import Prefix

__all__ = ["Fan", "forecast_fan", "forecast_fans"]

POINTS = 24  # of a whole run
BAND = (0.1, 0.9)  # levels of the interval that should hold 80 %


@dataclass(frozen=True)
class Fan:
    """Forecasts of one run, each from what was known by then."""

    last: int
    """The step by which the probabilities say that it groks."""
    step: int
    """The present step."""
    forecasts: tuple[Forecast, ...]
    """In the order of their steps; the last is the present one, or of the evaluation at which it had grokked."""

    @property
    def now(self) -> Forecast:
        """The last of them."""
        return self.forecasts[-1]

    @property
    def advice(self) -> Advice:
        """Whether it pays to go on to the last step."""
        return stopping_advice(replace(self.now, step=self.step), self.last)

    def at_level(self, level: float) -> list[float]:
        """The step by which it groks with this probability, by each forecast; infinite where it never does."""
        return [one.step + one.quantiles[level] for one in self.forecasts]

    def to_dict(self) -> dict[str, Any]:
        """As a page has it; steps that never come are null."""
        low, middle, high = ([_finite(step) for step in self.at_level(level)] for level in (BAND[0], 0.5, BAND[1]))
        return {
            "last": self.last,
            "step": [one.step for one in self.forecasts],
            "probability": [round(one.probability, 4) for one in self.forecasts],
            "low": low,
            "middle": middle,
            "high": high,
            "outside": [*self.now.outside],
            "basis": self.now.basis,
            "sentence": self.now.sentence,
            "advice": self.advice.sentence if self.advice.stops else "",
        }


def forecast_fan(run: Prefix, last: int) -> Fan:
    """The fan of one run, for the probability of grokking by its last step.

    >>> log = {"validation_loss": 6 * np.exp(-np.arange(0, 3001, 100) / 1500), "train_accuracy": np.ones(31)}
    >>> run = Prefix(np.arange(0, 3001, 100), log, {"weight_decay": 1.0, "learning_rate": 1e-3})
    >>> found = forecast_fan(run, last=6000)
    >>> len(found.forecasts), found.now.step, found.now.horizon
    (12, 3000, 3000)
    """
    return forecast_fans([run], [last])[0]


def forecast_fans(runs: Sequence[Prefix], lasts: Sequence[int], known: Sequence[Fan | None] = ()) -> list[Fan]:
    """The fan of each run; all forecasts are made together.

    `known` are fans of the same runs when they were younger: of those, what is past is not made again.

    >>> run = Prefix(np.array([0, 1000, 2000]), {}, {"weight_decay": 1.0, "learning_rate": 1e-3})
    >>> [young] = forecast_fans([run.until(1000)], [4000])
    >>> [[one.step for one in fan.forecasts] for fan in forecast_fans([run], [4000], [young])]
    [[0, 1000, 2000]]
    """
    steps = [_fan_steps(run, last) for run, last in zip(runs, lasts, strict=True)]
    before = [{one.step: one for one in fan.forecasts} if fan else {} for fan in known or [None] * len(runs)]
    missing = [
        (place, step) for place, own in enumerate(steps) for step in own if step not in before[place] or step == own[-1]
    ]
    parts = [runs[place].until(step) for place, step in missing]
    made = forecast_to(parts, [max(lasts[place] - step, 1) for place, step in missing])
    for (place, step), one in zip(missing, made, strict=True):
        before[place][step] = one
    return [
        Fan(last, run.step, tuple(found[step] for step in own))
        for run, last, own, found in zip(runs, lasts, steps, before, strict=True)
    ]


def _fan_steps(run: Prefix, last: int) -> list[int]:
    """Evaluations next before even parts of the run, and the present one: those that are past stay as the run grows.

    They begin where the training set was learnt, since forecasters are fitted to runs that have, and end where it
    grokked.
    """
    require(last > 0, "the last step of a fan must be positive", last)
    end = run.step if run.grokked is None else run.grokked
    begin = run.memorized if _is_learning_known(run) else int(run.steps[0])
    if begin is None or begin > end:
        return [end]
    known = run.steps[(run.steps >= begin) & (run.steps <= end)]
    marks = np.arange(1, POINTS + 1) * last / POINTS
    places = np.searchsorted(known, marks[marks <= end], side="right") - 1
    return sorted({*known[places[places >= 0]].tolist(), end})


def _is_learning_known(run: Prefix) -> bool:
    return not np.all(np.isnan(run.column("train_accuracy")))


def _finite(step: float) -> int | None:
    return round(step) if isfinite(step) else None
