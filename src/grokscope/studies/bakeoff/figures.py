"""The bake-off as a figure: each arm's median steps to grok with its interval, task by task."""

from collections.abc import Sequence
from math import isinf, nan

from grokscope.studies.bakeoff.tables import ArmResult, TaskResult
from grokscope.view.charts.figure import Figure, Panel, Series

__all__ = ["fig_bakeoff"]

# Arms of one family share a colour, and differ in λ.
ROLES = {
    "fixed": "fixed",
    "FSD trigger": "fsd",
    "memorisation trigger": "mem",
    "closed loop": "grokked",
    "Grokfast": "norm",
    "orthogonal gradient": "rank",
}


def fig_bakeoff(results: Sequence[TaskResult]) -> Figure:
    """Median steps to grok by Kaplan–Meier with 95 % intervals; beside each the share that grokked."""
    runs = sum(arm.grokked.items for task in results for arm in task.arms)
    return Figure(
        "fig-bakeoff",
        "fig:bakeoff",
        f"The fair bake-off: steps to grok by arm, {runs:,} runs",
        tuple(_panel(task) for task in results),
        ("Median by Kaplan–Meier with its 95 % interval, whose upper end is left out where it is not known.",),
        columns=2,
        panel_size=(3.6, 2.8),
    )


def _panel(task: TaskResult) -> Panel:
    families: dict[str, list[tuple[int, ArmResult]]] = {}
    for place, arm in enumerate(task.arms):
        families.setdefault(_parts(arm)[0], []).append((place, arm))
    ticks = tuple((place, _parts(arm)[1]) for place, arm in enumerate(task.arms))
    series = tuple(_bars(family, arms) for family, arms in families.items())
    return Panel(task.task, "λ", "median steps to grok", series, ticks, x_range=(-0.6, len(ticks) - 0.4))


def _parts(arm: ArmResult) -> tuple[str, str]:
    """The family of an arm, and its λ if it has one."""
    family, _, weight_decay = arm.arm.partition("λ = ")
    return family.rstrip(" ,"), weight_decay


def _bars(family: str, arms: Sequence[tuple[int, ArmResult]]) -> Series:
    places = tuple(place for place, _ in arms)
    steps = [arm.steps for _, arm in arms]
    values = tuple(_known(one.value, nan) for one in steps)
    lows, highs = (
        tuple(_known(end, value) for end, value in zip(ends, values, strict=True))
        for ends in ([one.low for one in steps], [one.high for one in steps])
    )
    counts = tuple(f"{round(arm.grokked.value * arm.grokked.items)}/{arm.grokked.items}" for _, arm in arms)
    role = ROLES.get(family, "accuracy")
    return Series(family, "bars", role, "run", places, values, lows, highs, counts, width=0.7)


def _known(number: float, otherwise: float) -> float:
    return otherwise if isinf(number) else number
