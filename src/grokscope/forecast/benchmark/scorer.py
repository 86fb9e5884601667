"""All scores of a forecaster on runs whose end is known.

Runs of a cell are cut at 10, 25, 50 and 75 % of its median; those that have grokked by then are left out. Where most
runs of a cell do not grok within their budget, the median over all cells stands for its own. Intervals are 95 %
percentiles over 1,000 resamples of cells.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grokscope.forecast.benchmark.alarms import score_alarms
from grokscope.forecast.benchmark.causal import predict_at
from grokscope.forecast.benchmark.probabilities import brier, crps, inside_interval
from grokscope.forecast.benchmark.ranking import auroc, concordance, urgency
from grokscope.forecast.cases import Case, cell_medians
from grokscope.forecast.forecast import Forecast, Forecaster
from grokscope.shapes import Float

__all__ = ["FALSE_ALARMS", "HORIZON", "SHARES", "Score", "Scores", "score_folds", "score_forecaster"]

SHARES = (0.1, 0.25, 0.5, 0.75)
HORIZON = 2000
"""Steps ahead of the probabilities that are scored; the same for all runs, since it is shown to the forecaster."""
FALSE_ALARMS = (0.01, 0.05, 0.1)
FEWEST_PAIRS = 3  # comparable pairs of a cell
ALARM_STEPS = 50  # steps at which alarms are looked for, evenly; a run's alarm is as exact as these
RESAMPLES = 1000
FARTHEST = 1.0  # relative error of a forecast that says never, and at most

Summed = tuple[float, float]  # of a cell: sum, weight


@dataclass(frozen=True)
class Score:
    """A mean over cells, with its interval."""

    value: float
    """NaN where nothing could be compared."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end."""
    cells: int
    """Cells behind it."""

    def __str__(self) -> str:
        return "–" if np.isnan(self.value) else f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


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
    """All scores of a forecaster that is fitted to the runs of the other folds; with one fold, to none."""
    folds = sorted({fold(case) for case in cases})
    medians = cell_medians(cases)
    cuts: dict[float, list[tuple[Case, Forecast]]] = {share: [] for share in SHARES}
    curves: dict[int, dict[int, float]] = {place: {} for place in range(len(cases))}
    for one in folds:
        inside = [(place, case) for place, case in enumerate(cases) if fold(case) == one]
        forecaster = fit([case for case in cases if fold(case) != one])
        for share, found in _forecasts_at_shares(forecaster, [case for _, case in inside], medians).items():
            cuts[share] += found
        for place, step, probability in _alarm_curves(forecaster, inside):
            curves[place][step] = probability
    values: dict[str, Score] = {}
    for share, found in cuts.items():
        values |= {f"{name} at {share:.0%}": one for name, one in _cut_scores(found, medians, cases).items()}
    values |= _alarm_scores(cases, curves, medians)
    return Scores(name, tier, values, len(cases))


def _cut_step(case: Case, share: float, medians: Mapping[str, float], usual: float) -> int:
    median = medians[case.cell]
    return int(share * (median if np.isfinite(median) else usual)) // 100 * 100


def _forecasts_at_shares(
    forecaster: Forecaster, cases: Sequence[Case], medians: Mapping[str, float]
) -> dict[float, list[tuple[Case, Forecast]]]:
    finite = [median for median in medians.values() if np.isfinite(median)]
    usual = float(np.median(finite)) if finite else 1000.0
    found: dict[float, list[tuple[Case, Forecast]]] = {}
    for share in SHARES:
        steps = {case: _cut_step(case, share, medians, usual) for case in cases}
        found[share] = []
        for step in sorted(set(steps.values())):
            here = [case for case in cases if steps[case] == step and case.run.steps[0] <= step < case.end]
            found[share] += zip(here, predict_at(forecaster, here, step, HORIZON) if here else [], strict=True)
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


def _cut_scores(
    found: Sequence[tuple[Case, Forecast]], medians: Mapping[str, float], cases: Sequence[Case]
) -> dict[str, Score]:
    cells: dict[str, list[tuple[Case, Forecast]]] = {}
    for case, forecast in found:
        cells.setdefault(case.cell, []).append((case, forecast))
    others = _other_seeds(cases)

    def over_cells(of_cell: Callable[[list[tuple[Case, Forecast]]], Summed]) -> Score:
        return _resampled([of_cell(pairs) for pairs in cells.values()])

    came = np.array([case.grokked is not None for case, _ in found])
    probabilities = np.array([forecast.probability for _, forecast in found])
    error, floor = over_cells(lambda pairs: _errors(pairs)), over_cells(lambda pairs: _floor(pairs, others))
    ratio = error.value / floor.value if floor.value else float("nan")
    return {
        "concordance": over_cells(_concordance),
        "AUROC within": over_cells(_auroc),
        "AUROC across": Score(auroc(probabilities, came) if len(found) else float("nan"), *[float("nan")] * 2, len(cells)),
        "Brier": over_cells(lambda pairs: _mean(brier(f, c.end, c.grokked is not None, c.budget) for c, f in pairs)),
        "CRPS": over_cells(lambda pairs: _mean(crps(f, c.end, c.grokked is not None) for c, f in pairs)),
        "inside 80 %": over_cells(lambda pairs: _mean(inside_interval(f, c.end, c.grokked is not None) for c, f in pairs)),
        "error": error,
        "error over floor": Score(ratio, error.low / floor.value, error.high / floor.value, error.cells),
    }


def _concordance(pairs: list[tuple[Case, Forecast]]) -> Summed:
    right, known = concordance([case for case, _ in pairs], [urgency(forecast) for _, forecast in pairs])
    return (right / known * len(pairs), float(len(pairs))) if known >= FEWEST_PAIRS else (0.0, 0.0)


def _auroc(pairs: list[tuple[Case, Forecast]]) -> Summed:
    scores = np.array([forecast.probability for _, forecast in pairs])
    found = auroc(scores, np.array([case.grokked is not None for case, _ in pairs], dtype=bool))
    return (0.0, 0.0) if np.isnan(found) else (found * len(pairs), float(len(pairs)))


def _errors(pairs: list[tuple[Case, Forecast]]) -> Summed:
    """|forecast − T| / T of runs that grokked, by the median of the forecast."""
    return _mean(min(abs(f.step + f.median - c.end) / c.end, FARTHEST) for c, f in pairs if c.grokked is not None)


def _floor(pairs: list[tuple[Case, Forecast]], others: Mapping[Case, float]) -> Summed:
    """The same error of the median of the other seeds of the cell: the noise between seeds."""
    return _mean(min(abs(others[c] - c.end) / c.end, FARTHEST) for c, _ in pairs if c in others)


def _other_seeds(cases: Sequence[Case]) -> dict[Case, float]:
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
        found[f"coverage at {level:.0%}"] = _resampled(covered)
        found[f"lead at {level:.0%}"] = _resampled(leads)
    return found


def _resampled(cells: Sequence[Summed]) -> Score:
    """Σ sums / Σ weights, with the percentiles of that over resamples of cells."""
    known = np.array([cell for cell in cells if cell[1] > 0]).reshape(-1, 2)
    if not len(known):
        return Score(float("nan"), float("nan"), float("nan"), 0)
    rng = np.random.default_rng(0)
    drawn: Float[np.ndarray, "resamples cells two"] = known[rng.integers(len(known), size=(RESAMPLES, len(known)))]
    sums = drawn.sum(axis=1)
    low, high = np.quantile(sums[:, 0] / sums[:, 1], [0.025, 0.975])
    total = known.sum(axis=0)
    return Score(float(total[0] / total[1]), float(low), float(high), len(known))
