"""The studies that `grokscope reproduce` knows: the paper, the bake-off, and the bake-off's tuning."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.runs.records import RunRecord
from grokscope.specs import Plan
from grokscope.studies import FIGURES, Evidence, Figure, Table, write_figure
from grokscope.studies.bakeoff import TASKS, bakeoff_plan, quick_plan, tuning_plan
from grokscope.studies.bakeoff_tables import bakeoff_results, bakeoff_table, tuned
from grokscope.studies.claims import CLAIMS
from grokscope.studies.evidence import evidence_of
from grokscope.studies.figures.bakeoff import fig_bakeoff
from grokscope.studies.items import ITEMS, studies_of
from grokscope.studies.reproduction import reproduction_plan
from grokscope.studies.results import provenance_of, write_results
from grokscope.studies.sources import Scope, scope_of
from grokscope.studies.speed import read_speed
from grokscope.view.render import write_table

__all__ = ["STUDIES", "Study", "find_study"]

RULE_COLUMNS = ("name", "statement", "where", "printed", "rule", "table")


@dataclass(frozen=True)
class Study:
    """What can be reproduced by name."""

    name: str
    """As it is written on the command line."""
    title: str
    """What it is, in one line."""
    parts: tuple[str, ...]
    """What --only and --without can name."""
    records: str
    """The file of its records."""
    plan: Callable[..., Plan]
    """Its runs, given out, only, without, n_seeds, quick, precision, device and deterministic."""
    write: Callable[[Sequence[RunRecord], Path, dict[str, Any]], list[dict[str, Any]] | Table]
    """Writes everything that follows from records into a folder; its claims as rows, or its table."""
    rules: tuple[dict[str, Any], ...] = ()
    """Its claims with their rules."""
    figures: Mapping[str, Callable[[Evidence], Figure]] | None = None
    """Its figures by name."""


def find_study(name: str) -> Study:
    """The study with this name."""
    if name not in STUDIES:
        raise InputError(f"there is no study {shown(name)}{did_you_mean(name, STUDIES)}")
    return STUDIES[name]


def _plan_of_paper(out: str, only: Sequence[str], without: Sequence[str], **options: Any) -> Plan:
    return reproduction_plan(studies_of(only or ("all",), without), out, **options)


def _results_of_paper(records: Sequence[RunRecord], folder: Path, selection: dict[str, Any]) -> list[dict[str, Any]]:
    scope: Scope = scope_of(records)
    return write_results(evidence_of(records, **scope), folder, provenance_of(records, scope, **selection))


def _plan_of_bakeoff(
    out: str,
    only: Sequence[str],
    without: Sequence[str],
    *,
    n_seeds: int | None,
    quick: bool,
    precision: Any,
    device: str,
    deterministic: bool,
    is_tuning: bool = False,
) -> Plan:
    if without or deterministic:
        raise InputError("the bake-off has no --without and no --deterministic; name its tasks with --only")
    if is_tuning:
        if only or quick:
            raise InputError("the tuning has one task and no reduced version: leave out --only and --quick")
        return tuning_plan(out, n_seeds=n_seeds or 16, precision=precision, device=device)
    if quick:
        if only:
            raise InputError("--quick has a task of its own: leave out --only")
        return quick_plan(out, device=device)
    return bakeoff_plan(out, tuple(only) or TASKS, n_seeds=n_seeds or 32, precision=precision, device=device)


def _results_of_bakeoff(records: Sequence[RunRecord], folder: Path, selection: dict[str, Any]) -> Table:
    results = bakeoff_results(list(records))
    if not results:
        raise InputError(f"none of the {len(records)} records is a run of the bake-off")
    speed = read_speed(folder / "speed.json")
    seconds = () if speed is None else (speed.seconds_per_step, speed.place)
    table = bakeoff_table(list(records), *seconds)
    write_table(table, folder)
    write_figure(fig_bakeoff(results), folder)
    return table


def _results_of_tuning(records: Sequence[RunRecord], folder: Path, selection: dict[str, Any]) -> Table:
    table = tuned(list(records))[1]
    write_table(table, folder)
    return table


STUDIES = {
    study.name: study
    for study in (
        Study(
            "synchronization",
            "Circuit Synchronization Precedes Generalization: tables, figures and claims of the paper",
            tuple(ITEMS),
            "reproduction.records.gz",
            _plan_of_paper,
            _results_of_paper,
            tuple({key: getattr(claim, key) for key in RULE_COLUMNS} for claim in CLAIMS),
            FIGURES,
        ),
        Study(
            "bakeoff",
            "Fixed λ, triggers, a closed loop, Grokfast and orthogonal gradients on equal tasks, seeds and budget",
            TASKS,
            "bakeoff.records.gz",
            _plan_of_bakeoff,
            _results_of_bakeoff,
        ),
        Study(
            "bakeoff-tuning",
            "Settings of every method of the bake-off, chosen on seeds of their own",
            (),
            "tuning.records.gz",
            partial(_plan_of_bakeoff, is_tuning=True),
            _results_of_tuning,
        ),
    )
}
