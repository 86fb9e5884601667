"""What the answers' tables share: runs by arm, shares, leads, corrected p-values, and cells in a sentence."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from grokscope.runs.records import RunRecord
from grokscope.stats import holm, logrank, share
from grokscope.studies.tables.reading import mean_lead, pooled_leads, precursor_share
from grokscope.timeline import Lead, LeadStatus, Timeline
from grokscope.view.render import cell_text
from grokscope.view.table import Cell, Column, Row, Table, estimated, text

__all__ = [
    "LEAD_COLUMNS",
    "NO_RUNS",
    "adjusted",
    "arm_of",
    "by_arm",
    "counted",
    "empty_row",
    "has_runs",
    "lead_cells",
    "listed",
    "paired_at_random",
    "said",
    "waits_apart",
]

NO_RUNS = "no runs"
LEAD_COLUMNS = (
    Column("Positive lead", digits=2),
    Column("Ties"),
    Column("Never crossed"),
    Column("Mean lead (steps)", signed=True),
    Column("Median lead (steps)", signed=True),
)


def arm_of(name: str) -> str:
    """A run's name in its study without its seed.

    >>> arm_of("S5_f0.7_s42")
    'S5_f0.7'
    """
    return name.rpartition("_s")[0]


def by_arm(study: Mapping[str, RunRecord]) -> dict[str, list[RunRecord]]:
    """A study's records by arm."""
    found: dict[str, list[RunRecord]] = {}
    for name, record in study.items():
        found.setdefault(arm_of(name), []).append(record)
    return found


def counted(hits: Iterable[bool]) -> Cell:
    """The share of runs of which something holds, with its Clopper–Pearson interval; empty without runs."""
    found = list(hits)
    return estimated(share(sum(found), len(found))) if found else Cell()


def lead_cells(leads: Sequence[Lead]) -> Row:
    """The cells of `LEAD_COLUMNS`: of all grokked runs, crossed or not."""
    known = [lead for lead in leads if lead.sign is not None]
    if not known:
        return (Cell(),) * len(LEAD_COLUMNS)
    ties, never = (sum(lead.status is status for lead in known) for status in (LeadStatus.TIES, LeadStatus.NEVER))
    n = len(known)
    return precursor_share(known), Cell(ties, n=n), Cell(never, n=n), mean_lead(known), pooled_leads(known)


def paired_at_random(runs: Sequence[Timeline]) -> Cell:
    """The share of positive leads if each run's grokking is paired with another run's crossing, over all such pairs.

    A crossing that comes early in every run leads grokking whether or not it knows of it: this is how often.
    """
    known = [run for run in runs if run.sync.lead.sign is not None]
    if len(known) < 2:
        return Cell()
    grokked = np.array([run.grokked for run in known], dtype=np.float64)
    crossed = np.array([np.inf if run.sync.step is None else run.sync.step for run in known])
    leads = crossed[None, :] < grokked[:, None]
    others = ~np.eye(len(known), dtype=bool)
    return Cell(float(leads[others].mean()), n=len(known))


def adjusted(p_values: Sequence[float | None]) -> list[tuple[Cell, Cell]]:
    """Each p-value and what Holm's rule makes of it among those that are known; empty where there is none."""
    known = [value for value in p_values if value is not None]
    corrected = iter(holm(known).tolist())
    return [(Cell(), Cell()) if value is None else (Cell(value), Cell(next(corrected))) for value in p_values]


def waits_apart(runs: Sequence[Timeline], others: Sequence[Timeline]) -> float | None:
    """Log-rank p of the grok steps of two arms, runs that did not grok censored; None where an arm has no run."""
    if not runs or not others:
        return None
    both = [*runs, *others]
    # A run that fell apart will not grok: it stays at risk as long as any, and never leaves for its own reasons.
    longest = max(run.last for run in both)
    times = [longest if run.grokked is None else run.grokked for run in both]
    arms = ["these"] * len(runs) + ["others"] * len(others)
    return logrank(times, [run.grokked is not None for run in both], arms).p_value


def empty_row(title: str, columns: int) -> Row:
    """A row that says that there are no runs."""
    return (text(title), text(NO_RUNS), *(Cell(),) * (columns - 2))


def has_runs(row: Row) -> bool:
    """Whether a row is more than its title."""
    return row[1].ours != NO_RUNS


def said(table: Table, row: Row, column: str) -> str:
    """A cell as the table shows it, or "unknown" where it is empty."""
    place = [heading.name for heading in table.columns].index(column)
    return cell_text(row[place], table.columns[place]) or "unknown"


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence as one.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
