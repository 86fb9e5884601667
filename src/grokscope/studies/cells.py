"""Quantities as cells of a table: the number, its interval and n, beside what the paper reports."""

from math import isfinite, isnan

from grokscope.stats import Estimate
from grokscope.studies.evidence import Evidence
from grokscope.studies.quantity import Bound, Part, Quantity
from grokscope.view.table import Cell, Value

__all__ = ["cell"]

Ends = tuple[float | int, float | int]


def cell(
    evidence: Evidence,
    quantity: Quantity,
    part: str = "value",
    reported: Value = None,
    reported_interval: Ends | None = None,
) -> Cell:
    """A part of a quantity as a cell; empty where its runs are missing or it is undefined."""
    value, interval, n = _shown(evidence.measure(quantity).parts.get(part))
    return Cell(value, reported, interval, n, reported_interval, quantity.key if value is not None else "")


def _shown(found: Part) -> tuple[Value, tuple[float, float] | None, int | None]:
    """Value, interval and n; an estimate that is infinite was never reached, and its interval may be open."""
    if isinstance(found, Estimate):
        known = not isnan(found.low) and not isnan(found.high)
        return (
            (found.value if isfinite(found.value) else "never"),
            (float(found.low), float(found.high)) if known else None,
            found.items,
        )
    if isinstance(found, Bound):
        return str(found), None, found.items
    if isinstance(found, float) and isnan(found):
        return None, None, None
    return found, None, None
