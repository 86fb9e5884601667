"""The figures: leads by signal, and false alarms against coverage."""

from math import isfinite, nan

from grokscope.stats import Estimate
from grokscope.studies import Evidence, Item, Quantity
from grokscope.studies.signals.catalogue import SIGNALS
from grokscope.studies.signals.experiments import FAMILIES
from grokscope.studies.signals.quantities import EVERY_FAMILY, alarms
from grokscope.view.charts.figure import Figure, Panel, Series

__all__ = ["FIGURES"]

NEEDED = ("groks", "cannot-grok")
KINDS = {"published": "fsd", "matched": "validation"}  # and the colour of each
NUMBERED = ", ".join(f"{place} {one.title}" for place, one in enumerate(SIGNALS, start=1))


def fig_leads(evidence: Evidence) -> Figure:
    """Median lead of every signal with its interval, family by family, at both thresholds."""
    panels = tuple(panel for family in FAMILIES if (panel := _leads(evidence, family)) is not None)
    notes = (
        f"Signals: {NUMBERED}.",
        "Median lead by Kaplan–Meier with its 95 % interval; above 0 the signal comes before grokking. A median that "
        "is not known, because most runs grok without the signal, is not drawn.",
        *(() if panels else ("None of its runs is there.",)),
    )
    title = "By how much signals lead"
    return Figure("fig-leads", "fig:leads", title, panels, notes, columns=2, panel_size=(4.2, 2.6))


def _leads(evidence: Evidence, family: str) -> Panel | None:
    series = tuple(one for kind in KINDS if len(one := _points(evidence, kind, family)))
    if not series:
        return None
    ticks = tuple((place, str(place)) for place in range(1, len(SIGNALS) + 1))
    return Panel(
        FAMILIES[family].title, "signal", "lead (steps)", series, x_ticks=ticks, x_range=(0.4, len(SIGNALS) + 0.6)
    )


def _points(evidence: Evidence, kind: str, family: str) -> Series:
    found = [
        (place, value)
        for place, one in enumerate(SIGNALS, start=1)
        if isinstance(value := evidence.measure(alarms(one.name, (family,))).parts.get(f"{kind} lead"), Estimate)
        and isfinite(value.value)
    ]
    shift = -0.15 if kind == "published" else 0.15
    low, high = ([_end(value, name) for _, value in found] for name in ("low", "high"))
    return Series(
        f"{kind} threshold",
        "points",
        KINDS[kind],
        "seeds",
        x=tuple(place + shift for place, _ in found),
        y=tuple(value.value for _, value in found),
        low=tuple(low),
        high=tuple(high),
        quantity=alarms(SIGNALS[0].name, (family,)).key.replace(SIGNALS[0].name, "each"),
    )


def _end(value: Estimate, name: str) -> float:
    end = float(getattr(value, name))
    return end if isfinite(end) else value.value


def fig_coverage(evidence: Evidence) -> Figure:
    """Share of grokked runs in which a signal leads against its false alarms, at both thresholds."""
    quantities = [(place, alarms(one.name, EVERY_FAMILY)) for place, one in enumerate(SIGNALS, start=1)]
    series = tuple(one for kind in KINDS if len(one := _coverage(evidence, kind, quantities)))
    panel = Panel("All families", "false alarms", "leads", series, x_range=(-0.03, 1.03), y_range=(-0.03, 1.03))
    notes = (
        f"Signals: {NUMBERED}.",
        "Each point is a signal: above, it leads in more of the runs that grok; to the right, it is given in more of "
        "those that cannot, watched for as long.",
        *(() if series else ("None of its runs is there.",)),
    )
    title = "Coverage against false alarms"
    return Figure("fig-coverage", "fig:coverage", title, (panel,) if series else (), notes, panel_size=(4.6, 3.6))


def _coverage(evidence: Evidence, kind: str, quantities: list[tuple[int, Quantity]]) -> Series:
    found = [(place, evidence.measure(one)) for place, one in quantities]
    known = [
        (place, one.number(f"{kind} false"), one.number(f"{kind} share"))
        for place, one in found
        if isinstance(one.parts.get(f"{kind} share"), Estimate) and isinstance(one.parts.get(f"{kind} false"), Estimate)
    ]
    return Series(
        f"{kind} threshold",
        "points",
        KINDS[kind],
        "seeds",
        x=tuple(false for _, false, _ in known),
        y=tuple(share if isfinite(share) else nan for _, _, share in known),
        texts=tuple(str(place) for place, _, _ in known),
        quantity=quantities[0][1].key.replace(SIGNALS[0].name, "each"),
    )


FIGURES = (Item("fig-leads", NEEDED, fig_leads), Item("fig-coverage", NEEDED, fig_coverage))
