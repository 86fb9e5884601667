"""Alarms: how many runs are announced in time, at a share of false alarms, with equal time to be wrong.

An alarm is raised at the third of three questions in a row at which the probability of grokking within the horizon
reaches a threshold. A run that does not grok is watched for as long as runs that do: its chance of a false alarm is the
share of positive runs that grokked no sooner than it raised one. Without that, longer runs have more false alarms.

The threshold is found on other runs than those that are scored (`thresholds`); so it is scored as well how many alarms
are false with it. Questions are asked at the same steps of all runs, whatever their length, or three in a row would be
another rule for other runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count, takewhile

import numpy as np

from grokscope.forecast.benchmark.asking import HORIZON, regular_step
from grokscope.forecast.cases import Case
from grokscope.shapes import Float

__all__ = [
    "FALSE_ALARMS",
    "IN_A_ROW",
    "Alarms",
    "Curve",
    "alarm_questions",
    "alarm_step",
    "alarms_of",
    "find_threshold",
    "needed_lead",
]

IN_A_ROW = 3
FALSE_ALARMS = (0.01, 0.05, 0.1)
"""Shares of false alarms that thresholds are found for."""
LAST = 10**6  # steps of a run for which an alarm is looked for
LATER = takewhile(lambda step: step < LAST, (regular_step(2000 * 1.05**power) for power in count()))
GRID = (*range(100, 2000, 100), *dict.fromkeys(LATER))
"""Steps at which alarms are looked for: every 100 up to step 2,000, then 5 % apart."""

Curve = Mapping[int, float]
"""Step → probability."""


@dataclass(frozen=True)
class Alarms:
    """What thresholds do, one for each run."""

    false: Float[np.ndarray, " negatives"]
    """Of each run that did not grok: its chance of a false alarm at matched exposure."""
    covered: Float[np.ndarray, " positives"]
    """Of each run that grokked: 1 if it was announced with the lead that is needed."""
    leads: Float[np.ndarray, " positives"]
    """Of each: steps from the alarm to grokking; NaN without one."""


def needed_lead(median: float) -> float:
    """Steps by which an alarm must come before grokking: 1,000, or a quarter of the cell's median if that is small.

    >>> needed_lead(4000.0), needed_lead(1000.0)
    (1000.0, 250.0)
    """
    return 1000.0 if median >= 2500 else 0.25 * median


def alarm_questions(case: Case) -> list[int]:
    """The steps at which a run is watched: until it groks, or for as long as an alarm is known to be false.

    >>> from grokscope.forecast.cases import usable_cases
    >>> from grokscope.specs import RunSpec
    >>> log = {"step": [0, 300, 2400], "train_accuracy": [1.0] * 3, "validation_accuracy": [0.0, 0.0, 0.99]}
    >>> alarm_questions(usable_cases([(RunSpec(), log)])[0])[-4:]
    [2000, 2100, 2200, 2300]
    """
    until = case.end if case.grokked is not None else case.end - HORIZON
    return [step for step in GRID if case.run.steps[0] <= step < until]


def alarm_step(curve: Curve, threshold: float) -> float:
    """The first step at which probabilities were high three times in a row; infinite if never.

    >>> alarm_step({100: 0.9, 200: 0.1, 300: 0.9, 400: 0.8, 500: 0.7}, 0.5)
    500.0
    """
    row = 0
    for step, value in curve.items():
        row = row + 1 if value >= threshold else 0
        if row == IN_A_ROW:
            return float(step)
    return np.inf


def find_threshold(cases: Sequence[Case], curves: Mapping[Case, Curve], level: float) -> float | None:
    """The lowest threshold with at most this share of false alarms; None without runs of both kinds.

    >>> find_threshold([], {}, 0.05) is None
    True
    """
    ends, negatives = _ends(cases), _negatives(cases, curves)
    if not len(ends) or not negatives:
        return None
    reached = sorted({value for case in negatives for value in curves[case].values()})
    low, high = (
        -1,
        len(reached) - 1,
    )  # a threshold just above reached[high] is high enough, and above that of low is not
    while high - low > 1:
        middle = (low + high) // 2
        false = np.mean([_chance(ends, alarm_step(curves[case], _above(reached[middle]))) for case in negatives])
        low, high = (low, middle) if false <= level else (middle, high)
    return _above(reached[high])


def alarms_of(
    cases: Sequence[Case], curves: Mapping[Case, Curve], thresholds: Mapping[Case, float], medians: Mapping[str, float]
) -> Alarms:
    """What each run's threshold announces, rightly and falsely; `medians` are those of the cells.

    >>> alarms_of([], {}, {}, {}).covered.tolist()
    []
    """
    raised = {case: alarm_step(curves[case], thresholds[case]) for case in cases}
    ends, positives = _ends(cases), [case for case in cases if case.grokked is not None]
    leads = np.array([case.end - raised[case] if raised[case] < case.end else np.nan for case in positives])
    needed = np.array([needed_lead(medians[case.cell]) for case in positives])
    false = np.array([_chance(ends, raised[case]) for case in _negatives(cases, curves)])
    return Alarms(false, (leads >= needed).astype(float), leads)


def _ends(cases: Sequence[Case]) -> Float[np.ndarray, " positives"]:
    return np.array([case.end for case in cases if case.grokked is not None], dtype=float)


def _negatives(cases: Sequence[Case], curves: Mapping[Case, Curve]) -> list[Case]:
    return [case for case in cases if case.grokked is None and curves[case]]


def _chance(ends: Float[np.ndarray, " positives"], raised: float) -> float:
    return float(np.mean(ends >= raised)) if len(ends) else float("nan")


def _above(value: float) -> float:
    return value + 1e-9
