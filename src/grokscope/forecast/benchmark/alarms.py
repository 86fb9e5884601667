"""Alarms: how many runs are announced in time, at a share of false alarms, with equal time to be wrong.

An alarm is raised at the first of three evaluations in a row at which the probability of grokking within the horizon
reaches a threshold. A run that does not grok is watched for as long as runs that do: its chance of a false alarm is the
share of positive runs that grokked no sooner than it raised one. Without that, longer runs have more false alarms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grokscope.forecast.cases import Case
from grokscope.shapes import Float

__all__ = ["IN_A_ROW", "Alarms", "alarm_steps", "needed_lead", "score_alarms"]

IN_A_ROW = 3


@dataclass(frozen=True)
class Alarms:
    """What one threshold does."""

    threshold: float
    """Of the probability."""
    false: float
    """Share of the negative runs that raise one, at matched exposure."""
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


def alarm_steps(curves: Sequence[Mapping[int, float]], threshold: float) -> Float[np.ndarray, " runs"]:
    """The first step of each run at which probabilities, by step, were high three times in a row; infinite if never.

    >>> alarm_steps([{100: 0.9, 200: 0.1, 300: 0.9, 400: 0.8, 500: 0.7}], 0.5)
    array([500.])
    """
    found = np.full(len(curves), np.inf)
    for place, curve in enumerate(curves):
        row = 0
        for step, value in curve.items():
            row = row + 1 if value >= threshold else 0
            if row == IN_A_ROW:
                found[place] = step
                break
    return found


def score_alarms(
    cases: Sequence[Case],
    curves: Sequence[Mapping[int, float]],
    medians: Mapping[str, float],
    level: float,
    is_negative: np.ndarray,
) -> Alarms | None:
    """The lowest threshold with at most this share of false alarms, and what it announces; None without negatives.

    >>> from grokscope.forecast.cases import usable_cases
    >>> score_alarms([], [], {}, 0.05, np.zeros(0, bool)) is None
    True
    """
    positives = [place for place, case in enumerate(cases) if case.grokked is not None]
    negatives = [place for place, negative in enumerate(is_negative) if negative]
    if not positives or not negatives:
        return None
    ends = np.array([cases[place].end for place in positives], dtype=float)

    def false_share(threshold: float) -> float:
        raised = alarm_steps([curves[place] for place in negatives], threshold)
        return float(np.mean(ends[None] >= raised[:, None]))

    reached = [value for place in negatives for value in curves[place].values()]
    candidates = np.unique(np.concatenate([np.quantile(reached, np.linspace(0, 1, 101)) + 1e-9, [1.0 + 1e-9]]))
    threshold = next(one for one in candidates if false_share(one) <= level)
    raised = alarm_steps([curves[place] for place in positives], threshold)
    leads = np.where(raised < ends, ends - raised, np.nan)
    needed = np.array([needed_lead(medians[cases[place].cell]) for place in positives])
    return Alarms(float(threshold), false_share(threshold), (leads >= needed).astype(float), leads)
