"""The figure: each arm's median steps to grokking and to stable generalisation, setting by setting."""

from math import isfinite, nan

from grokscope.stats import Estimate
from grokscope.studies import Evidence, Item, Measured
from grokscope.studies.accelerators.events import outcome, pattern
from grokscope.studies.accelerators.settings import SETTINGS
from grokscope.studies.accelerators.tables import OWN
from grokscope.view.charts.figure import Figure, Panel, Series

__all__ = ["FIGURES"]

ROLES = {"grokked": "grokked", "stable": "fixed"}
LABELS = {"grokked": "grokking", "stable": "stable generalisation"}
SIDE = {"grokked": -0.12, "stable": 0.12}  # beside each other


def fig_accelerators(evidence: Evidence) -> Figure:
    """Medians by Kaplan–Meier with 95 % intervals on a log scale, and how many runs get there."""
    panels = tuple(_panel(evidence, setting) for setting in SETTINGS)
    notes = (
        "Median by Kaplan–Meier with its 95 % interval; beside it how many runs of how many. An arm of which fewer "
        "than half get there has no point. Arms in the order of the table: "
        + "; ".join(f"{name}: {', '.join(one.arms)}" for name, one in SETTINGS.items())
        + ".",
    )
    title = "Steps to grokking and to stable generalisation in the authors' settings"
    return Figure("fig-accelerators", "fig:accelerators", title, panels, notes, columns=2, panel_size=(4.2, 2.8))


def _panel(evidence: Evidence, setting: str) -> Panel:
    arms = tuple(SETTINGS[setting].arms)
    return Panel(
        setting,
        "arm",
        "median steps",
        series=tuple(_points(evidence, setting, event) for event in ROLES),
        x_ticks=tuple((place, str(place + 1)) for place in range(len(arms))),
        x_range=(-0.6, len(arms) - 0.4),
        log_y=True,
    )


def _points(evidence: Evidence, setting: str, event: str) -> Series:
    one = SETTINGS[setting]
    quantities = [outcome(one.experiment, pattern(setting, arm)) for arm in one.arms]
    rows = [_point(evidence.measure(quantity), event) for quantity in quantities]
    middle, low, high, texts = zip(*rows, strict=True)
    return Series(
        LABELS[event],
        "points",
        ROLES[event],
        "seeds",
        x=tuple(place + SIDE[event] for place in range(len(rows))),
        y=middle,
        low=low,
        high=high,
        texts=texts,
        quantity="; ".join(quantity.key for quantity in quantities),
    )


def _point(found: Measured, event: str) -> tuple[float, float, float, str]:
    """Median, its interval, and how many of how many; an end that is not known is the median itself."""
    steps = found.parts.get(f"{event} steps")
    if not isinstance(steps, Estimate):
        return nan, nan, nan, ""
    value = steps.value if isfinite(steps.value) else nan
    low, high = (end if isfinite(end) else value for end in (steps.low, steps.high))
    return value, low, high, f"{round(found.number(event) * found.n)}/{found.n}"


FIGURES = (Item("fig-accelerators", OWN, fig_accelerators),)
