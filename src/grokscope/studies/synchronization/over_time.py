"""§5.3: one run over time, and all seeds with it. Table 5, Figures 2 and 4."""

from collections.abc import Mapping
from math import isnan

from grokscope.specs import ReadingSpec
from grokscope.studies import Evidence, Item, Measured, Quantity, Records, cell
from grokscope.studies.synchronization import readings
from grokscope.studies.synchronization.phases import RUN, RUNS
from grokscope.studies.synchronization.readings import CADENCE
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.studies.synchronization.series import (
    curve,
    independent_line,
    last_shown,
    line,
    quartiles,
    reported_points,
    seeds_line,
    steps_shown,
    untrained,
    untrained_band,
)
from grokscope.view.charts.figure import Ends, Figure, Panel, Series
from grokscope.view.numbers import format_step
from grokscope.view.table import Column, Row, Table, Value, not_trained, text

__all__ = ["FIGURES", "TABLES"]

SEED = 42
LEAST = 6000  # steps shown at least: the reported table ends at 5,000
STACKED = (4.6, 1.25)
SHARE = (-0.06, 1.08)
GENERALIZATION_GAP = {1000: 0.894, 4000: 0.003}  # reported in Figure 4: step → gap
GAP_IN_PHASE_2 = ((2500, 4000), (0.52, 0.72))  # reported in Figure 4: steps, and the range of the gap there
GAP = {"column": "train_accuracy", "minus": "validation_accuracy"}
EVENTS = "Events are read at every evaluation, every 100 steps; the paper's every 500."
SEEDS = "The dashed line with its band is the median over seeds at each evaluation, between quartiles."


def _state(records: Records, step: int) -> Measured:
    """Accuracy, rank, norm and phase of one run at a step."""
    (record,) = records.values()
    parts = {column: record.at(step, column) for column in ("validation_accuracy", "rank", "norm")}
    is_there = step in record.evaluations["step"]
    return Measured(parts | {"phase": str(record.timeline.phase(step)) if is_there else None}, n=1)


def _median_state(records: Records, step: int) -> Measured:
    """Median rank and norm of many seeds at a step."""
    columns = {name: [record.at(step, name) for record in records.values()] for name in ("rank", "norm")}
    return Measured({name: readings.median_value(values) for name, values in columns.items()}, n=len(records))


def _table_5(evidence: Evidence) -> Table:
    """Table 5: rank and norm of one run over time."""
    reported, runs = REPORTED["tab:rank"], RUNS.select(evidence.records)
    is_widened = bool(runs.keys() - REPORTED["tab:configs"].rows.keys())
    pooled = (Column("Median rank, all seeds", digits=1), Column("Total norm, all seeds", digits=2))
    return Table(
        "tab-rank",
        reported.label,
        "Rank and norm over time, addition mod 97",
        columns=(
            Column("Step"),
            Column("Val acc", digits=3),
            Column("Median rank", digits=1),
            Column("Total norm", digits=2),
            Column("Phase"),
            *(pooled if is_widened else ()),
        ),
        rows=tuple(_row(evidence, step, is_widened) for step in reported.rows),
        notes=(
            "Phase 2 starts at the first median rank 1, or at the rank after grokking where 1 is never reached.",
            *(("All seeds of add_mod97: medians with 95 % intervals by order statistics.",) if is_widened else ()),
            *not_trained({*RUN.names} - runs.keys()),
        ),
    )


def _row(evidence: Evidence, step: str, is_widened: bool) -> Row:
    reported, options = REPORTED["tab:rank"], {"step": int(step)}
    own = Quantity("state at a step", RUN, _state, CADENCE, options)
    pooled = Quantity("median state at a step", RUNS, _median_state, CADENCE, options)
    return (
        text(step),
        *(cell(evidence, own, part, reported.get(step, part)) for part in reported.columns),
        *((cell(evidence, pooled, part) for part in ("rank", "norm")) if is_widened else ()),
    )


def _phases(records: Records) -> Measured:
    """When one run memorised, entered Phase 2 and grokked; the rank at which Phase 2 starts, and FSD's threshold."""
    (record,) = records.values()
    found = record.timeline
    return Measured(
        {
            **{name: getattr(found, name) for name in ("memorized", "liberated", "grokked")},
            "rank": "1" if found.liberated is None else f"{record.at(found.liberated, 'rank'):g}",
            "synchronised at": ReadingSpec().fsd_sync,
        },
        n=1,
    )


PHASES = Quantity("steps of the phases", RUN, _phases)


def _steps(evidence: Evidence) -> dict[str, int | None]:
    """Steps of the phases; None where one was not reached, or without the run."""
    parts = evidence.measure(PHASES).parts
    found = {name: parts.get(name) for name in ("memorized", "liberated", "grokked")}
    return {name: step if isinstance(step, int) else None for name, step in found.items()}


def _two_phases(evidence: Evidence) -> Figure:
    """Figure 2: accuracy, FSD, rank and norm of one run, with the phases."""
    runs = RUNS.select(evidence.records)
    until = last_shown(runs.values(), LEAST)
    null = {column: untrained_band(evidence, untrained(RUNS, column), until) for column in ("fsd", "rank")}
    steps = _steps(evidence)
    return Figure(
        "fig-two-phase",
        "fig:two_phase",
        f"Two phases of addition mod 97: {_titled(runs, _rank(evidence), steps, 'liberated')}",
        panels=(
            _over_time(evidence, "Validation accuracy", "accuracy", "validation_accuracy", until, y_range=SHARE),
            _over_time(
                evidence,
                "Synchronisation of block 0",
                "FSD",
                "fsd",
                until,
                (
                    null["fsd"],
                    *independent_line(evidence, RUN),
                    *_sync_level(evidence),
                ),
                y_range=SHARE,
            ),
            _over_time(evidence, "Median Fourier rank of block 0", "rank", "rank", until, (null["rank"],)),
            _over_time(evidence, "Norm of all parameters", "‖W‖", "norm", until),
        ),
        notes=(
            EVENTS,
            *((SEEDS,) if len(runs) > 1 else ()),
            "FSD, which the paper's figure lacks, is drawn with two nulls: untrained networks and independent neurons.",
            *_no_phase_2(steps["liberated"], steps["grokked"]),
            "The norm of block 0's MLP input weights, in the paper's figure, is not in the records.",
            *steps_shown(until, runs.values()),
            *not_trained({*RUN.names} - runs.keys()),
        ),
        columns=1,
        panel_size=STACKED,
    )


def _sync_level(evidence: Evidence) -> list[Series]:
    """The FSD that counts as synchronised; none without the run."""
    level = evidence.measure(PHASES).number("synchronised at")
    mark = Series(f"FSD = {level:.2f}, synchronised", "horizontal", "fsd", "fit", (), (level,), quantity=PHASES.key)
    return [] if isnan(level) else [mark]


def _rank(evidence: Evidence) -> str:
    """The rank at which Phase 2 starts: 1, or that after grokking where 1 is never reached."""
    return f"rank {evidence.measure(PHASES).parts.get('rank', 1)}"


def _at(steps: Mapping[str, int | None], event: str) -> str:
    return "never" if steps[event] is None else f"at step {format_step(steps[event])}"


def _titled(runs: Records, words: str, steps: Mapping[str, int | None], event: str) -> str:
    """Which runs a title is about, with an event of the reported one and its grokking."""
    if not runs:
        return "no runs"
    has_own = RUN.names[0] in runs
    own = f"seed {SEED} ({words} {_at(steps, event)}, grokked {_at(steps, 'grokked')})" if has_own else ""
    return " and ".join(filter(None, [own, f"all {len(runs)} seeds" if len(runs) > 1 or not has_own else ""]))


def _over_time(
    evidence: Evidence,
    title: str,
    y_label: str,
    column: str,
    until: int,
    nulls: tuple[Series, ...] = (),
    y_range: Ends | None = None,
) -> Panel:
    reported = REPORTED["tab:rank"]
    x_label = "step" if column == "norm" else ""  # the lowest of the panels
    return Panel(
        title,
        x_label,
        y_label,
        series=(
            *_phase_marks(evidence),
            *nulls,
            seeds_line(evidence, quartiles(RUNS, column), until, column, "validation"),
            line(evidence, curve(RUN, column), until, f"seed {SEED}", "validation"),
            reported_points({int(step): reported.get(step, column) for step in reported.rows}),
        ),
        log_y=column == "rank",
        x_range=(0, until),
        y_range=y_range,
    )


def _phase_marks(evidence: Evidence) -> tuple[Series, ...]:
    """Phase 2 shaded between its ends."""
    steps, key = _steps(evidence), PHASES.key
    start, end = steps["liberated"], steps["grokked"]
    marks = []
    if start is not None and end is not None and start < end:
        marks.append(Series(f"Phase 2, seed {SEED}", "span", "phase", "run", (), (), (start,), (end,), quantity=key))
    if start is not None:
        marks.append(Series(f"{_rank(evidence)}, seed {SEED}", "vertical", "rank", "fit", (start,), quantity=key))
    if end is not None:
        marks.append(Series(f"grokked, seed {SEED}", "vertical", "grokked", "fit", (end,), quantity=key))
    return tuple(marks)


def _no_phase_2(start: int | None, end: int | None) -> tuple[str, ...]:
    if end is None or (start is not None and start < end):
        return ()
    return (
        f"Phase 2 starts at median rank 1, or at the rank after grokking where 1 is never reached: seed {SEED} has "
        "none, for it reaches neither before it groks.",
    )


def _memorisation(evidence: Evidence) -> Figure:
    """Figure 4: train and validation accuracy, and the gap between them."""
    runs, reported = RUNS.select(evidence.records), REPORTED["tab:rank"]
    until = last_shown(runs.values(), LEAST)
    accuracies: dict[float | int, Value] = {int(s): reported.get(s, "validation_accuracy") for s in reported.rows}
    columns = {name: f"{name}_accuracy" for name in ("train", "validation")}
    phase, ends = GAP_IN_PHASE_2
    top = (
        *(seeds_line(evidence, quartiles(RUNS, column), until, name, name) for name, column in columns.items()),
        *(line(evidence, curve(RUN, at), until, f"{name}, seed {SEED}", name) for name, at in columns.items()),
        reported_points(accuracies, "paper, validation"),
    )
    bottom = (
        Series("paper, gap in Phase 2", "band", "theory", "paper", phase, (), (ends[0],) * 2, (ends[1],) * 2),
        seeds_line(evidence, quartiles(RUNS, **GAP), until, "gap", "gap"),
        line(evidence, curve(RUN, **GAP), until, f"gap, seed {SEED}", "gap"),
        reported_points(GENERALIZATION_GAP, "paper, gap"),
    )
    return Figure(
        "fig-memorisation",
        "fig:memorisation",
        f"Memorisation of addition mod 97: {_titled(runs, 'memorised', _steps(evidence), 'memorized')}",
        panels=(
            Panel("Accuracy", "", "accuracy", top, x_range=(0, until), y_range=SHARE),
            Panel("Gap: train − validation", "step", "gap", bottom, x_range=(0, until), y_range=SHARE),
        ),
        notes=(
            EVENTS,
            *((SEEDS,) if len(runs) > 1 else ()),
            *steps_shown(until, runs.values()),
            *not_trained({*RUN.names} - runs.keys()),
        ),
        columns=1,
        panel_size=(4.6, 1.6),
    )


TABLES = (Item("tab-rank", ("base",), _table_5),)
FIGURES = (Item("fig-two-phase", ("base",), _two_phases), Item("fig-memorisation", ("base",), _memorisation))
