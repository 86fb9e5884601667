"""At which probability an alarm is raised: found on other runs than those that are scored.

The thresholds of a fitted forecaster are fitted with its parameters, to the same runs: each fifth of their cells is
forecast by parameters that were fitted to the others, and the thresholds are those of all these forecasts together.
Where a forecaster is not fitted, its thresholds for a cell are those of its forecasts of the other cells.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from grokscope.forecast.benchmark.alarms import FALSE_ALARMS, Curve, alarm_questions, find_threshold
from grokscope.forecast.benchmark.asking import HORIZON
from grokscope.forecast.benchmark.folds import fold_of
from grokscope.forecast.cases import Case
from grokscope.forecast.forecast import Forecaster
from grokscope.forecast.hazard import HazardForecaster
from grokscope.forecast.tiers import seen_at_tier

__all__ = ["Thresholds", "find_thresholds", "fit_thresholds", "other_thresholds"]

Thresholds = Mapping[float, float]
"""Share of false alarms → probability."""


def find_thresholds(cases: Sequence[Case], curves: Mapping[Case, Curve]) -> Thresholds:
    """Of the probabilities of these runs; none without runs that grok and runs that do not.

    >>> find_thresholds([], {})
    {}
    """
    found = {level: find_threshold(cases, curves, level) for level in FALSE_ALARMS}
    return {level: threshold for level, threshold in found.items() if threshold is not None}


def fit_thresholds(fit: Callable[[Sequence[Case]], Forecaster], cases: Sequence[Case]) -> Thresholds:
    """Those of a forecaster that is fitted to these runs; none where they are of one fold or of one kind.

    >>> fit_thresholds(lambda cases: HazardForecaster.from_json(""), [])
    {}
    """
    folds: dict[str, list[Case]] = {}
    for case in cases:
        folds.setdefault(fold_of(case), []).append(case)
    if len(folds) < 2 or len({case.grokked is None for case in cases}) < 2:
        return {}
    curves: dict[Case, Curve] = {}
    for one, members in folds.items():
        others = [case for case in cases if fold_of(case) != one]
        if any(case.grokked is not None for case in others):  # else nothing can be fitted to them
            forecaster = fit(others)
            curves |= {case: _curve(forecaster, case) for case in members}
    return find_thresholds([*curves], curves)


def other_thresholds(
    cases: Sequence[Case], curves: Mapping[Case, Curve], fold: Callable[[Case], str]
) -> dict[Case, Thresholds]:
    """For each run those of the runs of the other folds.

    >>> other_thresholds([], {}, fold_of)
    {}
    """
    by_fold = {
        one: find_thresholds([case for case in cases if fold(case) != one], curves) for one in {*map(fold, cases)}
    }
    return {case: by_fold[fold(case)] for case in cases}


def _curve(forecaster: Forecaster, case: Case) -> Curve:
    """Probabilities of our own forecasters: they are known to read each prefix alone, so nothing is copied."""
    steps = alarm_questions(case)
    if not steps:
        return {}
    if isinstance(forecaster, HazardForecaster):
        signals = np.stack([case.signals(step, forecaster.signals) for step in steps])
        return dict(zip(steps, forecaster.probabilities(signals, HORIZON).tolist(), strict=True))
    found = forecaster.predict([seen_at_tier(case.run.until(step), forecaster.tier) for step in steps], HORIZON)
    return {step: one.probability for step, one in zip(steps, found, strict=True)}
