"""The bake-off as a figure: each configuration's median steps to grok with its interval, task by task."""

from math import isinf, nan

from grokscope.stats import Estimate
from grokscope.studies import Evidence, Item
from grokscope.studies.bakeoff.quantities import configurations_run, outcome, tasks_run
from grokscope.view.charts.figure import Figure, Panel, Series

__all__ = ["FIGURES"]

# Configurations of one family share a colour, and differ in λ.
ROLES = {
    "fixed": "fixed",
    "FSD trigger": "fsd",
    "memorisation trigger": "mem",
    "closed loop": "grokked",
    "Grokfast": "norm",
    "orthogonal gradient": "rank",
}


def fig_bakeoff(evidence: Evidence) -> Figure:
    """Median steps to grok by Kaplan–Meier with 95 % intervals, and the share that grokked."""
    runs = len(evidence.experiment("bakeoff"))
    return Figure(
        "fig-bakeoff",
        "fig:bakeoff",
        f"Bake-off: steps to grok by configuration, {runs:,} runs",
        tuple(_panel(evidence, task) for task in tasks_run(evidence)),
        ("Median by Kaplan–Meier with its 95 % interval, whose upper end is left out where it is not known.",),
        columns=2,
        panel_size=(3.6, 2.8),
    )


def _panel(evidence: Evidence, task: str) -> Panel:
    families: dict[str, dict[int, str]] = {}
    ticks = []
    for place, name in enumerate(configurations_run(evidence, task)):
        family, _, weight_decay = name.partition("λ = ")
        families.setdefault(family.rstrip(), {})[place] = name
        ticks.append((place, weight_decay))
    return Panel(
        task,
        "λ",
        "median steps to grok",
        series=tuple(_bars(evidence, task, family, names) for family, names in families.items()),
        x_ticks=tuple(ticks),
        x_range=(-0.6, len(ticks) - 0.4),
    )


def _bars(evidence: Evidence, task: str, family: str, names: dict[int, str]) -> Series:
    quantities = [outcome(task, name) for name in names.values()]
    found = [evidence.measure(quantity) for quantity in quantities]
    steps = [one.parts["steps"] for one in found]
    values = [nan if isinf(one.value) else one.value for one in steps if isinstance(one, Estimate)]
    low, high = (
        tuple(
            value if isinf(getattr(one, end)) else getattr(one, end) for value, one in zip(values, steps, strict=True)
        )
        for end in ("low", "high")
    )
    return Series(
        family,
        "bars",
        ROLES.get(family, "accuracy"),
        "run",
        x=tuple(names),
        y=tuple(values),
        low=low,
        high=high,
        texts=tuple(f"{round(one.number('grokked') * one.n)}/{one.n}" for one in found),
        width=0.7,
        quantity="; ".join(quantity.key for quantity in quantities),
    )


FIGURES = (Item("fig-bakeoff", ("bakeoff",), fig_bakeoff),)
