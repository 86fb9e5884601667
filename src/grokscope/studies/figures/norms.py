"""The figure of the threshold norm: along each fork, at grokking, and how fast it falls."""

from collections.abc import Mapping, Sequence
from math import isnan

import numpy as np

from grokscope.law import ThresholdNorm, norm_decay, threshold_norm
from grokscope.runs.records import RunRecord
from grokscope.stats import bootstrap
from grokscope.studies.synchronization.experiments import DECAYS
from grokscope.studies.evidence import Evidence
from grokscope.studies.figures.captions import DECAY_SHARE, THRESHOLD_NORM
from grokscope.studies.figures.reading import curve, ends_of, quartiles, shown_until
from grokscope.studies.tables.reading import SEED
from grokscope.view.charts.figure import Ends, Figure, Panel, Series
from grokscope.view.table import Cell, estimated, not_trained

__all__ = ["fig_threshold"]

TASK, DRAW = "add_mod97", 42
LEARNING_RATE = 1e-3
SCALE = 1000  # rates are shown per thousand steps
Forks = Mapping[float, Mapping[str, RunRecord]]


def fig_threshold(evidence: Evidence) -> Figure:
    """Figure 7: the norm along forks of p = 97, its value at grokking, and its rate against ηλ."""
    study = evidence.study("crossprime")
    forks = {decay: _forks(study, decay) for decay in DECAYS}
    own = {decay: forks[decay].get(_name(DRAW, decay)) for decay in DECAYS}
    found = _threshold(forks)
    n = sum(len(runs) for runs in forks.values())
    panels = (_along(forks, own, found), _at_grokking(forks, own, found), _rates(forks, own))
    seeds = f"seed {DRAW} and all {_count(forks)} seeds, {n} forks" if _count(forks) > 1 else f"seed {DRAW}, {n} forks"
    title = "Norm at grokking, forks of addition mod 97: " + (seeds if n else "no runs")
    if found:
        title += f"; τ = {found.mean.value:.1f}, variation {found.variation:.2f} across λ"
    notes = (
        "τ is the mean over λ of the mean norm at the look at which a fork had grokked; its band resamples λ.",
        "A rate is the slope of log ‖W‖ from the fork to grokking, by least squares; without grokking there is none.",
        "Of many seeds: medians with quartiles in (a), means with 95 % percentile-bootstrap intervals in (b) and (c).",
        *not_trained({_name(DRAW, decay) for decay in DECAYS} - study.keys()),
    )
    return Figure("fig-threshold", "fig:normthresh", title, panels, notes, 3, (2.6, 2.2))


def _name(draw: int, decay: float) -> str:
    return f"{TASK}_d{draw}_x{decay:g}"


def _forks(study: Mapping[str, RunRecord], decay: float) -> dict[str, RunRecord]:
    return {
        name: record
        for name, record in study.items()
        if record.spec.fork and record.spec.task == TASK and record.spec.training.weight_decay == decay
    }


def _norms(records: Mapping[str, RunRecord]) -> list[float]:
    """Norms at the grok look of the forks that grokked after it."""
    events = [record.timeline for record in records.values()]
    return [run.norm_at_grok for run in events if run.grokked not in (None, run.first) and not isnan(run.norm_at_grok)]


def _threshold(forks: Forks) -> ThresholdNorm | None:
    cells = [float(np.mean(norms)) for records in forks.values() if (norms := _norms(records))]
    return threshold_norm(cells, seed=SEED, resamples=10_000) if cells else None


def _lines(found: ThresholdNorm | None, ends: Ends) -> tuple[Series, ...]:
    """τ, ours with its interval, and the paper's."""
    paper = Series(f"τ = {THRESHOLD_NORM}, paper", "line", "theory", "paper", ends, (THRESHOLD_NORM,) * 2)
    if found is None:
        return (paper,)
    value, low, high = found.mean.value, found.mean.low, found.mean.high
    interval = ((low, low), (high, high)) if low == low else ((), ())
    ours = Series(f"τ = {value:.1f}, ours", "line", "grokked", "fit", ends, (value, value), *interval)
    return ours, paper


def _along(forks: Forks, own: Mapping[float, RunRecord | None], found: ThresholdNorm | None) -> Panel:
    until = shown_until(own.values(), 3000)
    series: list[Series] = [*_lines(found, (1000, until))]
    for decay, records in forks.items():
        role = f"λ = {decay:g}"
        series.append(quartiles(records.values(), "norm", until, role, role))
        series.append(curve(own[decay], "norm", until, role, role))
    for record in own.values():
        events = record.timeline if record else None
        if events and events.grokked is not None:
            point = ((events.grokked,), (events.norm_at_grok,))
            series.append(Series(f"grokked, seed {DRAW}", "points", "grokked", "run", *point))
    return Panel(f"Along the forks of seed {DRAW}", "step", "‖W‖", tuple(series), log_y=True, x_range=(1000, until))


def _at_grokking(forks: Forks, own: Mapping[float, RunRecord | None], found: ThresholdNorm | None) -> Panel:
    cells = {decay: _mean(norms) for decay, records in forks.items() if (norms := _norms(records))}
    mine = {decay: norms[0] for decay, record in own.items() if record and (norms := _norms({"": record}))}
    series = (
        *_lines(found, (0.5, 5.5)),
        *_seeds(cells, f"mean of {_count(forks)} seeds" if _count(forks) > 1 else ""),
        Series(f"grokked, seed {DRAW}", "points", "grokked", "run", tuple(mine), tuple(mine.values())),
    )
    return Panel("At grokking", "λ after the fork", "‖W‖", series, _ticks(), x_range=(0.5, 5.5))


def _rates(forks: Forks, own: Mapping[float, RunRecord | None]) -> Panel:
    cells = {d: _mean(rates) for d, records in forks.items() if (rates := _decays(list(records.values())))}
    mine = {d: rates[0] for d, record in own.items() if record and (rates := _decays([record]))}
    pure = tuple(SCALE * LEARNING_RATE * decay for decay in DECAYS)
    series = (
        Series("decay alone, ηλ", "line", "theory", "fit", DECAYS, pure),
        Series(f"{DECAY_SHARE} ηλ, paper", "line", "theory", "paper", DECAYS, tuple(DECAY_SHARE * x for x in pure)),
        *_seeds(cells, f"mean of {_count(forks)} seeds" if _count(forks) > 1 else ""),
        Series(f"rate, seed {DRAW}", "points", "norm", "run", tuple(mine), tuple(mine.values())),
    )
    return Panel(
        "How fast it falls", "λ after the fork", "rate (per 1,000 steps)", series, _ticks(), x_range=(0.5, 5.5)
    )


def _ticks() -> tuple[tuple[float, str], ...]:
    return tuple((decay, f"{decay:g}") for decay in DECAYS)


def _count(forks: Forks) -> int:
    return max((len(records) for records in forks.values()), default=0)


def _mean(values: Sequence[float]) -> Cell:
    return estimated(bootstrap(values, seed=SEED, resamples=10_000))


def _seeds(cells: Mapping[float, Cell], label: str) -> tuple[Series, ...]:
    """Means over seeds; none where there is one seed."""
    return (
        (Series(label, "points", "validation", "seeds", tuple(cells), *ends_of(list(cells.values()))),) if label else ()
    )


def _decays(records: Sequence[RunRecord]) -> list[float]:
    """Decay of the log norm from fork to grokking, per thousand steps."""
    found = []
    for record in records:
        grok = record.timeline.grokked
        rows = zip(record.evaluations["step"], record.evaluations["norm"], strict=True)
        kept = [(step, norm) for step, norm in rows if grok is not None and step <= grok and norm > 0]
        if len(kept) > 1:
            steps, norms = ([row[i] for row in kept] for i in (0, 1))
            found.append(SCALE * norm_decay(steps, norms, record.spec.training.weight_decay).rate)
    return found
