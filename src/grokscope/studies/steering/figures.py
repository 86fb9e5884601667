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


def decay_over_time(experiment: str, name: str) -> Quantity:
    """The mean λ in force over an arm's runs, at each evaluation."""
    return Quantity("mean λ", Selection((experiment,), configuration=name), _decay, options={"most_steps": MOST_STEPS})


def _decay(records: Records, most_steps: int) -> Measured:
    sums: dict[int, list[float]] = {}
    for record in records.values():
        for step, decay in zip(record.evaluations["step"], record.evaluations["weight_decay"], strict=True):
            if step <= most_steps:
                sums.setdefault(int(step), []).append(float(decay))
    return Measured({str(step): sum(own) / len(own) for step, own in sorted(sums.items())}, n=len(records))


def fig_decay(evidence: Evidence) -> Figure:
    """The mean λ over each arm's runs by step: what each way of steering did."""
    panels = []
    for task in TASKS:
        experiment = "final"
        names = [name for name in arms_run(evidence, experiment) if name.partition("/")[0] == BASE_OF[task]]
        series = tuple(_line(evidence, experiment, name, place) for place, name in enumerate(names))
        panels += [Panel(task, "step", "mean λ", series=series)] if series else []
    missing = () if panels else ("None of its runs is there.",)
    note = f"λ in force at each evaluation, averaged over the runs; the first {MOST_STEPS:,} steps."
    title = "What λ did"
    return Figure("fig-decay", "fig:decay", title, tuple(panels), (note, *missing), columns=2, panel_size=(4.2, 2.6))


def _line(evidence: Evidence, experiment: str, name: str, place: int) -> Series:
    quantity = decay_over_time(experiment, name)
    found = evidence.measure(quantity)
    steps = tuple(int(step) for step in found.parts)
    return Series(
        name.partition("/")[2],
        "step",
        ROLES[place % len(ROLES)],
        "seeds",
        x=steps,
        y=tuple(found.number(str(step)) for step in steps),
        quantity=quantity.key,
    )


FIGURES = (Item("fig-steering", ("final",), fig_steering), Item("fig-decay", ("final",), fig_decay))
