"""Runs with planted events, and tables held to what they must give."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies import Evidence
from grokscope.studies.synchronization.experiments import EXPERIMENTS
from grokscope.view.table import Table
from paper_tables import CROSS, EXLOSS

LAST = 15_000
EMPTY = Evidence({name: {} for name in EXPERIMENTS})


def only(experiment: str, **runs: RunRecord) -> Evidence:
    """These runs alone."""
    return Evidence({**EMPTY.records, experiment: runs})


def run(
    spec: RunSpec,
    grok: int | None = None,
    sync: int | None = None,
    restricted: int | None = None,
    collapse: bool = False,
    learnt: bool = True,
    last: int = LAST,
    **columns: Any,
) -> RunRecord:
    """A run with these events, evaluated every 100 steps and measured at the evaluations of the paper's tables."""
    first = spec.fork.step if spec.fork else 0
    steps = list(range(first, last + 1, 100))

    def after(step: int | None, high: float, low: float) -> list[float]:
        return [high if step is not None and at >= step else low for at in steps]

    validation = after(grok, 1.0, 0.1)
    if collapse:
        validation[-1] = 0.1
    log: dict[str, Any] = {
        "step": steps,
        "train_accuracy": [1.0 if learnt else 0.1] * len(steps),
        "validation_accuracy": validation,
        "fsd": after(sync, 0.9, 0.1),
        "rank": [3.0] * len(steps),
        "norm": [30.0] * len(steps),
        "fsd_mode": [5.0] * len(steps),
    }
    for name, values in columns.pop("log", {}).items():
        log[name] = [values.get(at, nan) for at in steps]
    measured: dict[str, Any] = {name: after(step, 0.9, 0.1) for name, step in columns.items()}
    if restricted is not None:
        measured["paper_restricted"] = after(restricted, 0.1, 3.0)
    if measured:
        measured = {"step": steps} | measured
    return RunRecord(spec, RunOutcome("grokked"), log, measured)


def evidence(study: str, changes: Mapping[str, Mapping[str, Any]], n_seeds: int | None = None) -> Evidence:
    """Runs of one experiment, those named here alone."""
    specs = EXPERIMENTS[study](n_seeds, "float32")
    empty: dict[str, dict[str, RunRecord]] = {name: {} for name in EXPERIMENTS}
    return Evidence(empty | {study: {name: run(specs[name], **what) for name, what in changes.items()}})


def reported_base() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, row in CROSS.items():
        found[name] = {"grok": row.grok, "sync": row.sync}
        if name in EXLOSS:
            found[name]["restricted"] = EXLOSS[name][3]
    found["mult_mod97_s42"] = {"grok": 3000, "sync": 2000, "fsd@sum": 13_000, "fsd@additive": None}
    return found


def ours(table: Table, row: str) -> list[Any]:
    return [cell.ours for cell in next(cells for cells in table.rows if cells[0].ours == row)]


def agree(table: Table, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Ours is what the paper reports."""
    for row in rows:
        for column in columns:
            cell = table.cell(row, column)
            assert cell.paper is not None, (row, column)
            assert cell.ours == cell.paper, (row, column)


def together(*found: Evidence) -> Evidence:
    """Runs of several experiments, of which each is in one of these."""
    return Evidence({name: {k: r for one in found for k, r in one.records[name].items()} for name in EXPERIMENTS})
