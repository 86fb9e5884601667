"""Figures of one run over time: two phases, and memorisation."""

from collections.abc import Mapping

from grokscope.runs.records import RunRecord
from grokscope.specs import ReadingSpec
from grokscope.studies.evidence import Evidence
from grokscope.studies.figures.captions import GAP_IN_PHASE_2, GENERALIZATION_GAP
from grokscope.studies.figures.reading import (
    beginning,
    curve,
    independent_line,
    middle,
    paper_points,
    quartiles,
    shown_until,
    steps_text,
    untrained_band,
)
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.view.charts.figure import Ends, Figure, Panel, Series
from grokscope.view.table import Value, not_trained

__all__ = ["fig_memorisation", "fig_two_phase"]

TASK, SEED = "add_mod97", 42
PRINTED_RUN = f"{TASK}_s{SEED}"
LEAST = 6000  # steps shown at least: the printed table ends at 5,000
STACKED = (4.6, 1.25)
SHARE = (-0.06, 1.08)
EVENTS = "Events are read at every look, every 100 steps; the paper's every 500."
SEEDS = "The dashed line with its band is the median over seeds at each look, between quartiles."


def fig_two_phase(evidence: Evidence) -> Figure:
    """Figure 2: accuracy, FSD, rank and norm of one run, with the phases."""
    runs = evidence.task(TASK)
    own, until = runs.get(PRINTED_RUN), shown_until(runs.values(), LEAST)
    nulls = (untrained_band(runs.values(), "fsd", until), *([independent_line(own)] if own else []))
    panels = (
        _over_time("Validation accuracy", "accuracy", "validation_accuracy", runs, until, y_range=SHARE),
        _over_time("Synchronisation of block 0", "FSD", "fsd", runs, until, nulls, y_range=SHARE),
        _over_time(
            "Median Fourier rank of block 0",
            "rank",
            "rank",
            runs,
            until,
            (untrained_band(runs.values(), "rank", until),),
            log=True,
        ),
        _over_time("Norm of all parameters", "‖W‖", "norm", runs, until, x_label="step"),
    )
    found = own.timeline if own else None
    events = (
        f"{_settled(own)} {steps_text(found.liberated)}, grokked {steps_text(found.grokked)}" if own and found else ""
    )
    title = f"Two phases of addition mod 97: {_runs_of(own, len(runs), events)}"
    notes = (
        EVENTS,
        *((SEEDS,) if len(runs) > 1 else ()),
        "FSD, which the paper's figure lacks, is drawn with two nulls: untrained networks and independent neurons.",
        *_no_phase_2(own),
        "The norm of block 0's MLP input weights, in the paper's figure, is not in the records.",
        *beginning(until, runs.values()),
        *not_trained({PRINTED_RUN} - runs.keys()),
    )
    return Figure("fig-two-phase", "fig:two_phase", title, panels, notes, 1, STACKED)


def _runs_of(own: RunRecord | None, n: int, events: str) -> str:
    """Which runs a title speaks of."""
    if not n:
        return "no runs"
    first = f"seed {SEED} ({events})" if own and events else f"seed {SEED}" if own else ""
    return " and ".join(filter(None, [first, f"all {n} seeds" if n > 1 or not own else ""]))


def _over_time(
    title: str,
    y_label: str,
    column: str,
    runs: Mapping[str, RunRecord],
    until: int,
    nulls: tuple[Series, ...] = (),
    *,
    log: bool = False,
    x_label: str = "",
    y_range: Ends | None = None,
) -> Panel:
    own = runs.get(PRINTED_RUN)
    printed = REPORTED["tab:rank"]
    points: dict[float, Value] = {int(step): printed.get(step, column) for step in printed.rows}
    series = (
        *_phase(own),
        *nulls,
        *_sync_threshold(column),
        quartiles(runs.values(), column, until, column, "validation"),
        curve(own, column, until, f"seed {SEED}", "validation"),
        paper_points(points),
    )
    return Panel(title, x_label, y_label, series, log_y=log, x_range=(0, until), y_range=y_range)


def _sync_threshold(column: str) -> tuple[Series, ...]:
    if column != "fsd":
        return ()
    return (Series("FSD = 0.80, synchronised", "horizontal", "fsd", "fit", (), (ReadingSpec().fsd_sync,)),)


def _phase(own: RunRecord | None) -> tuple[Series, ...]:
    """Phase 2 shaded between its ends."""
    if own is None:
        return ()
    start, end = own.timeline.liberated, own.timeline.grokked
    marks = []
    if start is not None and end is not None and start < end:
        marks.append(Series(f"Phase 2, seed {SEED}", "span", "phase", "run", (), (), (start,), (end,)))
    if start is not None:
        marks.append(Series(f"{_settled(own)}, seed {SEED}", "vertical", "rank", "fit", (start,)))
    if end is not None:
        marks.append(Series(f"grokked, seed {SEED}", "vertical", "grokked", "fit", (end,)))
    return tuple(marks)


def _settled(own: RunRecord) -> str:
    """The rank at which Phase 2 starts: 1, or that after grokking where 1 never comes."""
    start = own.timeline.liberated
    return "rank 1" if start is None else f"rank {own.at(start, 'rank'):g}"


def _no_phase_2(own: RunRecord | None) -> tuple[str, ...]:
    if own is None or own.timeline.grokked is None:
        return ()
    start, end = own.timeline.liberated, own.timeline.grokked
    if start is not None and start < end:
        return ()
    return (
        f"Phase 2 starts at median rank 1, or at the rank after grokking where 1 never comes: seed {SEED} has none, "
        "for neither comes before it groks.",
    )


def fig_memorisation(evidence: Evidence) -> Figure:
    """Figure 4: train and validation accuracy, and the gap between them."""
    runs = evidence.task(TASK)
    own, until = runs.get(PRINTED_RUN), shown_until(runs.values(), LEAST)
    printed = REPORTED["tab:rank"]
    accuracies: dict[float, Value] = {int(step): printed.get(step, "validation_accuracy") for step in printed.rows}
    top = (
        *(quartiles(runs.values(), f"{name}_accuracy", until, name, name) for name in ("train", "validation")),
        *(curve(own, f"{name}_accuracy", until, f"{name}, seed {SEED}", name) for name in ("train", "validation")),
        paper_points(accuracies, "paper, validation"),
    )
    gaps = {name: _gap(record, until) for name, record in runs.items()}
    mine = gaps.get(PRINTED_RUN, {})
    phase, ends = GAP_IN_PHASE_2
    bottom = (
        Series("paper, gap in Phase 2", "band", "theory", "paper", phase, (), (ends[0],) * 2, (ends[1],) * 2),
        middle(list(gaps.values()), "gap", "gap"),
        Series(f"gap, seed {SEED}", "line", "gap", "run", tuple(mine), tuple(mine.values())),
        paper_points(GENERALIZATION_GAP, "paper, gap"),
    )
    panels = (
        Panel("Accuracy", "", "accuracy", top, x_range=(0, until), y_range=SHARE),
        Panel("Gap: train − validation", "step", "gap", bottom, x_range=(0, until), y_range=SHARE),
    )
    found = own.timeline if own else None
    events = f"memorised {steps_text(found.memorized)}, grokked {steps_text(found.grokked)}" if found else ""
    title = f"Memorisation of addition mod 97: {_runs_of(own, len(runs), events)}"
    notes = (
        EVENTS,
        *((SEEDS,) if len(runs) > 1 else ()),
        *beginning(until, runs.values()),
        *not_trained({PRINTED_RUN} - runs.keys()),
    )
    return Figure("fig-memorisation", "fig:memorisation", title, panels, notes, 1, (4.6, 1.6))


def _gap(record: RunRecord, until: int) -> dict[int, float]:
    columns = (record.evaluations[name] for name in ("step", "train_accuracy", "validation_accuracy"))
    rows = zip(*columns, strict=True)
    found = {int(step): train - validation for step, train, validation in rows if step <= until}
    return {step: value for step, value in found.items() if value == value}
