"""Quantities as series of a figure: one run's curve, quartiles of many seeds, a null, leads, what is reported."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import ceil, isfinite, isnan, nan
from typing import Any

import numpy as np

from grokscope.measures.nulls import strongest_mode_chances
from grokscope.runs.records import RunRecord
from grokscope.stats import Estimate, critical_peak
from grokscope.studies import Evidence, Measured, Quantity, Records, Selection
from grokscope.tasks import named_task
from grokscope.view.charts.figure import Series
from grokscope.view.table import Cell

__all__ = [
    "MEDIANS",
    "OPEN",
    "curve",
    "independent_level",
    "independent_line",
    "last_shown",
    "lead_bars",
    "line",
    "medians",
    "quartiles",
    "reported_points",
    "seeds_line",
    "steps_shown",
    "untrained",
    "untrained_band",
]

MANY = 20  # untrained runs from which on nine in ten are shown, and not all
MEDIANS = (
    "All seeds: median lead with 95 % interval (Kaplan–Meier if some runs never synchronised); runs that did not grok "
    "have no lead."
)
OPEN = "A one-sided interval is unbounded on the other side, because too few runs reached the event."
NO_LEAD = {"never": "never", "n/a": "not grokked", "None": "not measured"}


def _rows(record: RunRecord, column: str, minus: str = "") -> dict[int, float]:
    """Step → value, of the evaluations or else of the checkpoints; steps at which it was not measured are left out."""
    part = record.evaluations if column in record.evaluations else record.checkpoints
    values = np.asarray(part.get(column, []), dtype=np.float64)
    values = values - np.asarray(part[minus]) if minus else values
    rows = zip(part.get("step", []), values.tolist(), strict=False)
    return {int(step): value for step, value in rows if not isnan(value)}


def _curve(records: Records, column: str, minus: str = "") -> Measured:
    """A column of one run at every step at which it was measured; the parts are the steps."""
    (record,) = records.values()
    return Measured({str(step): value for step, value in _rows(record, column, minus).items()}, n=1)


def _quartiles(records: Records, column: str, minus: str = "") -> Measured:
    """Median and quartiles over runs at the steps that at least half of them have; none for fewer than two runs."""
    curves = [rows for record in records.values() if (rows := _rows(record, column, minus))]
    if len(curves) < 2:
        return Measured(n=len(curves))
    values = {
        step: [rows[step] for rows in curves if step in rows]
        for step in sorted({step for rows in curves for step in rows})
    }
    kept = {step: found for step, found in values.items() if 2 * len(found) >= len(curves)}
    ends = {step: np.quantile(found, (0.25, 0.5, 0.75)).tolist() for step, found in kept.items()}
    return Measured(
        {str(step): Estimate(middle, low, high, len(kept[step]), 0.5) for step, (low, middle, high) in ends.items()},
        n=len(curves),
    )


def _untrained(records: Records, column: str) -> Measured:
    """A column of untrained networks of the same kind, from step 0 of the runs: its range, of many its middle 90 %."""
    found = [rows[0] for record in records.values() if 0 in (rows := _rows(record, column))]
    if len(found) < 2:
        return Measured(n=len(found))
    low, middle, high = np.quantile(found, (0.05, 0.5, 0.95) if len(found) >= MANY else (0, 0.5, 1)).tolist()
    return Measured.of(Estimate(middle, low, high, len(found), 0.9), n=len(found))


def _independent(records: Records) -> Measured:
    """The exact 95 % point of FSD for independent neurons of the run's model."""
    (record,) = records.values()
    return Measured.of(independent_level(record.spec.task, record.spec.architecture.mlp_width))


@lru_cache(maxsize=16)
def independent_level(task: str, neurons: int) -> float:
    """The FSD that independent neurons whose means are noise exceed with a chance of 0.05 at most: exact.

    FSD = (peak/neurons − c)/(1 − c), and the peak is the largest of multinomial counts (`measures.nulls.peak_tail`).

    >>> round(independent_level("S5", 512), 3)
    0.133
    """
    dimensions = tuple(int(dimension) for dimension in named_task(task).basis().modes.dimensions)
    chances, chance = strongest_mode_chances(dimensions), 1 / len(dimensions)
    peak = critical_peak(neurons, chances, 0.05) - 1  # the least that is significant is one more
    return (peak / neurons - chance) / (1 - chance)


def curve(run: Selection, column: str, **options: str) -> Quantity:
    """A column of one run over steps, or its difference from the column `minus`."""
    return Quantity("curve", run, _curve, None, {"column": column, **options})


def quartiles(runs: Selection, column: str, **options: str) -> Quantity:
    """Median and quartiles of a column over runs, at each step."""
    return Quantity("quartiles", runs, _quartiles, None, {"column": column, **options})


def untrained(runs: Selection, column: str) -> Quantity:
    """What a column is in untrained networks."""
    return Quantity("untrained networks", runs, _untrained, None, {"column": column})


def line(evidence: Evidence, quantity: Quantity, until: int, label: str, role: str) -> Series:
    """One run's curve up to a step; empty without the run."""
    parts = {int(step): value for step, value in evidence.measure(quantity).parts.items() if int(step) <= until}
    values = tuple(value for value in parts.values() if isinstance(value, float))
    return Series(label, "line", role, "run", tuple(parts), values, quantity=quantity.key)


def seeds_line(evidence: Evidence, quantity: Quantity, until: int, what: str, role: str) -> Series:
    """Median and quartiles over seeds up to a step; empty for fewer than two runs."""
    found = evidence.measure(quantity)
    kept = {int(step): at for step, at in found.parts.items() if int(step) <= until and isinstance(at, Estimate)}
    if not kept:
        return Series(what, "line", role, "seeds")
    middle, low, high = (tuple(getattr(at, end) for at in kept.values()) for end in ("value", "low", "high"))
    label, entry = f"{what}, median and quartiles of {found.n} seeds", f"median and quartiles, {found.n} seeds"
    return Series(label, "line", role, "seeds", tuple(kept), middle, low, high, legend=entry, quantity=quantity.key)


def untrained_band(evidence: Evidence, quantity: Quantity, until: int) -> Series:
    """The range of untrained networks as a band; empty for fewer than two."""
    found = evidence.measure(quantity).estimate
    if found is None:
        return Series("untrained", "band", "null", "null")
    return Series(
        f"untrained, {'90 %' if found.items >= MANY else 'range'} of {found.items} networks",
        "band",
        "null",
        "null",
        x=(0, until),
        low=(found.low,) * 2,
        high=(found.high,) * 2,
        quantity=quantity.key,
    )


def independent_line(evidence: Evidence, run: Selection) -> tuple[Series, ...]:
    """The level of independent neurons; none without the run."""
    quantity = Quantity("FSD that independent neurons exceed in 5 %", run, _independent)
    level = evidence.measure(quantity).number()
    if isnan(level):
        return ()
    return (Series("independent neurons, 95 %", "horizontal", "null", "null", (), (level,), quantity=quantity.key),)


def lead_bars(
    evidence: Evidence,
    runs: Sequence[Quantity],
    part: str,
    label: str,
    role: str,
    offset: float = 0.0,
    width: float = 0.8,
) -> Series:
    """Leads of single runs side by side; in words where there is none."""
    found = [evidence.measure(quantity) for quantity in runs]
    leads = [one.parts.get(part) for one in found]
    return Series(
        label,
        "bars",
        role,
        "run",
        x=tuple(place + offset for place in range(len(runs))),
        y=tuple(float(lead) if isinstance(lead, int | float) else nan for lead in leads),
        texts=tuple(
            "no run" if one.missing else "0" if lead == 0 else NO_LEAD.get(str(lead), "")
            for one, lead in zip(found, leads, strict=True)
        ),
        width=width,
        quantity="; ".join(quantity.key for quantity in runs),
    )


def medians(cells: Iterable[Cell], role: str, label: str, offset: float = 0.0) -> Series:
    """Medians over seeds side by side, with the ends of their intervals that are known; "never" as a word."""
    found = list(cells)
    lows, highs = (tuple(_end(cell, end) for cell in found) for end in (0, 1))
    return Series(
        label,
        "points",
        role,
        "seeds",
        x=tuple(place + offset for place in range(len(found))),
        y=tuple(float(cell.ours) if isinstance(cell.ours, int | float) else nan for cell in found),
        low=lows,
        high=highs,
        texts=tuple("never" if cell.ours == "never" else "" for cell in found),
        quantity="; ".join(cell.quantity for cell in found if cell.quantity),
    )


def _end(cell: Cell, end: int) -> float:
    value = cell.interval[end] if cell.interval else nan
    return value if isfinite(value) else nan


def reported_points(points: Mapping[Any, Any], label: str = "paper") -> Series:
    """What the paper reports, where it reports a number."""
    known = {x: y for x, y in points.items() if isinstance(y, int | float)}
    return Series(label, "points", "theory", "paper", tuple(known), tuple(known.values()))


def last_shown(records: Iterable[RunRecord], least: int) -> int:
    """Where a plot over steps may end: half again as late as the latest grokking, or `least`; a whole thousand."""
    known = list(records)
    steps = [step for record in known if (step := record.timeline.grokked) is not None]
    last = max((record.timeline.last for record in known), default=least)
    return min(1000 * ceil(max(1.5 * max(steps, default=0), least) / 1000), max(last, least))


def steps_shown(until: int, records: Iterable[RunRecord]) -> tuple[str, ...]:
    """The note that not all steps are shown; none if they are."""
    last = max((record.timeline.last for record in records), default=0)
    return (f"The first {until:,} of {last:,} steps are shown.",) if last > until else ()
