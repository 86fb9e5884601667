"""The bake-off's tables: who groks soonest, who fails, who falls apart afterwards, and how settings were chosen."""

from dataclasses import replace

from grokscope.studies import Evidence, Item, Quantity, cell
from grokscope.studies.bakeoff.configurations import AFTER_GROKKING, CHOSEN, CONFIGURATIONS, FAMILIES, TUNING_TASK
from grokscope.studies.bakeoff.notes import describe_logs, describe_winner
from grokscope.studies.bakeoff.quantities import (
    CHOICE,
    FELL,
    compare,
    configurations_run,
    outcome,
    outcome_of_setting,
    seconds,
    tasks_run,
)
from grokscope.studies.bakeoff.seconds import FILE, Speed, read_speed
from grokscope.view.table import Cell, Column, Row, Table, text

__all__ = ["TABLES"]

COLUMNS = (
    Column("Task"),
    Column("Configuration"),
    Column("n"),
    Column("Grokked", digits=2),
    Column("Median steps to grok"),
    Column("Seconds to grok, in a full stack", digits=2),
    Column("Never memorised"),
    Column("Diverged"),
    Column("Collapsed after grokking"),
    Column("p against the best fixed λ", digits=4),
)
METHOD = (
    "A run that did not grok, or failed, counts as later than its budget. Medians and intervals (95 %) by "
    "Kaplan–Meier, shares by Clopper–Pearson, p by log-rank against the fixed λ with the shortest median on that "
    "task, adjusted by Holm for the task's other configurations. The log-rank test has little power where curves "
    "cross: where one configuration groks early or never, and another late and always.",
    f"Collapsed: validation accuracy below {FELL}, or not a number, in the {AFTER_GROKKING:,} steps after grokking for "
    "which a run goes on, or to the end of its budget.",
)


def tab_bakeoff(evidence: Evidence) -> Table:
    """One row for each task and configuration."""
    speed = None if evidence.folder is None else read_speed(evidence.folder / FILE)
    found = {task: configurations_run(evidence, task) for task in tasks_run(evidence)}
    rows = tuple(_row(evidence, task, name, speed) for task, names in found.items() for name in names)
    return Table(
        "tab-bakeoff",
        "tab:bakeoff",
        "Bake-off: methods that accelerate grokking, with equal seeds, budget and tuning",
        COLUMNS,
        rows,
        notes=(
            *(describe_winner(evidence, task) for task in found),
            *METHOD,
            *describe_logs(evidence),
            _describe_settings(),
            _describe_time(speed),
            *_describe_gaps(rows, any(names != [*CONFIGURATIONS] for names in found.values()), "Configurations"),
        ),
    )


def _row(evidence: Evidence, task: str, name: str, speed: Speed | None) -> Row:
    per_step = speed.seconds_per_step.get(name) if speed else None
    time = Cell() if per_step is None else _without_n(cell(evidence, seconds(task, name, per_step)))
    is_baseline = evidence.measure(compare(task)).parts["best fixed"] == name
    return (
        text(task),
        text(name),
        *_outcome_cells(evidence, outcome(task, name), time),
        text("baseline") if is_baseline else cell(evidence, compare(task), name),
    )


def _outcome_cells(evidence: Evidence, quantity: Quantity, time: Cell) -> Row:
    runs, grokked, steps, *counts = (
        _without_n(cell(evidence, quantity, part))
        for part in ("runs", "grokked", "steps", "never memorised", "not finite", "collapsed")
    )
    return (runs, grokked, steps, time, *counts)


def _without_n(found: Cell) -> Cell:
    """The number of runs has a column of its own."""
    return replace(found, n=None)


def _describe_settings() -> str:
    how = f"each chosen from four on {TUNING_TASK} with other seeds"
    settings = "; ".join(f"{family}: {setting}" for family, setting in CHOSEN.items())
    return f"Settings, {how}: {settings}. Of fixed λ all four are shown, and the best is chosen post hoc."


def _describe_time(speed: Speed | None) -> str:
    if speed is None:
        return "No speed was measured, so times are in optimiser steps alone."
    place = f" on {speed.place}" if speed.place else ""
    return f"Seconds: steps times the measured time of one run's step in a full stack{place}, without evaluations."


def _describe_gaps(rows: tuple[Row, ...], lacks_some: bool, what: str) -> tuple[str, ...]:
    is_uneven = lacks_some or len({(row[0].ours, row[2].ours) for row in rows}) > len({row[0].ours for row in rows})
    return (f"{what} have different numbers of runs: some are missing.",) if is_uneven else ()


def tab_tuning(evidence: Evidence) -> Table:
    """What each setting did on the tuning seeds, and which one is chosen of each family."""
    settings = [(family, setting) for family in CHOSEN for setting in FAMILIES[family]]
    found = {one: quantity for one in settings if (quantity := outcome_of_setting(*one)).runs.select(evidence.records)}
    rows: tuple[Row, ...] = tuple(
        (text(TUNING_TASK), text(f"{family}, {setting}"), *_outcome_cells(evidence, quantity, Cell()))
        for (family, setting), quantity in found.items()
    )
    chosen = evidence.measure(CHOICE).text
    choice = f"Chosen: {chosen}; fewest failures and collapses first, then the shortest median."
    columns = COLUMNS[:-1]  # there is no baseline
    return Table(
        "tab-tuning",
        "tab:tuning",
        "Tuning of the bake-off",
        columns,
        rows,
        notes=(choice if rows else "No tuning run is there.", *_describe_gaps(rows, False, "Settings")),
    )


TABLES = (Item("tab-bakeoff", ("bakeoff",), tab_bakeoff), Item("tab-tuning", ("tuning",), tab_tuning))
