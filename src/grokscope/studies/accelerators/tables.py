"""The tables: every arm in its setting, the verdicts' numbers, what carries over, and what the settings leave open."""

from dataclasses import replace

from grokscope.studies import Evidence, Item, cell
from grokscope.studies.accelerators.events import outcome, pattern
from grokscope.studies.accelerators.experiments import SHARED
from grokscope.studies.accelerators.reported import ASSUMED, PAPERS
from grokscope.studies.accelerators.settings import EXACT, SETTINGS
from grokscope.studies.steering.arms import ADAMW
from grokscope.studies.steering.comparisons import comparison
from grokscope.studies.steering.seconds import FILE, Speed, read_speed, seconds
from grokscope.view.table import Cell, Column, Row, Table, text

__all__ = ["TABLES"]

PARTS = ("runs", "grokked", "grokked steps", "stable", "stable steps", "diverged")
COLUMNS = (
    Column("Setting"),
    Column("Arm"),
    Column("Budget"),
    Column("n"),
    Column("Grokked", digits=2),
    Column("Median steps to grokking"),
    Column("Stable", digits=2),
    Column("Median steps to stable generalisation"),
    Column("Diverged"),
    Column("Device-seconds to stable generalisation, in a full stack", digits=3),
)
METHOD = (
    "Grokked: validation accuracy ≥ 0.95. Stable: so at grokking and at every evaluation of the next 2,000 steps. "
    "Medians and intervals (95 %) by Kaplan–Meier, where a run that has not got there is later than its last "
    "evaluation; shares by Clopper–Pearson. Runs end 3,000 steps after grokking: a run that falls within 1,000 steps "
    "and comes back is seen, a later return is not.",
    f"Float32 also where TF32 is asked for: {' and '.join(EXACT)}, which are about rounding.",
)
CARRIED = {"Grokfast": "2405.20233", "orthogonal gradient": "2501.04697", "Muon": "2504.16041"}


def tab_accelerators(evidence: Evidence) -> Table:
    """Every arm of every setting."""
    speed = None if evidence.folder is None else read_speed(evidence.folder / FILE)
    rows = tuple(_row(evidence, setting, arm, speed) for setting, one in SETTINGS.items() for arm in one.arms)
    title = "Accelerators in their authors' settings"
    return Table("tab-accelerators", "tab:accelerators", title, COLUMNS, rows, METHOD)


def _row(evidence: Evidence, setting: str, arm: str, speed: Speed | None) -> Row:
    one, name = SETTINGS[setting], pattern(setting, arm)
    quantity = outcome(one.experiment, name)
    found = (replace(cell(evidence, quantity, part), n=None) for part in PARTS)
    per_step = None if speed is None else speed.seconds_per_step.get(name)
    time = Cell() if per_step is None else replace(cell(evidence, seconds(one.experiment, name, per_step)), n=None)
    return (text(setting), text(arm), text(f"{one.arms[arm].steps:,}"), *found, time)


def tab_carried_over(evidence: Evidence) -> Table:
    """What the steering study's runs say of the same families."""
    columns = (Column("Family"), Column("Paper"), Column("Times sooner", digits=2), Column("In words"))
    note = (
        f"Each family and {ADAMW} at the setting that tuning chose on two tasks, on eight tasks that nobody tuned on: "
        "runs of the steering study. Geometric mean over tasks of the ratio of medians to stable generalisation."
    )
    rows = []
    for family, number in CARRIED.items():
        quantity = comparison(family, ADAMW, SHARED)
        found = evidence.measure(quantity)
        value = Cell() if found.missing else replace(cell(evidence, quantity), n=None)
        rows.append((text(family), text(f"arXiv:{number}"), value, text(found.missing or found.text)))
    title = "Accelerators tuned alike, on tasks that nobody tuned on"
    return Table("tab-carried-over", "tab:carried-over", title, columns, tuple(rows), (note,))


def tab_assumed(evidence: Evidence) -> Table:
    """What is not the authors' own, paper by paper; no number is measured."""
    rows = tuple(
        (text(PAPERS[number]), text(f"arXiv:{number}"), text(sentence))
        for number, sentences in ASSUMED.items()
        for sentence in sentences
    )
    columns = (Column("Paper"), Column("arXiv"), Column("What differs here, or was assumed"))
    return Table("tab-assumed", "tab:assumed", "What is not the authors' own", columns, rows)


OWN = tuple(dict.fromkeys(one.experiment for one in SETTINGS.values()))
TABLES = (
    Item("tab-accelerators", OWN, tab_accelerators),
    Item("tab-carried-over", ("published",), tab_carried_over),
    Item("tab-assumed", (), tab_assumed),
)
