"""What became of each cell's runs: when they memorised, when they grokked, and what they know at the end."""

from collections.abc import Mapping
from math import inf, isfinite, nan
from typing import Any

from grokscope.law import ridge_timing
from grokscope.runs.records import RunRecord
from grokscope.stats import kaplan_meier, share
from grokscope.studies import (
    Claim,
    Estimand,
    Evidence,
    Item,
    Measured,
    Part,
    Quantity,
    Records,
    Rule,
    Selection,
    Stratum,
    cell,
    rule,
)
from grokscope.studies.reduction import greatest, mean, median
from grokscope.studies.tasks.experiments import CELLS
from grokscope.tasks import named_task, train_size
from grokscope.view.table import Cell, Column, Row, Table, text

__all__ = ["CLAIMS", "TABLES", "chance", "held_out", "highest_validation", "outcome"]

HALF = 0.5
TWICE = 2  # chance: the largest of some 1,600 evaluations of 8 runs lies above it, by less than a half
TIMING = 0.02  # of the closed form
APART = 2  # times as late as memorising


def outcome(name: str) -> Quantity:
    """Of a cell's runs: shares that memorised and grokked, median steps of both, and accuracies at the end."""
    return Quantity("outcome", Selection((CELLS[name].experiment,), configuration=name), _outcome)


def held_out(name: str, group: str) -> Quantity:
    """The largest accuracy, over a cell's runs and evaluations, on rows that are held out."""
    runs = Selection((CELLS[name].experiment,), configuration=name)
    return Quantity("largest accuracy", runs, _largest, options={"column": f"{group}_accuracy"})


def highest_validation(name: str) -> Quantity:
    """The largest validation accuracy over a cell's runs and evaluations."""
    runs = Selection((CELLS[name].experiment,), configuration=name)
    return Quantity("largest accuracy", runs, _largest, options={"column": "validation_accuracy"})


def chance(name: str) -> float:
    """Validation accuracy of the best guess in a control: 1/n in a random table.

    In a Latin square an answer that is known in the same row or column is ruled out. With a share f of the cells known
    each of the n answers is left with a chance of (1 − f)², so that one of n(1 − f)² is guessed.

    >>> [round(chance(name), 4) for name in ("random", "latin")]
    [0.0103, 0.021]
    """
    symbols = named_task(CELLS[name].task).symbols
    left = (1 - CELLS[name].train_fraction) ** 2 if name == "latin" else 1.0
    return 1 / (symbols * left)


def _outcome(records: Records) -> Measured:
    """Medians by Kaplan–Meier: a run that has not got there is later than its last evaluation."""
    events = [record.timeline for record in records.values()]
    memorized, grokked = ([getattr(one, name) for one in events] for name in ("memorized", "grokked"))
    last = [one.last for one in events]
    parts: dict[str, Part] = {
        "runs": len(records),
        "memorised": share(sum(step is not None for step in memorized), len(events)) if events else None,
        "memorised step": _median(memorized, last),
        "grokked": share(sum(step is not None for step in grokked), len(events)) if events else None,
        "grokked step": _median(grokked, last),
        "ratio": nan,
        "validation": _mean_at_end(records, "validation_accuracy"),
    }
    steps = [parts[name] for name in ("memorised step", "grokked step")]
    first, second = (getattr(step, "value", nan) for step in steps)
    if first and isfinite(first):
        parts["ratio"] = second / first
    if not records:
        return Measured(missing="No such run is there.")
    return Measured(parts, _in_words(parts), len(records))


def _median(steps: list[int | None], last: list[int]) -> Part:
    if not steps:
        return None
    times = [end if step is None else step for step, end in zip(steps, last, strict=True)]
    return kaplan_meier(times, [step is not None for step in steps]).median


def _in_words(parts: dict[str, Part]) -> str:
    ratio = parts["ratio"]
    times = f", {ratio:.1f} times as late as memorising" if isinstance(ratio, float) and isfinite(ratio) else ""
    grokked = parts["grokked"]
    return f"{getattr(grokked, 'value', nan):.0%} grokked{times}"


def _mean_at_end(records: Records, column: str) -> float:
    values = [float(record.evaluations[column][-1]) for record in records.values() if column in record.evaluations]
    return sum(values) / len(values) if values else nan


def _largest(records: Records, column: str) -> Measured:
    values = [float(value) for record in records.values() for value in record.evaluations.get(column, ())]
    known = [value for value in values if isfinite(value)]
    if not known:
        return Measured(missing="No such run is there.")
    return Measured.of(max(known), f"{max(known):.3f}", len(records))


def _read_events(record: RunRecord) -> Mapping[str, float]:
    """When a run memorised and grokked; infinite where it did not."""
    events = record.timeline
    steps = {"memorised": events.memorized, "grokked": events.grokked}
    found = {f"{name} step": inf if step is None else float(step) for name, step in steps.items()}
    return found | {"groks": float(events.grokked is not None)}


def _derive_ratio(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"ratio": parts["grokked step"] / parts["memorised step"]}


def _read_largest(record: RunRecord, column: str) -> Mapping[str, float]:
    """The largest value of a column over a run's evaluations."""
    known = [float(value) for value in record.evaluations.get(column, ()) if isfinite(value)]
    return {"largest": max(known)} if known else {}


def _read_deviation(record: RunRecord) -> Mapping[str, float]:
    """How far a run's grok step is from the closed form of its own rows and initial weights, relative to it."""
    seen, expected = record.timeline.grokked, ridge_timing(record.spec).grokked
    return {"deviation": inf if seen is None or expected is None else abs(seen / expected - 1)}


def _runs(name: str) -> Stratum:
    """All runs of a cell."""
    return Stratum(name, Selection((CELLS[name].experiment,), configuration=name))


def _groks(name: str, statement: str, where: str, reported: str) -> Claim:
    """Most runs grok, long after they have memorised."""
    estimand = Estimand(
        "share that groks, and how much later than it memorises",
        (_runs(name),),
        _read_events,
        {"share": mean("groks")} | {column: median(column) for column in ("memorised step", "grokked step")},
        "{share:.0%} grok, {ratio:.1f} times as late",
        (("share", "ratio"), ".2f"),
        derive=_derive_ratio,
    )
    shown = rule.all_of(rule.above(HALF, "share"), rule.at_least(APART, "ratio"))
    return Claim(f"{name}-groks", statement, where, reported, estimand, Rule.of_many(shown), "tab-tasks")


def _read_composing(record: RunRecord) -> Mapping[str, float]:
    """Whether a run grokked, and its largest accuracy on facts out of distribution."""
    largest = _read_largest(record, "out_of_distribution_accuracy")
    return {"groks": float(record.timeline.grokked is not None), **largest} if largest else {}


def _read_control(record: RunRecord) -> Mapping[str, float]:
    """Whether a run memorised, and its largest validation accuracy."""
    largest = _read_largest(record, "validation_accuracy")
    memorised = float(record.timeline.memorized is not None)
    return {"memorised": memorised, **largest} if largest else {}


def _stays_at_chance(name: str, statement: str) -> Claim:
    """Every run memorises, and none is ever right more than twice as often as the best guess."""
    limit = round(TWICE * chance(name), 4)
    estimand = Estimand(
        "memorised without generalising",
        (_runs(name),),
        _read_control,
        {"memorised": mean("memorised"), "highest": greatest("largest")},
        "{memorised:.0%} memorised, largest validation accuracy {highest:.3f}",
        (("memorised", "highest"), ".3f"),
    )
    both = rule.all_of(rule.at_least(1, "memorised"), rule.below(limit, "highest"))
    where, reported = "a control: there is nothing to generalise", f"chance, {100 * chance(name):.1f} %"
    return Claim(f"{name}-at-chance", statement, where, reported, estimand, Rule.of_many(both), "tab-tasks")


SOONER = Estimand(
    "median grok steps with few and many inferred facts",
    (_runs("two-hop-3"), _runs("two-hop-7")),
    _read_events,
    {"few": median("grokked step", "two-hop-3"), "many": median("grokked step", "two-hop-7")},
    "{few:,.0f} and {many:,.0f} steps",
    (("few", "many"), ",.0f"),
)
OUT = Estimand(
    "share that groks, and largest accuracy on facts out of distribution",
    (_runs("two-hop-7"),),
    _read_composing,
    {"share": mean("groks"), "largest": greatest("largest")},
    "{share:.0%} grok, largest accuracy out of distribution {largest:.3f}",
    (("share", "largest"), ".3f"),
)
RIDGE = Estimand(
    "largest deviation from the closed form",
    (Stratum("ridge", Selection(("ridge",))),),
    _read_deviation,
    {"largest": greatest("deviation")},
    "{largest:.2%}",
    ("largest", ".2%"),
)
CLAIMS = (
    _groks(
        "parity",
        "A plain MLP learns sparse parity long after it has memorised its training rows.",
        "Merrill, Tsilivis and Shukla 2023",
        "grokking",
    ),
    _groks(
        "quadratic",
        "A network with quadratic neurons and a squared error groks modular addition.",
        "Gromov 2023",
        "grokking",
    ),
    _groks(
        "two-hop-7",
        "With many inferred facts a transformer learns to compose two hops long after it has memorised.",
        "Wang et al. 2024",
        "grokking in distribution",
    ),
    Claim(
        "two-hop-ratio",
        "More inferred facts for each atomic one let it grok sooner.",
        "Wang et al. 2024",
        "sooner",
        SOONER,
        Rule.of_many(rule.falling("few", "many")),
        "tab-tasks",
    ),
    Claim(
        "two-hop-out",
        "When it has learnt to compose, it still cannot compose facts that it has not seen composed.",
        "Wang et al. 2024",
        "no out-of-distribution generalisation",
        OUT,
        # A model that composes nothing says nothing about facts out of distribution.
        Rule.of_many(rule.all_of(rule.above(HALF, "share"), rule.below(HALF, "largest"))),
        "tab-tasks",
    ),
    Claim(
        "ridge-timing",
        "Ridge regression groks when its closed form says.",
        "Levi, Beck and Bar-Sinai 2023",
        "exact",
        RIDGE,
        Rule.of_many(rule.below(TIMING, "largest")),
        "tab-tasks",
    ),
    _stays_at_chance("latin", "A random Latin square is memorised and never generalised."),
    _stays_at_chance("random", "A random table is memorised and never generalised."),
)

COLUMNS = (
    Column("What is learnt"),
    Column("Task"),
    Column("Rows"),
    Column("Trained on"),
    Column("n"),
    Column("Memorised", digits=2),
    Column("Median memorised step"),
    Column("Grokked", digits=2),
    Column("Median grok step"),
    Column("Budget"),
    Column("Validation accuracy at the end", digits=3),
    Column("Largest validation accuracy", digits=3),
    Column("Largest accuracy out of distribution", digits=3),
)


def tab_tasks(evidence: Evidence) -> Table:
    """One row for each cell of which there is a run."""
    shown = [name for name in CELLS if outcome(name).runs.select(evidence.records)]
    return Table(
        "tab-tasks",
        "tab:tasks",
        "Every kind of task: when runs memorise and when they grok",
        COLUMNS,
        tuple(_row(evidence, name) for name in shown),
        (
            "Medians by Kaplan–Meier with 95 % intervals: a run that has not memorised or grokked counts as later than "
            "its last evaluation; *never* is within the budget. Shares by Clopper–Pearson. Runs end 2,000 steps "
            "after grokking. Of real answers a squared error below the task's share of their variance counts as right.",
        ),
    )


def _row(evidence: Evidence, name: str) -> Row:
    record: RunRecord = next(iter(outcome(name).runs.select(evidence.records).values()))
    task = named_task(record.spec.task)
    found = outcome(name)
    groups = [cell(evidence, held_out(name, group)) for group in task.held_out]
    parts = ("runs", "memorised", "memorised step", "grokked", "grokked step")
    return (
        text(CELLS[name].title),
        text(record.spec.task),
        text(task.rows),
        text(train_size(task, record.spec.train_fraction)),
        *(cell(evidence, found, part) for part in parts),
        text(record.spec.training.steps),
        cell(evidence, found, "validation"),
        cell(evidence, highest_validation(name)),
        groups[0] if groups else Cell(),
    )


TABLES = (Item("tab-tasks", tuple(dict.fromkeys(one.experiment for one in CELLS.values())), tab_tasks),)
