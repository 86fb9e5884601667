"""Records as a figure reads them: one run's curve, many seeds' quartiles, a null's band, the paper's points."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import ceil, inf, isfinite, isnan, nan
from typing import Any

import numpy as np

from grokscope.measures.nulls import strongest_mode_chances
from grokscope.runs.records import RunRecord
from grokscope.stats.multinomial import critical_peak
from grokscope.tasks import named_task
from grokscope.timeline import Lead, LeadStatus
from grokscope.view.charts.figure import Numbers, Series
from grokscope.view.table import Cell

__all__ = [
    "OPEN",
    "beginning",
    "curve",
    "ends_of",
    "independent_line",
    "independent_null",
    "lead_of",
    "middle",
    "paper_points",
    "quartiles",
    "shown_until",
    "steps_text",
    "untrained_band",
]

MANY = 20  # untrained runs from which on nine in ten are shown, and not all
OPEN = "An interval that is drawn to one side only has no end on the other: too few of the runs got there."
WORDS = {LeadStatus.NEVER: "never", LeadStatus.NO_GROKKING: "not grokked", LeadStatus.UNMEASURED: "not measured"}


def curve(record: RunRecord | None, column: str, until: int, label: str, role: str) -> Series:
    """A run's column at every look up to a step; empty without the run or the column."""
    rows = _rows(record, column, until) if record else {}
    return Series(label, "line", role, "run", tuple(rows), tuple(rows.values()))


def _rows(record: RunRecord, column: str, until: int) -> dict[int, float]:
    """Step → value, from the log or else from the checkpoints; where it was not measured there is none."""
    part = record.evaluations if column in record.evaluations else record.checkpoints
    rows = zip(part.get("step", []), part.get(column, []), strict=False)
    return {int(step): float(value) for step, value in rows if step <= until and not isnan(value)}


def quartiles(records: Iterable[RunRecord], column: str, until: int, what: str, role: str) -> Series:
    """Median and quartiles over runs, at the looks that at least half of them have; empty for fewer than two runs."""
    return middle([_rows(record, column, until) for record in records], what, role)


def middle(curves: Sequence[Mapping[int, float]], what: str, role: str) -> Series:
    """Median and quartiles of some curves, at the steps that at least half of them have."""
    known = [rows for rows in curves if rows]
    if len(known) < 2:
        return Series(what, "line", role, "seeds")
    steps = sorted({step for rows in known for step in rows})
    values = {step: [rows[step] for rows in known if step in rows] for step in steps}
    kept = {step: found for step, found in values.items() if 2 * len(found) >= len(known)}
    low, median, high = np.array([np.quantile(found, (0.25, 0.5, 0.75)) for found in kept.values()]).T.tolist()
    label, entry = f"{what}, median and quartiles of {len(known)} seeds", f"median and quartiles, {len(known)} seeds"
    return Series(label, "line", role, "seeds", tuple(kept), tuple(median), tuple(low), tuple(high), legend=entry)


def paper_points(points: Mapping[Any, Any], label: str = "paper", role: str = "theory") -> Series:
    """What the paper prints, where it prints a number."""
    known = {x: y for x, y in points.items() if isinstance(y, int | float)}
    return Series(label, "points", role, "paper", tuple(known), tuple(known.values()))


def shown_until(records: Iterable[RunRecord | None], least: int) -> int:
    """Where a plot over steps may end: half again as late as the latest grokking, or `least`; a whole thousand."""
    known = [record for record in records if record is not None]
    steps = [step for record in known if (step := record.timeline.grokked) is not None]
    last = max((record.timeline.last for record in known), default=least)
    return min(1000 * ceil(max(1.5 * max(steps, default=0), least) / 1000), max(last, least))


def beginning(until: int, records: Iterable[RunRecord]) -> tuple[str, ...]:
    """The note that not all steps are shown; none if they are."""
    last = max((record.timeline.last for record in records), default=0)
    return (f"The first {until:,} of {last:,} steps are shown.",) if last > until else ()


def ends_of(cells: Sequence[Cell]) -> tuple[Numbers, Numbers, Numbers]:
    """Values and ends of intervals of cells; NaN where there is no number, no interval, or no end to it."""
    values = tuple(float(cell.ours) if isinstance(cell.ours, int | float) else nan for cell in cells)
    lows, highs = (tuple(_end(cell, end) for cell in cells) for end in (0, 1))
    return values, lows, highs


def _end(cell: Cell, end: int) -> float:
    value = cell.interval[end] if cell.interval else inf
    return value if isfinite(value) else nan


def lead_of(lead: Lead | None) -> tuple[float, str]:
    """A lead as a number, or NaN and the word for why there is none; None is a run that was not trained."""
    if lead is None:
        return nan, "no run"
    if lead.steps is None:
        return nan, WORDS.get(lead.status, "")
    return float(lead.steps), "0" if lead.steps == 0 else ""


def untrained_band(records: Iterable[RunRecord], column: str, until: int) -> Series:
    """Untrained networks of the same kind: the runs' own first look. All, or of many the middle nine in ten."""
    first = [next(iter(rows.items())) for record in records if (rows := _rows(record, column, until))]
    values = [value for step, value in first if step == 0]
    if len(values) < 2:
        return Series("untrained", "band", "null", "null")
    ends = np.quantile(values, (0.05, 0.95)) if len(values) >= MANY else (min(values), max(values))
    low, high = (float(end) for end in ends)
    label = f"untrained, {'90 %' if len(values) >= MANY else 'range'} of {len(values)} networks"
    return Series(label, "band", "null", "null", (0, until), (), (low, low), (high, high))


def independent_line(record: RunRecord) -> Series:
    """The exact 95 % point of FSD for independent neurons."""
    level = independent_null(record.spec.task, record.spec.architecture.mlp_width)
    return Series("independent neurons, 95 %", "horizontal", "null", "null", (), (level,))


@lru_cache(maxsize=16)
def independent_null(task: str, neurons: int, significance: float = 0.05) -> float:
    """The FSD that independent neurons whose means are noise exceed with this chance at most: exact.

    FSD = (peak/neurons − c)/(1 − c), and the peak is the largest of multinomial counts (`stats.peak_tail`).

    >>> round(independent_null("S5", 512), 3)
    0.133
    """
    dimensions = tuple(int(dimension) for dimension in named_task(task).basis().modes.dimensions)
    chances, chance = strongest_mode_chances(dimensions), 1 / len(dimensions)
    peak = critical_peak(neurons, chances, significance) - 1  # the least that is significant is one more
    return (peak / neurons - chance) / (1 - chance)


def steps_text(step: int | None) -> str:
    """A step in a sentence."""
    return "never" if step is None else f"at step {step:,}"
