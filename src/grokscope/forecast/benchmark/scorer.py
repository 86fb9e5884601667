"""All scores of a forecaster on runs whose end is known.

Runs of a cell are cut at 10, 25, 50 and 75 % of its median; those that have grokked by then are left out. Where most
runs of a cell do not grok within their budget, the median over all cells stands for its own.

The step of such a cut tells a forecaster the median: who moved each guess to the nearest of the four multiples of it
would err less, knowing nothing. So cuts serve to compare runs of one cell alone. Runs of different cells are compared
at one step for all, and errors and probabilities are averaged over steps 200, 400, 800, …, the same for all runs.
Intervals are 95 % percentiles over 1,000 resamples of cells.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from grokscope.forecast.benchmark.alarms import FALSE_ALARMS, Curve, alarm_questions, alarms_of
from grokscope.forecast.benchmark.asking import HORIZON, Answers, Question, ask, due, regular_step
from grokscope.forecast.benchmark.calibration import Calibration, calibration_of
from grokscope.forecast.benchmark.cell_means import Score, Summed, mean_over_cells
from grokscope.forecast.benchmark.probabilities import brier, crps, inside_interval
from grokscope.forecast.benchmark.ranking import auroc, concordance, urgency
from grokscope.forecast.benchmark.thresholds import Thresholds, find_thresholds, fit_thresholds, other_thresholds
from grokscope.forecast.cases import Case, cell_medians
from grokscope.forecast.forecast import Forecast, Forecaster

__all__ = [
    "FALSE_ALARMS",
    "HORIZON",
    "SHARES",
    "Score",
    "Scores",
    "common_steps",
    "mean_over_cells",
    "other_seed_medians",
    "score_folds",
    "score_forecaster",
]

SHARES = (0.1, 0.25, 0.5, 0.75)
FEWEST_PAIRS = 3  # comparable pairs of a cell
FIRST = 200  # step at which errors and probabilities are scored
FARTHEST = 1.0  # relative error of a forecast that says never, and at most

Pairs = list[tuple[Case, Forecast]]


@dataclass(frozen=True)
class Scores:
    """One forecaster's row of the table."""

    name: str
    """What it is called."""
    tier: int
    """What it reads."""
    values: Mapping[str, Score]
    """Such as `concordance at 25 %`, `coverage at 5 %`, `error over floor at 50 %`."""
    runs: int
    """Runs that were scored."""
    calibration: Calibration | None = None
    """Whether its probabilities and intervals mean what they say."""
    alarms: Thresholds = field(default_factory=dict)
    """The thresholds that it has, or would have after these runs; none of what was fitted anew for each fold."""


def score_forecaster(forecaster: Forecaster, cases: Sequence[Case], alarms: Thresholds | None = None) -> Scores:
    """All scores of a forecaster as it is.

    Alarms are raised at these thresholds; if none are given, at those that it has. If it has none, the runs of each
    cell are scored at those of the other cells.

    >>> from grokscope.forecast.clock import ClockForecaster
    >>> score_forecaster(ClockForecaster(), []).runs
    0
    """
    answers = ask(forecaster, _questions(cases, cases))
    curves = _curves(cases, answers)
    own: Thresholds | None = alarms if alarms is not None else (getattr(forecaster, "alarms", None) or None)
    if own is None:
        thresholds, own = other_thresholds(cases, curves, lambda case: case.cell), find_thresholds(cases, curves)
    else:
        thresholds = dict.fromkeys(cases, own)
    return _scores(forecaster.name, forecaster.tier, cases, answers, thresholds, own)


def score_folds(
    fit: Callable[[Sequence[Case]], Forecaster],
    cases: Sequence[Case],
    fold: Callable[[Case], str],
    name: str,
    tier: int,
) -> Scores:
    """All scores of a forecaster whose parameters and thresholds are fitted to the runs of the other folds.

    >>> from grokscope.forecast.clock import ClockForecaster
    >>> score_folds(lambda others: ClockForecaster(), [], lambda case: case.cell, "clock", 0).runs
    0
    """
    answers: dict[Question, Forecast] = {}
    thresholds: dict[Case, Thresholds] = {}
    for one in sorted({fold(case) for case in cases}):
        inside, others = ([case for case in cases if (fold(case) == one) is is_in] for is_in in (True, False))
        answers |= ask(fit(others), _questions(inside, cases))
        thresholds |= dict.fromkeys(inside, fit_thresholds(fit, others))
    return _scores(name, tier, cases, answers, thresholds, {})


def _questions(inside: Sequence[Case], cases: Sequence[Case]) -> list[Question]:
    """All that is asked of some of the runs that are scored."""
    medians, steps = cell_medians(cases), common_steps(cases)
    steps += [regular_step(share * _usual(medians)) for share in SHARES]
    return [
        (case, step)
        for case in inside
        for step in (*steps, *(_cut_step(case, share, medians) for share in SHARES), *alarm_questions(case))
        if due(case, step)
    ]


def _scores(
    name: str,
    tier: int,
    cases: Sequence[Case],
    answers: Answers,
    thresholds: Mapping[Case, Thresholds],
    alarms: Thresholds,
) -> Scores:
    medians = cell_medians(cases)

    def pairs_at(steps: Mapping[Case, int]) -> Pairs:
        return [(case, answers[case, step]) for case, step in steps.items() if (case, step) in answers]

    values: dict[str, Score] = {}
    for share in SHARES:
        cut = pairs_at({case: _cut_step(case, share, medians) for case in cases})
        common = pairs_at(dict.fromkeys(cases, regular_step(share * _usual(medians))))
        values |= {f"{score} at {share:.0%}": one for score, one in _rank_scores(cut, common).items()}
    timed = [pair for step in common_steps(cases) for pair in pairs_at(dict.fromkeys(cases, step))]
    values |= _probability_scores(timed, other_seed_medians(cases))
    values |= _alarm_scores(cases, _curves(cases, answers), thresholds, medians)
    return Scores(name, tier, values, len(cases), calibration_of(timed), alarms)


def _curves(cases: Sequence[Case], answers: Answers) -> dict[Case, Curve]:
    return {case: {step: answers[case, step].probability for step in alarm_questions(case)} for case in cases}


def common_steps(cases: Sequence[Case]) -> list[int]:
    """200, 400, 800, … before the last end: where errors and probabilities of all runs are scored.

    >>> common_steps([])
    []
    """
    last = max((case.end for case in cases), default=0)
    return [step for power in range(40) if (step := FIRST << power) < last]


def _usual(medians: Mapping[str, float]) -> float:
    finite = [median for median in medians.values() if np.isfinite(median)]
    return float(np.median(finite)) if finite else 1000.0


def _cut_step(case: Case, share: float, medians: Mapping[str, float]) -> int:
    median = medians[case.cell]
    return regular_step(share * (median if np.isfinite(median) else _usual(medians)))


def _by_cell(found: Pairs) -> list[Pairs]:
    cells: dict[str, Pairs] = {}
    for case, forecast in found:
        cells.setdefault(case.cell, []).append((case, forecast))
    return [*cells.values()]


def _rank_scores(cut: Pairs, common: Pairs) -> dict[str, Score]:
    across, _ = _auroc(common)
    nothing = float("nan")
    return {
        "concordance": mean_over_cells([_concordance(pairs) for pairs in _by_cell(cut)]),
        "AUROC within": mean_over_cells([_weighted_auroc(pairs) for pairs in _by_cell(cut)]),
        "AUROC across": Score(across, nothing, nothing, len(_by_cell(common))),
    }


def _probability_scores(found: Pairs, others: Mapping[Case, float]) -> dict[str, Score]:
    cells = _by_cell(found)

    def mean(of_one: Callable[[Case, Forecast], float]) -> Score:
        return mean_over_cells([_mean(of_one(case, forecast) for case, forecast in pairs) for pairs in cells])

    error, floor = mean(_error), mean(lambda case, _: _floor(case, others))
    noise = floor.value or float("nan")
    return {
        "Brier": mean(lambda case, one: brier(one, case.end, case.grokked is not None, case.budget)),
        "CRPS": mean(lambda case, one: crps(one, case.end, case.grokked is not None)),
        "inside 80 %": mean(lambda case, one: inside_interval(one, case.end, case.grokked is not None)),
        "error": error,
        "error over floor": Score(error.value / noise, error.low / noise, error.high / noise, error.cells),
    }


def _concordance(pairs: Pairs) -> Summed:
    right, known = concordance([case for case, _ in pairs], [urgency(forecast) for _, forecast in pairs])
    return (right / known * len(pairs), float(len(pairs))) if known >= FEWEST_PAIRS else (0.0, 0.0)


def _auroc(pairs: Pairs) -> tuple[float, int]:
    """Of grokking within the horizon, among runs whose budget reaches it; and their number."""
    known = [(case, one) for case, one in pairs if one.step + one.horizon <= case.budget]
    came = [case.grokked is not None and case.end <= one.step + one.horizon for case, one in known]
    return auroc(np.array([one.probability for _, one in known]), np.array(came, dtype=bool)), len(known)


def _weighted_auroc(pairs: Pairs) -> Summed:
    found, runs = _auroc(pairs)
    return (0.0, 0.0) if np.isnan(found) else (found * runs, float(runs))


def _error(case: Case, forecast: Forecast) -> float:
    """|forecast − T| / T of a run that grokked, by the median of the forecast."""
    if case.grokked is None:
        return float("nan")
    return min(abs(forecast.step + forecast.median - case.end) / case.end, FARTHEST)


def _floor(case: Case, others: Mapping[Case, float]) -> float:
    """The same error of the median of the other seeds of the cell: the noise between seeds."""
    return min(abs(others[case] - case.end) / case.end, FARTHEST) if case in others else float("nan")


def other_seed_medians(cases: Sequence[Case]) -> dict[Case, float]:
    """The median step of grokking of the other runs of the same cell, for each run that grokked and has some.

    >>> other_seed_medians([])
    {}
    """
    cells: dict[str, list[Case]] = {}
    for case in cases:
        if case.grokked is not None:
            cells.setdefault(case.cell, []).append(case)
    found = {}
    for members in cells.values():
        for case in members:
            rest = [float(one.end) for one in members if one is not case]
            if rest:
                found[case] = float(np.median(rest))
    return found


def _mean(values: Iterable[float]) -> Summed:
    known = [value for value in values if not np.isnan(value)]
    return float(np.sum(known)), float(len(known))


def _alarm_scores(
    cases: Sequence[Case],
    curves: Mapping[Case, Curve],
    thresholds: Mapping[Case, Thresholds],
    medians: Mapping[str, float],
) -> dict[str, Score]:
    found: dict[str, Score] = {}
    for level in FALSE_ALARMS:
        known = [case for case in cases if level in thresholds[case]]
        alarms = alarms_of(known, curves, {case: thresholds[case][level] for case in known}, medians)
        positives, negatives = (
            [case for case in known if case.grokked is not None],
            [case for case in known if case.grokked is None and curves[case]],
        )
        found[f"coverage at {level:.0%}"] = _over_cells(positives, alarms.covered)
        found[f"lead at {level:.0%}"] = _over_cells(positives, alarms.leads)
        found[f"false alarms at {level:.0%}"] = _over_cells(negatives, alarms.false)
    return {name: score for name, score in found.items() if score.cells}


def _over_cells(cases: Sequence[Case], values: Iterable[float]) -> Score:
    by_cell: dict[str, list[float]] = {}
    for case, value in zip(cases, values, strict=True):
        by_cell.setdefault(case.cell, []).append(float(value))
    return mean_over_cells([_mean(own) for own in by_cell.values()])
