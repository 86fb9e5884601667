"""The figures: each arm's median on every cell, and what λ did meanwhile."""

from math import isinf, nan

from grokscope.stats import Estimate
from grokscope.studies import Evidence, Item, Measured, Quantity, Records, Selection
from grokscope.studies.steering.experiments import CELLS, TUNING_TASKS, UNSEEN
from grokscope.studies.steering.quantities import arms_run, outcome
from grokscope.view.charts.figure import Figure, Panel, Series

__all__ = ["FIGURES"]

ROLES = ("fixed", "fsd", "mem", "grokked", "norm", "rank")
BASE_OF = {cell.task: cell.name for cell in CELLS.values() if cell.condition == "base"}
TASKS = (*UNSEEN, *TUNING_TASKS)
MOST_STEPS = 3000  # of λ that are drawn


def fig_steering(evidence: Evidence) -> Figure:
    """Median steps to stable generalisation by Kaplan–Meier with 95 % intervals, and how many runs get there."""
    panels = tuple(panel for task in TASKS if (panel := _medians(evidence, task)) is not None)
    notes = ("Median by Kaplan–Meier with its 95 % interval; beside it how many runs are stable of how many.",)
    missing = () if panels else ("None of its runs is there.",)
    title = "Steps to stable generalisation by arm"
    return Figure("fig-steering", "fig:steering", title, panels, (*notes, *missing), columns=2, panel_size=(4.2, 2.8))


def _medians(evidence: Evidence, task: str) -> Panel | None:
    experiment = "final"
    names = [name for name in arms_run(evidence, experiment) if name.partition("/")[0] == BASE_OF[task]]
    if not names:
        return None
    return Panel(
        task,
        "arm",
        "median steps",
        series=tuple(_bar(evidence, experiment, name, place) for place, name in enumerate(names)),
        x_ticks=tuple((place, str(place + 1)) for place in range(len(names))),
        x_range=(-0.6, len(names) - 0.4),
    )


def _bar(evidence: Evidence, experiment: str, name: str, place: int) -> Series:
    quantity = outcome(experiment, name)
    found = evidence.measure(quantity)
    steps = found.parts["steps"]
    assert isinstance(steps, Estimate)
    value = nan if isinf(steps.value) else steps.value
    low, high = (value if isinf(end) else end for end in (steps.low, steps.high))
    return Series(
        name.partition("/")[2],
        "bars",
        ROLES[place % len(ROLES)],
        "run",
        x=(place,),
        y=(value,),
        low=(low,),
        high=(high,),
        texts=(f"{round(found.number('stable') * found.n)}/{found.n}",),
        width=0.7,
        quantity=quantity.key,
    )


def decay_paths(experiment: str, name: str) -> Quantity:
    """What λ did in each of an arm's runs: how many runs took each path."""
    return Quantity("paths of λ", Selection((experiment,), configuration=name), _paths, options={"until": MOST_STEPS})


def _paths(records: Records, until: int) -> Measured:
    """Paths as text, `0: 5, 500: 1`: each evaluation at which λ is another than before, and λ from there on."""
    found: dict[str, int] = {}
    for record in records.values():
        changes, was = list[str](), None
        for step, decay in zip(record.evaluations["step"], record.evaluations["weight_decay"], strict=True):
            if step <= until and decay != was:
                changes.append(f"{int(step)}: {float(decay):.6g}")
                was = decay
        path = ", ".join(changes)
        found[path] = found.get(path, 0) + 1
    return Measured(found, n=len(records))


def fig_decay(evidence: Evidence) -> Figure:
    """λ of every run of each arm by step: what each way of steering did. Runs with one path share a line."""
    panels = []
    for task in TASKS:
        names = [name for name in arms_run(evidence, "final") if name.partition("/")[0] == BASE_OF[task]]
        series = tuple(line for place, name in enumerate(names) for line in _lines(evidence, name, place))
        panels += [Panel(task, "step", "λ", series=series)] if series else []
    missing = () if panels else ("None of its runs is there.",)
    note = (
        f"λ in force at each evaluation of every run, the first {MOST_STEPS:,} steps; runs with one path share a line."
    )
    title = "What λ did in each run"
    return Figure("fig-decay", "fig:decay", title, tuple(panels), (note, *missing), columns=2, panel_size=(4.2, 2.6))


def _lines(evidence: Evidence, name: str, place: int) -> list[Series]:
    """One line for each path, to the last step that is drawn."""
    quantity, arm = decay_paths("final", name), name.partition("/")[2]
    found: list[Series] = []
    for path, count in evidence.measure(quantity).parts.items():
        points = [point.split(": ") for point in path.split(", ")]
        steps, decays = [int(step) for step, _ in points], [float(decay) for _, decay in points]
        found.append(
            Series(
                f"{arm}, {count} runs",
                "step",
                ROLES[place % len(ROLES)],
                "run",
                x=(*steps, MOST_STEPS),
                y=(*decays, decays[-1]),
                legend="" if found else arm,
                quantity=quantity.key,
            )
        )
    return found


FIGURES = (Item("fig-steering", ("final",), fig_steering), Item("fig-decay", ("final",), fig_decay))
