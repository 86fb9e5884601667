"""The tables: every arm on every cell, the tuning, the verdicts, the ablation of the recipe and the cadence."""

from collections.abc import Callable
from dataclasses import replace

from grokscope.studies import Evidence, Item, Measured, Quantity, cell
from grokscope.studies.steering import verdicts
from grokscope.studies.steering.arms import FAMILIES
from grokscope.studies.steering.experiments import CELLS, TUNING_TASKS, UNSEEN
from grokscope.studies.steering.quantities import CHOICE, arms_run, is_tuned, outcome
from grokscope.studies.steering.seconds import FILE, Speed, read_speed, seconds
from grokscope.view.table import Cell, Column, Row, Table, text

__all__ = ["TABLES"]

COLUMNS = (
    Column("Cell"),
    Column("Arm"),
    Column("Tuned on this task"),
    Column("n"),
    Column("Stable", digits=2),
    Column("Median steps to stable generalisation"),
    Column("Worst seed"),
    Column("Device-seconds to it, in a full stack", digits=3),
    Column("Grokked"),
    Column("Fell below a half afterwards"),
    Column("Diverged"),
)
METHOD = (
    "Stable: validation accuracy ≥ 0.95 at grokking and at every evaluation of the next 2,000 steps. A run that does "
    "not get there counts as later than its budget. Medians and intervals (95 %) by Kaplan–Meier, shares by "
    "Clopper–Pearson. Device-seconds: median steps times the measured time of one run's step with the update on, "
    "without evaluations.",
    "Every run goes to the end of its budget; what comes later is not seen.",
)


def _rows(evidence: Evidence, experiment: str) -> tuple[Row, ...]:
    speed = None if evidence.folder is None else read_speed(evidence.folder / FILE)
    return tuple(_row(evidence, experiment, name, speed) for name in arms_run(evidence, experiment))


def _row(evidence: Evidence, experiment: str, name: str, speed: Speed | None) -> Row:
    place, _, arm = name.partition("/")
    quantity = outcome(experiment, name)
    runs, stable, steps, worst, grokked, fell, diverged = (
        replace(cell(evidence, quantity, part), n=None)
        for part in ("runs", "stable", "steps", "worst", "grokked", "fell", "diverged")
    )
    worst = replace(worst, ours="never") if worst.ours == float("inf") else worst
    time = _time(evidence, experiment, name, speed)
    tuned = text("yes" if is_tuned(place) else "no")
    return (text(place), text(arm), tuned, runs, stable, steps, worst, time, grokked, fell, diverged)


def _time(evidence: Evidence, experiment: str, name: str, speed: Speed | None) -> Cell:
    runs = outcome(experiment, name).runs.select(evidence.records)
    per_step = speed.of(next(iter(runs.values())).spec) if speed and runs else None
    return Cell() if per_step is None else replace(cell(evidence, seconds(experiment, name, per_step)), n=None)


def _table(name: str, title: str, experiment: str, unseen: str = "") -> Callable[[Evidence], Table]:
    def build(evidence: Evidence) -> Table:
        rows = _rows(evidence, experiment)
        notes = (*METHOD, unseen) if unseen else METHOD
        missing = () if rows else ("None of its runs is there.",)
        return Table(name, name.replace("tab-", "tab:", 1), title, COLUMNS, rows, (*missing, *notes))

    return build


def tab_verdicts(evidence: Evidence) -> Table:
    """What each rule compares, with its value."""
    rows = tuple(
        _verdict(evidence, claim.name, claim.estimand)
        for claim in verdicts.CLAIMS
        if isinstance(claim.estimand, Quantity)
    )
    columns = (Column("Claim"), Column("Value", digits=2), Column("In words"))
    notes = ("Which rule gives which verdict stands with the claims: `grokscope reproduce steering --claims`.",)
    return Table("tab-verdicts", "tab:verdicts", "The recipe and the published accelerators", columns, rows, notes)


def _verdict(evidence: Evidence, name: str, quantity: Quantity) -> Row:
    found: Measured = evidence.measure(quantity)
    value = Cell() if found.missing else replace(cell(evidence, quantity), n=None)
    return (text(name), value, text(found.missing or found.text))


def tab_choice(evidence: Evidence) -> Table:
    """The setting of each family, best family first."""
    found = evidence.measure(CHOICE)
    rows = tuple((text(family), text(str(setting))) for family, setting in found.parts.items())
    note = (
        f"Of {len(FAMILIES)} families with 12 settings and 8 seeds each on {' and '.join(TUNING_TASKS)}: the lowest "
        "geometric mean over both tasks of the mean steps to stable generalisation, where a run that does not get "
        "there counts as its budget. The first family that is not AdamW is the recipe."
    )
    return Table("tab-choice", "tab:choice", "What tuning chose", (Column("Family"), Column("Setting")), rows, (note,))


SEEN = f"Tuned: {', '.join(TUNING_TASKS)}. All other tasks ({len(UNSEEN)}, in {len(CELLS) - 2} cells) are unseen."
TABLES = (
    Item("tab-steering", ("final",), _table("tab-steering", "Arms on tasks that nobody tuned on", "final", SEEN)),
    Item("tab-verdicts", ("tuning", "final", "hindsight", "published"), tab_verdicts),
    Item("tab-choice", ("tuning",), tab_choice),
    Item("tab-screening", ("tuning",), _table("tab-screening", "All settings on the two tuning tasks", "tuning")),
    Item("tab-hindsight", ("hindsight",), _table("tab-hindsight", "AdamW at every λ", "hindsight")),
    Item("tab-published", ("published",), _table("tab-published", "Published accelerators, tuned alike", "published")),
    Item("tab-ablation", ("ablation",), _table("tab-ablation", "The recipe without each of its parts", "ablation")),
    Item("tab-cadence", ("cadence",), _table("tab-cadence", "The recipe evaluated more or less often", "cadence")),
)
