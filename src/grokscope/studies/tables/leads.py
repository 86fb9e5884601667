"""Tables of events and leads: configurations, FSD against grokking, and FSD against the restricted loss."""

from collections.abc import Mapping

from grokscope.runs.records import RunRecord
from grokscope.stats import share
from grokscope.studies.evidence import Evidence
from grokscope.studies.synchronization.reported import REPORTED, Reported
from grokscope.studies.tables.reading import (
    PRINTED_LOOKS,
    came,
    doubts,
    lead_cell,
    mean_lead,
    pooled_leads,
    pooled_steps,
    precursor,
    precursor_share,
    read_by,
    seen_every,
    sign_cell,
    sync_cell,
)
from grokscope.timeline import Crossing, LeadStatus, Timeline
from grokscope.view.table import Cell, Column, Row, Table, not_measured, not_trained, text

__all__ = ["tab_configs", "tab_cross", "tab_exloss"]

LOOKS = f"Every event is its first look, every {PRINTED_LOOKS} steps as in the paper."
POOLED = (
    "Rows of all seeds: medians with 95 % percentile-bootstrap intervals, or Kaplan–Meier medians where a step did not "
    "come to every run; shares of the grokked runs with Clopper–Pearson intervals."
)
MULTIPLICATION = {  # the paper's reading first, which is by a + b (§5.6)
    "by a + b": "fsd@sum",
    "by answer, additive basis": "fsd@additive",
}


def tab_configs(evidence: Evidence) -> Table:
    """Table 1: when each configuration grokked."""
    printed, base = REPORTED["tab:configs"], evidence.study("base")
    rows: list[Row] = []
    for name in printed.rows:
        what = [text(printed.get(name, column)) for column in ("operation", "modulus", "seed")]
        events = seen_every(base[name]).timeline if name in base else None
        grok = Cell(came(events.grokked) if events else None, printed.get(name, "grok"))
        rows.append((text(name), *what, grok, Cell(str(events.outcome) if events else None)))
    for task, runs in widened(base, printed).items():
        steps = pooled_steps([run.grokked for run in runs], [run.last for run in runs])
        rows.append((text(f"{task}, all seeds"), text(None), text(None), text(None), steps, Cell()))
    headings = ("Experiment", "Op", "p", "Seed", "Grok step", "Outcome")
    return Table(
        "tab-configs",
        printed.label,
        "Configurations and the step at which each grokked",
        tuple(map(Column, headings)),
        tuple(rows),
        (LOOKS, *_pooled_note(base, printed), *not_trained(printed.rows.keys() - base.keys())),
    )


def widened(base: Mapping[str, RunRecord], printed: Reported) -> dict[str, list[Timeline]]:
    """Timelines by task, of the tasks of which more runs were trained than are printed."""
    members: dict[str, list[str]] = {}
    for name in base:
        members.setdefault(base[name].spec.task, []).append(name)
    return {
        task: [seen_every(base[name]).timeline for name in names]
        for task, names in members.items()
        if set(names) - printed.rows.keys()
    }


def _pooled_note(base: Mapping[str, RunRecord], printed: Reported) -> tuple[str, ...]:
    return (POOLED,) if widened(base, printed) else ()


def tab_cross(evidence: Evidence) -> Table:
    """Table 2: the lead of FSD over grokking, and its mean over the additions."""
    printed, base = REPORTED["tab:cross"], evidence.study("base")
    names = [name for name in printed.rows if not name.startswith("mean")]
    found = {name: _as_printed(base[name]) for name in names if name in base}
    rows = [_cross_row(name, found.get(name), printed) for name in names]
    if "mult_mod97_s42" in base:
        rows += _multiplication_rows(base["mult_mod97_s42"])
    if "mult_mod97_s42_long" in evidence.study("multiplication"):
        long = _as_printed(evidence.study("multiplication")["mult_mod97_s42_long"])
        row = _cross_row(f"mult_mod97_s42, to {long.last:,} steps", long, printed)
        rows.append((row[0], text(97), *row[2:]))
    additions = {name: events for name, events in found.items() if name.startswith("add")}
    rows += _means(additions, {name: base[name].spec.task for name in additions}, printed)
    pooled = widened(base, printed)
    for task, runs in pooled.items():
        if task != "mult_mod97":  # its printed reading is not the log's
            rows.append(_pooled_row(f"{task}, all seeds", runs))
    every = {
        f"{task}/{i}": run for task, runs in pooled.items() if task.startswith("add") for i, run in enumerate(runs)
    }
    if every:
        every |= {name: events for name, events in additions.items() if base[name].spec.task not in pooled}
        tasks = {name: name.split("/")[0].split("_s")[0] for name in every}
        rows += _means(every, tasks, None)
    columns = (
        *map(Column, ("Experiment", "p", "Grok", "Sync")),
        Column("Lead", signed=True),
        Column("Precursor?", digits=2),
        Column("Sign-test p", digits=4),
    )
    notes = (
        LOOKS,
        "A run that grokked without synchronising is no precursor; its lead is known only to be lower.",
        "Multiplication is read by a + b as printed, and beside that by its answer in two bases; its longer run is "
        "read by a + b, and is another run of the same seed, for training is chaotic.",
        *doubts(found),
        *_pooled_note(base, printed),
        *not_measured("FSD in the printed reading was", _unmeasured({n: run.sync for n, run in found.items()})),
        *not_trained(set(names) - base.keys()),
    )
    return Table("tab-cross", printed.label, "Lead of FSD over grokking", columns, tuple(rows), notes)


def _unmeasured(crossings: Mapping[str, Crossing]) -> list[str]:
    return [name for name, crossing in crossings.items() if crossing.lead.status is LeadStatus.UNMEASURED]


def _as_printed(record: RunRecord) -> Timeline:
    """A run's events in the paper's reading: multiplication is read by a + b, where that was measured."""
    if not record.spec.task.startswith("mult"):
        return seen_every(record).timeline
    by_sum = read_by(record, MULTIPLICATION["by a + b"])
    unread = {name: values for name, values in seen_every(record).evaluations.items() if name != "fsd"}
    return (by_sum or RunRecord(record.spec, record.outcome, unread, {})).timeline


def _cross_row(name: str, events: Timeline | None, printed: Reported) -> Row:
    paper = {column: printed.get(name, column) for column in printed.columns}
    modulus = text(paper["modulus"])
    if events is None:
        empty = [Cell(None, paper[column]) for column in ("grok", "sync", "lead", "precursor")]
        return (text(name), modulus, *empty, Cell())
    return (
        text(name),
        modulus,
        Cell(came(events.grokked), paper["grok"]),
        sync_cell(events.sync, paper["sync"]),
        lead_cell(events.sync.lead, paper["lead"]),
        precursor(events.sync.lead, paper["precursor"]),
        Cell(),
    )


def _multiplication_rows(record: RunRecord) -> list[Row]:
    """The two readings that are not the printed one."""
    additive = read_by(record, MULTIPLICATION["by answer, additive basis"])
    found = {"by answer, additive basis": additive, "by answer, discrete logarithm": seen_every(record)}
    rows: list[Row] = []
    for how, read in found.items():
        if read is not None:
            row = _cross_row(f"mult_mod97_s42, {how}", read.timeline, REPORTED["tab:cross"])
            rows.append((row[0], text(97), *row[2:]))
    return rows


def _means(runs: Mapping[str, Timeline], tasks: Mapping[str, str], printed: Reported | None) -> list[Row]:
    """The mean lead over configurations and over primes, with the paper's where it is the same runs'."""
    leads = [events.sync.lead for events in runs.values()]
    clusters = [tasks[name] for name in runs]
    rows: list[Row] = []
    for name, of in (("mean", None), ("mean by prime", clusters)):
        paper = {column: printed.get(name, column) if printed else None for column in REPORTED["tab:cross"].columns}
        interval = (paper["low"], paper["high"]) if printed else None
        mean = mean_lead(leads, of, paper=paper["lead"], paper_interval=interval)
        title = f"{name}, {'printed additions' if printed else 'all additions'}"
        first = of is None
        counted = precursor_share(leads, paper["precursor"]) if first else Cell()
        test = sign_cell(leads, paper["p"]) if first else Cell()
        rows.append((text(title), Cell(), Cell(), Cell(), mean, counted, test))
    return rows


def _pooled_row(title: str, runs: list[Timeline]) -> Row:
    last = [run.last for run in runs]
    leads = [run.sync.lead for run in runs]
    return (
        text(title),
        Cell(),
        pooled_steps([run.grokked for run in runs], last),
        pooled_steps([run.sync.step for run in runs], last),
        pooled_leads(leads),
        precursor_share(leads),
        sign_cell(leads),
    )


def tab_exloss(evidence: Evidence) -> Table:
    """Table 3: FSD against the paper's restricted loss, all seen at the same looks."""
    printed, base = REPORTED["tab:exloss"], evidence.study("base")
    names = [name for name in printed.rows if name != "mean"]
    found = {name: seen_every(base[name]).timeline for name in names if name in base}
    rows = [_exloss_row(name, found.get(name), printed) for name in names]
    rows.append(_exloss_mean("mean, printed additions", list(found.values()), printed))
    pooled = {task: runs for task, runs in widened(base, printed).items() if task.startswith("add")}
    for task, runs in pooled.items():
        rows.append(_exloss_mean(f"mean, {task}, all seeds", runs, None))
    columns = (
        *map(Column, ("Experiment", "Grok", "FSD sync")),
        Column("FSD lead", signed=True),
        Column("ExLoss sync"),
        Column("ExLoss lead", signed=True),
        Column("FSD wins?", digits=2),
    )
    notes = (
        f"{LOOKS} The restricted loss is measured at checkpoints.",
        "FSD wins where it crosses at an earlier look; a crossing that never came loses to one that did.",
        *doubts(found),
        *not_measured("The restricted loss was", _unmeasured({n: run.restricted for n, run in found.items()})),
        *not_trained(set(names) - base.keys()),
    )
    title = "FSD against the restricted loss of the paper"
    return Table("tab-exloss", printed.label, title, columns, tuple(rows), notes)


def _exloss_row(name: str, events: Timeline | None, printed: Reported) -> Row:
    paper = {column: printed.get(name, column) for column in printed.columns}
    if events is None:
        return (text(name), *(Cell(None, value) for value in paper.values()))
    won = _wins(events.sync, events.restricted)
    return (
        text(name),
        Cell(came(events.grokked), paper["grok"]),
        sync_cell(events.sync, paper["sync"]),
        lead_cell(events.sync.lead, paper["lead"]),
        sync_cell(events.restricted, paper["restricted_sync"]),
        lead_cell(events.restricted.lead, paper["restricted_lead"]),
        Cell(None if won is None else "yes" if won else "no", paper["wins"]),
    )


def _wins(first: Crossing, second: Crossing) -> bool | None:
    """Whether the first crossed at an earlier look; None where one was not measured."""
    if first.lead.sign is None or second.lead.sign is None:
        return None
    return first.step is not None and (second.step is None or first.step < second.step)


def _exloss_mean(title: str, runs: list[Timeline], printed: Reported | None) -> Row:
    paper = {column: printed.get("mean", column) if printed else None for column in REPORTED["tab:exloss"].columns}
    won = [_wins(run.sync, run.restricted) for run in runs]
    decided = [win for win in won if win is not None]
    counted = share(sum(decided), len(decided)) if decided else None
    interval = (float(counted.low), float(counted.high)) if counted else None
    wins = Cell(counted.value if counted else None, paper["wins"], interval, len(decided) or None)
    fsd = mean_lead([run.sync.lead for run in runs], paper=paper["lead"])
    loss = mean_lead([run.restricted.lead for run in runs], paper=paper["restricted_lead"])
    return (text(title), Cell(), Cell(), fsd, Cell(), loss, wins)
