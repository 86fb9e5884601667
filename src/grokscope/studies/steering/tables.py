"""The tables: every arm on every cell, the tuning, the verdicts, the ablation of the recipe and the cadence."""

from collections.abc import Callable
from dataclasses import replace

from grokscope.studies import Evidence, Item, Measured, Quantity, cell
from grokscope.studies.steering import verdicts
from grokscope.studies.steering.arms import ADAMW, FAMILIES, chosen_settings
from grokscope.studies.steering.comparisons import BEST_DECAY, comparison, speed_up, standing
from grokscope.studies.steering.experiments import CELLS, RECIPE, TUNING_TASKS, UNSEEN
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
    Column("Below 0.95 at the end"),
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
    speed = _speed(evidence)
    return tuple(_row(evidence, experiment, name, speed) for name in arms_run(evidence, experiment))


def _speed(evidence: Evidence) -> Speed | None:
    """What was measured of a step's time, if it lies beside the records."""
    return None if evidence.folder is None else read_speed(evidence.folder / FILE)


def _row(evidence: Evidence, experiment: str, name: str, speed: Speed | None) -> Row:
    place, _, arm = name.partition("/")
    quantity = outcome(experiment, name)
    runs, stable, steps, worst, grokked, fell, lost, diverged = (
        replace(cell(evidence, quantity, part), n=None)
        for part in ("runs", "stable", "steps", "worst", "grokked", "fell", "not at the end", "diverged")
    )
    worst = replace(worst, ours="never") if worst.ours == float("inf") else worst
    time = _time(evidence, experiment, name, speed)
    tuned = text("yes" if is_tuned(place) else "no")
    return (text(place), text(arm), tuned, runs, stable, steps, worst, time, grokked, fell, lost, diverged)


def _time(evidence: Evidence, experiment: str, name: str, speed: Speed | None) -> Cell:
    return Cell() if speed is None else replace(cell(evidence, seconds(experiment, name, speed)), n=None)


def _table(name: str, title: str, experiment: str, unseen: str = "") -> Callable[[Evidence], Table]:
    def build(evidence: Evidence) -> Table:
        rows = _rows(evidence, experiment)
        notes = (*METHOD, unseen) if unseen else METHOD
        missing = () if rows else ("None of its runs is there.",)
        return Table(name, name.replace("tab-", "tab:", 1), title, COLUMNS, rows, (*missing, *notes))

    return build


OVER_TASKS = (
    Column("Tasks"),
    Column("n"),
    Column("Stable", digits=3),
    Column("Times as soon", digits=2),
    Column("Cells whose median is the budget"),
    Column("Grokked"),
    Column("Share of these below a half afterwards", digits=3),
    Column("Share of these below 0.95 at the end", digits=3),
)
RATIO = (
    "Over the cells in which any arm gets half of its runs there. Times as soon: the ratio of medians, geometric mean "
    "over tasks, interval by 10,000 bootstraps over tasks; where a median is not reached it counts as the budget."
)


def _over_tasks(evidence: Evidence, words: tuple[Cell, ...], quantity: Quantity) -> Row:
    names = ("tasks", "runs", "reliable", "value", "late cells", "grokked", "falls", "not at the end")
    return (*words, *(replace(cell(evidence, quantity, name), n=None) for name in names))


def tab_arms(evidence: Evidence) -> Table:
    """Each arm of the final over all unseen tasks."""
    arms = dict.fromkeys(name.partition("/")[2] for name in arms_run(evidence, "final"))
    rows = tuple(
        _over_tasks(evidence, (text(arm), text(chosen_settings().get(arm, ""))), standing(arm)) for arm in arms
    )
    columns = (Column("Arm"), Column("Setting"), *OVER_TASKS)
    notes = (RATIO, f"Compared with {ADAMW} at the one λ that tuning chose.")
    return Table("tab-arms", "tab:arms", "Arms over all unseen tasks", columns, rows, notes)


def _beside_recipe(name: str, title: str, experiment: str) -> Callable[[Evidence], Table]:
    """Variants of the recipe, each compared with it."""

    def build(evidence: Evidence) -> Table:
        arms = dict.fromkeys(name.partition("/")[2] for name in arms_run(evidence, experiment))
        named = (RECIPE, *arms) if arms else ()
        rows = tuple(_over_tasks(evidence, (text(arm),), comparison(arm, RECIPE, "final", experiment)) for arm in named)
        notes = (RATIO, "Compared with the recipe, whose runs are those of the final; on the bases of unseen tasks.")
        missing = () if rows else ("None of its runs is there.",)
        return Table(name, name.replace("tab-", "tab:", 1), title, (Column("Arm"), *OVER_TASKS), rows, missing + notes)

    return build


def tab_verdicts(evidence: Evidence) -> Table:
    """What each rule compares, with its value, and both speed-ups in device-seconds, on which there is no rule."""
    rows = [
        _verdict(evidence, claim.name, claim.estimand)
        for claim in verdicts.CLAIMS
        if isinstance(claim.estimand, Quantity)
    ]
    if (speed := _speed(evidence)) is not None:
        rows += [
            _verdict(evidence, f"speed-up in device-seconds against {baseline}", speed_up(baseline, speed))
            for baseline in (ADAMW, BEST_DECAY)
        ]
    columns = (Column("Claim"), Column("Value", digits=2), Column("In words"))
    notes = ("Which rule gives which verdict stands with the claims: `grokscope reproduce steering --claims`.",)
    return Table(
        "tab-verdicts", "tab:verdicts", "The recipe and the published accelerators", columns, tuple(rows), notes
    )


def _verdict(evidence: Evidence, name: str, quantity: Quantity) -> Row:
    found: Measured = evidence.measure(quantity)
    value = Cell() if found.missing else replace(cell(evidence, quantity), n=None)
    return (text(name), value, text(found.missing or found.text))


def tab_choice(evidence: Evidence) -> Table:
    """The setting of each family, best family first, as these runs choose it and as it was before the final."""
    found, before = evidence.measure(CHOICE), chosen_settings()
    rows = tuple(
        (text(family), text(str(setting)), text(before.get(family, "not chosen yet")))
        for family, setting in found.parts.items()
    )
    note = (
        f"Of {len(FAMILIES)} families with 12 settings and 8 seeds each on {' and '.join(TUNING_TASKS)}: the lowest "
        "geometric mean over both tasks of the mean steps to stable generalisation, where a run that does not get "
        "there counts as its budget. The first family that is not AdamW is the recipe."
    )
    columns = (Column("Family"), Column("Setting"), Column("Setting in the final"))
    return Table("tab-choice", "tab:choice", "What tuning chose", columns, rows, (note,))


SEEN = f"Tuned: {', '.join(TUNING_TASKS)}. All other tasks ({len(UNSEEN)}, in {len(CELLS) - 2} cells) are unseen."
VARIANTS = {"ablation": "The recipe without each of its parts", "cadence": "The recipe evaluated more or less often"}
TABLES = (
    Item("tab-arms", ("final",), tab_arms),
    Item("tab-steering", ("final",), _table("tab-steering", "Arms on each task", "final", SEEN)),
    Item("tab-verdicts", ("final", "hindsight", "published"), tab_verdicts),
    *(
        Item(f"tab-{name}", ("final", name), _beside_recipe(f"tab-{name}", title, name))
        for name, title in VARIANTS.items()
    ),
    Item("tab-choice", ("tuning",), tab_choice),
    Item("tab-screening", ("tuning",), _table("tab-screening", "All settings on the two tuning tasks", "tuning")),
    Item("tab-hindsight", ("hindsight",), _table("tab-hindsight", "AdamW at every λ", "hindsight")),
    Item("tab-published", ("published",), _table("tab-published", "Published accelerators, tuned alike", "published")),
    *(Item(f"tab-{name}-cells", (name,), _table(f"tab-{name}-cells", title, name)) for name, title in VARIANTS.items()),
)
