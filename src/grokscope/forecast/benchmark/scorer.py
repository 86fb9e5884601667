"""All scores of a forecaster on runs whose end is known.

Runs of a cell are cut at 10, 25, 50 and 75 % of its median; those that have grokked by then are left out. Where most
runs of a cell do not grok within their budget, the median over all cells stands for its own.

The step of such a cut tells a forecaster the median: who moved each guess to the nearest of the four multiples of it
would err less, knowing nothing. So cuts serve to compare runs of one cell alone. Runs of different cells are compared
at one step for all, and errors and probabilities are averaged over steps 200, 400, 800, …, the same for all runs.
Intervals are 95 % percentiles over 1,000 resamples of cells.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from secrets import SystemRandom

import numpy as np

from grokscope.errors import require
from grokscope.forecast.benchmark.alarms import score_alarms
from grokscope.forecast.benchmark.calibration import Calibration, calibration_of
from grokscope.forecast.benchmark.causal import is_same, predict_at
from grokscope.forecast.benchmark.cell_means import Score, Summed, mean_over_cells
from grokscope.forecast.benchmark.probabilities import brier, crps, inside_interval
from grokscope.forecast.benchmark.ranking import auroc, concordance, urgency
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
HORIZON = 2000
"""Steps ahead of the probabilities that are scored; the same for all runs, since it is shown to the forecaster."""
FALSE_ALARMS = (0.01, 0.05, 0.1)
FEWEST_PAIRS = 3  # comparable pairs of a cell
ALARM_STEPS = 50  # steps at which alarms are looked for, evenly; a run's alarm is as exact as these
FIRST = 200  # step at which errors and probabilities are scored
ASKED_AGAIN = 30  # questions of each fold
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


def score_forecaster(forecaster: Forecaster, cases: Sequence[Case]) -> Scores:
    """All scores of a forecaster as it is.

    >>> from grokscope.forecast.clock import ClockForecaster
    >>> score_forecaster(ClockForecaster(), []).runs
    0
    """
    return score_folds(lambda fitted_to: forecaster, cases, lambda case: "all", forecaster.name, forecaster.tier)


def score_folds(
    fit: Callable[[Sequence[Case]], Forecaster],
    cases: Sequence[Case],
    fold: Callable[[Case], str],
    name: str,
    tier: int,
) -> Scores:
    """All scores of a forecaster that is fitted to the runs of the other folds; with one fold, to none.

    >>> from grokscope.forecast.clock import ClockForecaster
    >>> score_folds(lambda others: ClockForecaster(), [], lambda case: case.cell, "clock", 0).runs
    0
    """
    folds = sorted({fold(case) for case in cases})
    medians = cell_medians(cases)
    cuts: dict[float, Pairs] = {share: [] for share in SHARES}
    common: dict[float, Pairs] = {share: [] for share in SHARES}
    timed: Pairs = []
    curves: dict[int, dict[int, float]] = {place: {} for place in range(len(cases))}
    for one in folds:
        inside = [(place, case) for place, case in enumerate(cases) if fold(case) == one]
        forecaster = fit([case for case in cases if fold(case) != one])
        members = [case for _, case in inside]
        for share in SHARES:
            own = {case: _cut_step(case, share, medians) for case in members}
            cuts[share] += _forecasts_at(forecaster, own)
            common[share] += _forecasts_at(forecaster, dict.fromkeys(members, _rounded(share * _usual(medians))))
        for step in common_steps(cases):
            timed += _forecasts_at(forecaster, dict.fromkeys(members, step))
        for place, step, probability in _alarm_curves(forecaster, inside):
            curves[place][step] = probability
        inside_fold = {*members}
        asked = [pair for share in SHARES for pair in (*cuts[share], *common[share]) if pair[0] in inside_fold]
        _ask_again(forecaster, asked)
    _require_same_levels(name, (one for found in (cuts, common) for pairs in found.values() for _, one in pairs))
    values: dict[str, Score] = {}
    for share in SHARES:
        ranked = _rank_scores(cuts[share], common[share])
        values |= {f"{name} at {share:.0%}": one for name, one in ranked.items()}
    values |= _probability_scores(timed, other_seed_medians(cases))
    values |= _alarm_scores(cases, curves, medians)
    return Scores(name, tier, values, len(cases), calibration_of(timed))


def _ask_again(forecaster: Forecaster, asked: Pairs) -> None:
    """Some questions again, in any order: who remembers what it was shown since answers otherwise."""
    chance = SystemRandom()
    for case, before in chance.sample(asked, min(ASKED_AGAIN, len(asked))):
        [now] = predict_at(forecaster, [case], before.step, before.horizon)
        rule = f"{forecaster.name} forecasts a run otherwise when it is asked again; it may remember nothing"
        require(is_same(now, before), rule)


def _require_same_levels(name: str, found: Iterable[Forecast]) -> None:
    """Who gives an interval for some runs alone would choose the runs that it is scored on."""
    levels = sorted({tuple(sorted(one.quantiles)) for one in found})
    require(len(levels) < 2, f"{name} must give quantiles at the same levels for every run", levels)


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
    return _rounded(share * (median if np.isfinite(median) else _usual(medians)))


def _rounded(step: float) -> int:
    return max(int(step) // 100 * 100, 100)


def _forecasts_at(forecaster: Forecaster, steps: Mapping[Case, int]) -> Pairs:
    """Forecasts of the runs that have not grokked or ended by their step; those of one step come in one batch."""
    found: Pairs = []
    for step in sorted(set(steps.values())):
        here = [case for case in steps if steps[case] == step and case.run.steps[0] <= step < case.end]
        found += zip(here, predict_at(forecaster, here, step, HORIZON) if here else [], strict=True)
    return found


def _alarm_curves(forecaster: Forecaster, inside: Sequence[tuple[int, Case]]) -> list[tuple[int, int, float]]:
    """(run, step, probability) at steps of a grid for as long as a run could be announced, or falsely so."""
    last = max((case.end for _, case in inside if case.grokked is not None), default=0)
    grid = np.unique(np.linspace(100, max(last, 100), ALARM_STEPS).astype(int) // 100 * 100)
    found = []
    for step in grid.tolist():
        here = [(place, case) for place, case in inside if case.run.steps[0] <= step < _watched(case)]
        if here:
            forecasts = predict_at(forecaster, [case for _, case in here], step, HORIZON)
            found += [(place, step, one.probability) for (place, _), one in zip(here, forecasts, strict=True)]
    return found


def _watched(case: Case) -> int:
    """How long a run is watched: until it groks, or for as long as an alarm is known to be false."""
    return case.end if case.grokked is not None else case.end - HORIZON


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
    cases: Sequence[Case], curves: Mapping[int, Mapping[int, float]], medians: Mapping[str, float]
) -> dict[str, Score]:
    shown = [curves[place] for place in range(len(cases))]
    is_negative = np.array([case.grokked is None and bool(shown[place]) for place, case in enumerate(cases)])
    found: dict[str, Score] = {}
    for level in FALSE_ALARMS:
        alarms = score_alarms(cases, shown, medians, level, is_negative)
        if alarms is None:
            continue
        by_cell: dict[str, list[tuple[float, float]]] = {}
        positives = [case for case in cases if case.grokked is not None]
        for case, covered, lead in zip(positives, alarms.covered, alarms.leads, strict=True):
            by_cell.setdefault(case.cell, []).append((float(covered), float(lead)))
        covered = [(sum(one for one, _ in runs), float(len(runs))) for runs in by_cell.values()]
        leads = [_mean(lead for _, lead in runs) for runs in by_cell.values()]
        found[f"coverage at {level:.0%}"] = mean_over_cells(covered)
        found[f"lead at {level:.0%}"] = mean_over_cells(leads)
    return found
