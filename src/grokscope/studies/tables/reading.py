"""Records as a table reads them: at the paper's looks, by a chosen column, and many seeds as one cell."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import isfinite, isnan, nan
from typing import Any

import numpy as np

from grokscope.runs.records import RunRecord
from grokscope.stats import Estimate, bootstrap, clustered_bootstrap, kaplan_meier, share, sign_test
from grokscope.timeline import Crossing, Flag, Lead, LeadStatus, Timeline
from grokscope.view.table import Cell, Value, estimated

__all__ = [
    "PRINTED_LOOKS",
    "at_or_nan",
    "came",
    "doubts",
    "lead_cell",
    "mean_lead",
    "number",
    "pooled_leads",
    "pooled_steps",
    "pooled_values",
    "precursor",
    "precursor_share",
    "read_by",
    "seen_every",
    "sign_cell",
    "span_of",
    "sync_cell",
]

PRINTED_LOOKS = 500  # steps between the paper's checkpoints, where no other number is printed (§3)
RESAMPLES = 10_000
SEED = 0  # of every bootstrap: the same records give the same bytes


@lru_cache(maxsize=4096)  # every table and claim asks for the same
def seen_every(record: RunRecord, steps: int = PRINTED_LOOKS) -> RunRecord:
    """The run as somebody sees it who looks only so often, and at its start."""
    return _at_looks(record, lambda step: step % steps == 0 or step == min(record.evaluations["step"]))


def read_by(record: RunRecord, column: str) -> RunRecord | None:
    """The run with another column as its FSD, seen only where that was measured; None if nowhere."""
    values = record.checkpoints.get(column, [])
    known = {
        step: value for step, value in zip(record.checkpoints.get("step", []), values, strict=False) if not isnan(value)
    }
    if not known.keys() & set(record.evaluations["step"]):
        return None
    seen = _at_looks(record, lambda step: step in known)
    return replace(seen, evaluations=seen.evaluations | {"fsd": [known[step] for step in seen.evaluations["step"]]})


def _at_looks(record: RunRecord, wanted: Callable[[float | int], bool]) -> RunRecord:
    rows = [row for row, step in enumerate(record.evaluations["step"]) if wanted(step)]
    seen = {name: [values[row] for row in rows] for name, values in record.evaluations.items()}
    return replace(record, evaluations=seen)


def came(step: int | None) -> Value:
    """A step, or "never": a step that did not come is no number."""
    return "never" if step is None else step


def span_of(counts: Iterable[int]) -> str:
    """From the fewest to the most.

    >>> span_of([3, 31, 3]), span_of([4, 4])
    ('3 to 31', '4')
    """
    ends = sorted({*counts})
    return " to ".join(map(str, (ends[:1] + ends[-1:]) if len(ends) > 1 else ends)) or "0"


def number(value: float | int) -> Value:
    """A measured number; None where it is not known."""
    return None if isnan(value) else value


def sync_cell(crossing: Crossing, paper: Value = None) -> Cell:
    """When a measure crossed; empty where nobody looked."""
    return Cell(None if crossing.lead.status is LeadStatus.UNMEASURED else came(crossing.step), paper)


def lead_cell(lead: Lead, paper: Value = None) -> Cell:
    """A lead; "never" where the run grokked without the crossing, "n/a" where there is nothing to lead."""
    words = {LeadStatus.NEVER: "never", LeadStatus.NO_GROKKING: "n/a"}
    return Cell(words.get(lead.status) if lead.steps is None else lead.steps, paper)


def precursor(lead: Lead, paper: Value = None) -> Cell:
    """Whether the crossing came first."""
    if lead.sign is None:
        return Cell("n/a" if lead.status is LeadStatus.NO_GROKKING else None, paper)
    return Cell("tie" if lead.status is LeadStatus.TIES else "yes" if lead.is_precursor else "no", paper)


def doubts(timelines: Mapping[str, Timeline]) -> tuple[str, ...]:
    """A note for each crossing that may mean nothing."""
    found: dict[Flag, list[str]] = {}
    for name, events in timelines.items():
        for flag in events.sync.flags:
            found.setdefault(flag, []).append(name)
    return tuple(f"Synchronised {flag}: {', '.join(names)}." for flag, names in sorted(found.items()))


def pooled_values(values: Iterable[float | int]) -> Cell:
    """The median of many seeds, with its percentile-bootstrap interval; unknown values are not counted."""
    known = [float(value) for value in values if isfinite(value)]
    return estimated(bootstrap(known, np.median, seed=SEED, resamples=RESAMPLES)) if known else Cell()


def pooled_steps(steps: Sequence[int | None], watched: Sequence[int]) -> Cell:
    """The median step of many seeds; of those that did not come it is known only that they came later.

    Percentile bootstrap where all came, else Kaplan–Meier's median with its own interval.
    """
    if not steps:
        return Cell()
    if all(step is not None for step in steps):
        return pooled_values([step for step in steps if step is not None])
    times = [last if step is None else step for step, last in zip(steps, watched, strict=True)]
    return _censored(kaplan_meier(times, [step is not None for step in steps]).median)


def pooled_leads(leads: Iterable[Lead]) -> Cell:
    """The median lead of many seeds; grokking without a crossing is a lead known only to be lower."""
    lags = [lead.lag for lead in leads if lead.lag is not None]
    if not lags:
        return Cell()
    if all(observed for _, observed in lags):
        return pooled_values([-lag for lag, _ in lags])
    found = kaplan_meier([lag for lag, _ in lags], [observed for _, observed in lags]).median
    return _censored(Estimate(-found.value, -found.high, -found.low, found.items))


def _censored(estimate: Estimate) -> Cell:
    """An estimate of which infinity means that it did not come; an interval may be open."""
    cell = estimated(estimate)
    return cell if isfinite(estimate.value) else replace(cell, ours="never")


def mean_lead(leads: Sequence[Lead], clusters: Sequence[Any] | None = None, **printed: Any) -> Cell:
    """The mean lead of the runs that grokked, over runs or over clusters of them, by percentile bootstrap (§5.1).

    Where a run never crossed, its lead enters as the highest it can be, and so the mean is a bound.
    """
    kept = [i for i, lead in enumerate(leads) if lead.lag is not None]
    lags = [lead.lag for lead in leads if lead.lag is not None]
    if not lags:
        return Cell(**printed)
    values = [-lag for lag, _ in lags]
    if clusters is None:
        found = bootstrap(values, seed=SEED)
    else:
        found = clustered_bootstrap(values, [clusters[i] for i in kept], seed=SEED)
    cell = replace(estimated(found), **printed)
    if all(observed for _, observed in lags):
        return cell
    return replace(cell, ours=f"below {found.value:+,.0f}".replace("-", "−"), interval=None)


def precursor_share(leads: Iterable[Lead], paper: Value = None) -> Cell:
    """The share of grokked runs in which the crossing came first, with its Clopper–Pearson interval."""
    counted = [lead for lead in leads if lead.sign is not None]
    return (
        estimated(share(sum(lead.is_precursor for lead in counted), len(counted)), paper)
        if counted
        else Cell(None, paper)
    )


def sign_cell(leads: Iterable[Lead], paper: Value = None) -> Cell:
    """The sign test's p-value; a run that grokked without crossing counts as negative."""
    signs = [lead.sign for lead in leads if lead.sign is not None]
    return Cell(sign_test(signs).p_value, paper, n=len(signs)) if signs else Cell(None, paper)


def at_or_nan(record: RunRecord | None, step: int | None, column: str) -> float | int:
    """A column's value at a step; NaN without a run, a step or a look."""
    return nan if record is None or step is None else record.at(step, column)
