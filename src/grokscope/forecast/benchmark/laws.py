"""Timing laws, fitted to some runs and scored on others, against the noise between seeds.

A law says when a run groks from what is known at its start. It cannot do better than the floor: the error of the median
of the other seeds of the same cell.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grokscope.forecast.benchmark.scorer import Score, mean_over_cells, other_seed_medians
from grokscope.forecast.cases import Case
from grokscope.shapes import Float

__all__ = ["LAWS", "Law", "LawScore", "score_laws"]

Times = Callable[[Case], float]
FARTHEST = 1.0  # relative error that counts at most
RIDGE = 0.1


@dataclass(frozen=True)
class Law:
    """A law with its fit."""

    formula: str
    """T, the step of grokking, as a function of what is known at the start."""
    fit: Callable[[Sequence[Case]], Times]
    """From runs that grokked to a function that says when a run will; NaN where it cannot."""


@dataclass(frozen=True)
class LawScore:
    """How a law does on runs that it was not fitted to."""

    name: str
    """The law."""
    error: Score
    """Mean of |T̂ − T| / T, at most 1, with the interval over cells."""
    over_floor: Score
    """The same over the error of the median of the other seeds."""
    runs: int
    """Runs that it could be scored on."""


def _decay(case: Case) -> float:
    return case.run.value("weight_decay")


def _rate(case: Case) -> float:
    return case.run.value("weight_decay") * case.run.value("learning_rate")


def _fit_median(cases: Sequence[Case]) -> Times:
    middle = float(np.median([case.end for case in cases]))
    return lambda case: middle


def _fit_inverse(speed: Callable[[Case], float]) -> Callable[[Sequence[Case]], Times]:
    """T = C / speed, with log C the mean of log(T·speed)."""

    def fit(cases: Sequence[Case]) -> Times:
        logs = [np.log(case.end * speed(case)) for case in cases if speed(case) > 0]
        constant = float(np.exp(np.mean(logs))) if logs else float("nan")
        return lambda case: constant / speed(case) if speed(case) > 0 else float("nan")

    return fit


def _first_norm(case: Case) -> float:
    norms = case.run.column("norm")
    known = norms[~np.isnan(norms)]
    return float(known[0]) if len(known) else float("nan")


def _fit_passage(cases: Sequence[Case]) -> Times:
    """T = ln(‖W₀‖/W*) / (ηλ), with ln W* the median of ln‖W₀‖ − ηλT."""
    levels = [np.log(_first_norm(case)) - _rate(case) * case.end for case in cases]
    known = [level for level in levels if np.isfinite(level)]
    level = float(np.median(known)) if known else float("nan")

    def time(case: Case) -> float:
        left = np.log(_first_norm(case)) - level
        return float(left / _rate(case)) if left > 0 and _rate(case) > 0 else float("nan")

    return time


def _configured(case: Case) -> Float[np.ndarray, " four"]:
    classes, fraction = case.run.value("classes"), case.run.value("train_fraction")
    return np.array(
        [1.0, np.log(_rate(case)), np.log(case.run.value("train_rows") / (classes * np.log(classes))), np.log(fraction)]
    )


def _fit_loglinear(cases: Sequence[Case]) -> Times:
    """Log T = a + b·log ηλ + c·log(n/(p log p)) + d·log f, by least squares with a small ridge."""
    rows = np.stack([_configured(case) for case in cases])
    known = np.all(np.isfinite(rows), axis=1)
    rows, logs = rows[known], np.log([case.end for case in cases])[known]
    middle = rows[:, 1:].mean(axis=0)
    design = np.column_stack([np.ones(len(rows)), rows[:, 1:] - middle])
    penalty = RIDGE * len(rows) * np.diag([0.0, 1.0, 1.0, 1.0])
    found = np.linalg.solve(design.T @ design + penalty, design.T @ logs)
    return lambda case: float(np.exp(found[0] + (_configured(case)[1:] - middle) @ found[1:]))


def _fit_threshold(cases: Sequence[Case]) -> Times:
    """T is the first evaluation with ‖W‖ ≤ W*, with W* the median of ‖W‖ at grokking."""
    norms = [float(case.run.until(case.end).column("norm")[-1]) for case in cases]
    known = [norm for norm in norms if not np.isnan(norm)]
    level = float(np.median(known)) if known else float("nan")

    def time(case: Case) -> float:
        reached = np.flatnonzero(case.run.column("norm") <= level)
        return float(case.run.steps[reached[0]]) if len(reached) else float("nan")

    return time


LAWS: Mapping[str, Law] = {
    "median": Law("T = the median of all runs", _fit_median),
    "inverse": Law("T = C/λ", _fit_inverse(_decay)),
    "clock": Law("T = C/(ηλ)", _fit_inverse(_rate)),
    "first-passage": Law("T = ln(‖W₀‖/W*)/(ηλ)", _fit_passage),
    "log-linear": Law("log T = a + b log ηλ + c log(n/(p log p)) + d log f", _fit_loglinear),
    "threshold-norm": Law("T = the first step with ‖W‖ ≤ W* (reads the norm of the run itself)", _fit_threshold),
}
"""Name → law. The last is no forecast: it says when the norm passed, which is known only then."""


def score_laws(cases: Sequence[Case], fold: Callable[[Case], str]) -> list[LawScore]:
    """Each law, fitted to the other folds' runs that grokked, and scored on those of each fold.

    >>> score_laws([], lambda case: case.cell)[0].runs
    0
    """
    grokked = [case for case in cases if case.grokked is not None]
    floors = {
        case: min(abs(other - case.end) / case.end, FARTHEST) for case, other in other_seed_medians(grokked).items()
    }
    found = []
    for name, law in LAWS.items():
        errors: dict[str, list[tuple[float, float]]] = {}
        for one in sorted({fold(case) for case in grokked}):
            others = [case for case in grokked if fold(case) != one]
            time = law.fit(others) if others else None
            for case in grokked:
                if fold(case) == one and case in floors and time is not None:
                    guess = time(case)
                    error = FARTHEST if np.isnan(guess) else min(abs(guess - case.end) / case.end, FARTHEST)
                    errors.setdefault(case.cell, []).append((error, floors[case]))
        cells = [(sum(error for error, _ in pairs), float(len(pairs))) for pairs in errors.values()]
        over = [(sum(error for error, _ in pairs), sum(floor for _, floor in pairs)) for pairs in errors.values()]
        found.append(LawScore(name, mean_over_cells(cells), mean_over_cells(over), sum(map(len, errors.values()))))
    return found
