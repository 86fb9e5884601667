"""§5.1: FSD crosses its threshold before grokking. Tables 1 and 2."""

from dataclasses import replace

import numpy as np

from grokscope.specs import ReadingSpec
from grokscope.stats import correlation, known, mean_known, median_time
from grokscope.studies import Claim, Evidence, Item, Measured, Quantity, Records, Rule, Selection, cell, rule
from grokscope.studies.synchronization import readings
from grokscope.studies.synchronization.events import (
    EVERY_EVENT,
    POOLED,
    doubt_notes,
    lead_signs,
    mean_lead,
    median_events,
    run_events,
    unmeasured_runs,
)
from grokscope.studies.synchronization.lead_share import ADDITION_TASKS, shares_by_prime
from grokscope.studies.synchronization.readings import (
    ADDITIONS,
    CADENCE,
    REPORTED_ADDITIONS,
    all_seeds,
    one_run,
)
from grokscope.studies.synchronization.reported import REPORTED, Reported
from grokscope.view.numbers import format_number
from grokscope.view.table import Cell, Column, Row, Table, not_measured, not_trained, text

__all__ = ["CLAIMS", "TABLES"]

RUN = "add_mod97_s42"
BY_SUM, ADDITIVE = "fsd@sum", "fsd@additive"


def _lead_range(records: Records, low: int, high: int) -> Measured:
    """Least and greatest lead; a grokked run that never crosses counts with its upper bound."""
    leads = known(record.timeline.sync.lead.bound for record in records.values())
    if not leads:
        return Measured({}, "none grokked", len(records), "No run grokked.")
    inside = sum(low <= lead <= high for lead in leads)
    return Measured(
        {"least lead": min(leads), "leads inside": inside, "runs": len(records)},
        text=f"{format_number(min(leads))} to {format_number(max(leads))}",
        n=len(leads),
        note=f"{inside} of {len(records)} lie in that range.",
    )


LEAD_RANGE = Quantity("leads inside [500, 3,000]", REPORTED_ADDITIONS, _lead_range, CADENCE, {"low": 500, "high": 3000})


def _level_lead(records: Records) -> Measured:
    """Mean lead of FSD ≥ 0.95 of its mean after grokking."""
    leads = [float(s) for record in records.values() if (s := record.timeline.level.lead.steps) is not None]
    found = mean_known(leads)
    return Measured.of(found, f"mean lead of the level {format_number(found)}", len(leads))


LEVEL_LEAD = Quantity("mean lead of the level after grokking", REPORTED_ADDITIONS, _level_lead)


def _fsd_start(records: Records, step: int) -> Measured:
    """FSD at a step, and the first evaluation at which it crosses 0.80."""
    runs = list(records.values())
    found = mean_known(record.at(step, "fsd") for record in runs)
    crossing = median_time(record.timeline.sync.step for record in runs)
    return Measured.of(
        found,
        text=f"{format_number(found, 2)} at step {step:,}, crossing at {format_number(crossing)}",
        n=len(runs),
        crossing=crossing,
    )


FSD_START = Quantity("FSD at step 1,000, and its crossing", one_run(RUN), _fsd_start, CADENCE, {"step": 1000})


def _fsd_after(records: Records) -> Measured:
    """Mean FSD over the evaluations after grokking, then over runs."""
    means = [mean_known(readings.later_values(record, "fsd")) for record in records.values()]
    found = mean_known(means)
    return Measured.of(found, format_number(found, 2), len(means), "Mean over evaluations after grokking.")


FSD_AFTER = Quantity("mean FSD after grokking", one_run(RUN), _fsd_after)


def _correlations(records: Records, low: float, high: float) -> Measured:
    """Pearson's correlation of FSD and validation accuracy over the evaluations of each run."""
    values = []
    for record in records.values():
        rows = zip(record.evaluations.get("fsd", []), record.evaluations["validation_accuracy"], strict=False)
        pairs = np.array([(x, y) for x, y in rows if x == x and y == y]).reshape(-1, 2)
        values.append(correlation(pairs[:, 0], pairs[:, 1]).value)
    found = known(values)
    if len(found) < len(records):
        return Measured.lacking(len(found), len(records), "runs in which both vary")
    inside = sum(low <= value <= high for value in found)
    return Measured(
        {"least correlation": min(found), "correlations inside": inside},
        text=f"{format_number(min(found), 2)} to {format_number(max(found), 2)}",
        n=len(found),
        note=f"{inside} of {len(found)} lie in that range.",
    )


CORRELATIONS = Quantity(
    "correlations inside [0.49, 0.78]", REPORTED_ADDITIONS, _correlations, options={"low": 0.49, "high": 0.78}
)


def _fsd_2_leads(records: Records, threshold: float) -> Measured:
    """In how many runs FSD_2 crosses at a checkpoint before the first grokked one."""
    measured = sum(bool(known(run.at_checkpoints("fsd_2"))) for run in records.values())
    if measured < len(records):
        return Measured.lacking(measured, len(records), "runs with FSD_2")
    levels = {"fsd_2": threshold, "validation_accuracy": ReadingSpec().grokked}
    found = [[run.first_checkpoint(*level) for level in levels.items()] for run in records.values()]
    leading = sum(grok is not None and step is not None and step < grok for step, grok in found)
    return Measured({"leading": leading}, f"{leading} of {len(found)} lead", len(found), "With k = 2.")


FSD_2 = Quantity(
    "runs in which FSD_2 ≥ 0.80 leads", one_run("add_mod113_s42"), _fsd_2_leads, CADENCE, {"threshold": 0.80}
)


def _table_1(evidence: Evidence) -> Table:
    """Table 1: when each configuration grokked."""
    reported, base = REPORTED["tab:configs"], evidence.experiment("base")
    widened = readings.widened_tasks(base, reported.rows)
    rows: list[Row] = [
        (
            text(name),
            *(text(reported.get(name, column)) for column in ("operation", "modulus", "seed")),
            cell(evidence, run_events(name), "grok", reported.get(name, "grok")),
            cell(evidence, run_events(name), "outcome"),
        )
        for name in reported.rows
    ]
    rows += [
        (text(f"{task}, all seeds"), *[Cell()] * 3, cell(evidence, median_events(all_seeds(task)), "grok"), Cell())
        for task in widened
    ]
    return Table(
        "tab-configs",
        reported.label,
        "Configurations and the step at which each grokked",
        tuple(map(Column, ("Run", "Op", "p", "Seed", "Grok step", "Outcome"))),
        tuple(rows),
        notes=(EVERY_EVENT, *((POOLED,) if widened else ()), *not_trained(reported.rows.keys() - base.keys())),
    )


def _table_2(evidence: Evidence) -> Table:
    """Table 2: the lead of FSD over grokking, and its mean over the additions."""
    reported, base = REPORTED["tab:cross"], evidence.experiment("base")
    names = [name for name in reported.rows if not name.startswith("mean")]
    found = {name: run_events(name, BY_SUM if name.startswith("mult") else "") for name in names}
    rows = [_event_row(evidence, name, quantity, reported) for name, quantity in found.items()]
    rows += _multiplication_rows(evidence)
    rows += _mean_rows(evidence, readings.trained_part(REPORTED_ADDITIONS, base), "the paper's additions", reported)
    widened = readings.widened_tasks(base, names)
    rows += [_pooled_row(evidence, task) for task in widened if task != "mult_mod97"]  # its reading is not the log's
    if any(task.startswith("add") for task in widened):
        rows += _mean_rows(evidence, ADDITIONS, "all additions", None)
    return Table(
        "tab-cross",
        reported.label,
        "Lead of FSD over grokking",
        columns=(
            *map(Column, ("Run", "p", "Grok", "Sync")),
            Column("Lead", signed=True),
            Column("FSD first?", digits=2),
            Column("Sign-test p", digits=4),
        ),
        rows=tuple(rows),
        notes=(
            EVERY_EVENT,
            "A run that grokked without synchronising counts as not preceded; its lead is known only to be below the "
            "value shown.",
            "Multiplication is read by a + b as in the paper, and also by its answer in two bases; its longer run is "
            "read by a + b, and is another run of the same seed, for training is chaotic.",
            *doubt_notes(evidence, found),
            *((POOLED,) if widened else ()),
            *not_measured("FSD in the paper's reading was", unmeasured_runs(evidence, found, "sync")),
            *not_trained(set(names) - base.keys()),
        ),
    )


def _event_row(evidence: Evidence, name: str, quantity: Quantity, reported: Reported) -> Row:
    return (
        text(name),
        text(reported.get(name, "modulus") or 97),
        *(cell(evidence, quantity, part, reported.get(name, part)) for part in ("grok", "sync", "lead", "precursor")),
        Cell(),
    )


def _multiplication_rows(evidence: Evidence) -> list[Row]:
    """The two readings that are not the paper's, and the longer run."""
    name, reported = "mult_mod97_s42", REPORTED["tab:cross"]
    other = {", by answer, additive basis": ADDITIVE, ", by answer, discrete logarithm": ""}
    found = {f"{name}{how}": run_events(name, column) for how, column in other.items()}
    found = {title: events for title, events in found.items() if evidence.measure(events).parts.get("sync") is not None}
    long = run_events(f"{name}_long", BY_SUM, "multiplication")
    last = evidence.measure(long).parts.get("last")
    if isinstance(last, int):
        found[f"{name}, to {last:,} steps"] = long
    return [_event_row(evidence, title, events, reported) for title, events in found.items()]


def _mean_rows(evidence: Evidence, runs: Selection, which: str, reported: Reported | None) -> list[Row]:
    """The mean lead over runs and over primes, with the paper's where it is of the same runs."""
    means = []
    for name in ("mean", "mean by prime"):
        low, high, lead = (reported.get(name, column) if reported else None for column in ("low", "high", "lead"))
        ends = (low, high) if isinstance(low, int | float) and isinstance(high, int | float) else None
        means.append(cell(evidence, mean_lead(runs, name != "mean"), "value", lead, ends))
    papers = {"share": "precursor", "p": "p"}
    signs = (
        cell(evidence, lead_signs(runs), part, reported.get("mean", column) if reported else None)
        for part, column in papers.items()
    )
    return [
        (text(f"mean, {which}"), *[Cell()] * 3, means[0], *signs),
        (text(f"mean by prime, {which}"), *[Cell()] * 3, means[1], Cell(), Cell()),
    ]


def _pooled_row(evidence: Evidence, task: str) -> Row:
    runs = all_seeds(task)
    signs = lead_signs(runs)
    return (
        text(f"{task}, all seeds"),
        Cell(),
        *[cell(evidence, median_events(runs), part) for part in ("grok", "sync", "lead")],
        cell(evidence, shares_by_prime(CADENCE), task) if task in ADDITION_TASKS else cell(evidence, signs, "share"),
        cell(evidence, signs, "p"),
    )


CLAIMS = (
    Claim(
        "lead-signs",
        "Every one of the nine addition configurations synchronises before it groks.",
        "§5.1, Table 2",
        "9 of 9, sign test p = 0.004",
        lead_signs(REPORTED_ADDITIONS),
        Rule(
            rule.more_than(1, "positive", operator="="),
            rule.all_of(rule.below(0.05, "p"), rule.more_than(1, "positive", "negative")),
        ),
        "tab-cross",
        lead_signs(ADDITIONS),
        over="",
    ),
    Claim(
        "lead-range",
        "FSD leads grokking by 500 to 3,000 steps.",
        "Abstract, §5.1, Table 2",
        "500 to 3,000",
        LEAD_RANGE,
        Rule(rule.more_than(1, "leads inside", "runs", "="), rule.above(0, "least lead")),
        "tab-cross",
        replace(LEAD_RANGE, runs=ADDITIONS),
    ),
    Claim(
        "lead-mean",
        "The mean lead is positive with its config-level interval entirely above zero.",
        "§5.1, Table 2",
        "+1,722 [+1,111, +2,333]",
        mean_lead(REPORTED_ADDITIONS),
        Rule(rule.above(0, end="low"), rule.above(0)),
        "tab-cross",
        mean_lead(ADDITIONS),
    ),
    Claim(
        "lead-mean-clustered",
        "The prime-clustered mean lead is positive with its interval entirely above zero.",
        "§5.1, Table 2",
        "+1,740 [+1,240, +2,400]",
        mean_lead(REPORTED_ADDITIONS, by_prime=True),
        Rule(rule.above(0, end="low"), rule.above(0)),
        "tab-cross",
        mean_lead(ADDITIONS, by_prime=True),
    ),
    Claim(
        "lead-size",
        "The mean lead is 1,722 steps.",
        "Abstract, §5.1",
        "+1,722",
        mean_lead(REPORTED_ADDITIONS),
        Rule(rule.contains(1722), rule.contains(1722, "mean over primes")),
        "tab-cross",
        mean_lead(ADDITIONS),
    ),
    Claim(
        "lead-of-level",
        "FSD reaches its post-grokking level 500 to 3,000 steps before grokking.",
        "Abstract",
        "500 to 3,000",
        LEVEL_LEAD,
        Rule(contradiction="The tables' event is FSD ≥ 0.80, the abstract's is another, later one."),
        "tab-cross",
        replace(LEVEL_LEAD, runs=ADDITIONS),
    ),
    Claim(
        "sync-step",
        "FSD of add_mod97_s42 is 0.84 at step 1,000 and first crosses 0.80 at step 1,500.",
        "§5.1, Tables 2 and 8",
        "0.84 at 1,000; crossing at 1,500, and at 2,500 in Table 8",
        FSD_START,
        Rule(
            contradiction="0.84 at step 1,000 is above the threshold first crossed at 1,500, and Table 8 has the "
            "crossing at 2,500."
        ),
        "tab-cross",
        replace(FSD_START, runs=all_seeds("add_mod97")),
    ),
    Claim(
        "fsd-after",
        "FSD stabilises at about 0.97 after grokking.",
        "§5.1",
        "0.97",
        FSD_AFTER,
        Rule(rule.at_least(0.92), rule.at_least(0.80)),
        "tab-cross",
        replace(FSD_AFTER, runs=all_seeds("add_mod97")),
    ),
    Claim(
        "fsd-correlation",
        "FSD and validation accuracy correlate with 0.49 to 0.78.",
        "§5.1",
        "0.49 to 0.78",
        CORRELATIONS,
        Rule(rule.more_than(1, "correlations inside", operator="="), rule.above(0, "least correlation")),
        "tab-cross",
        replace(CORRELATIONS, runs=ADDITIONS),
    ),
    Claim(
        "fsd-2-at-113",
        "At p = 113 the conclusion holds with FSD_2.",
        "§4, Definition 2; §5.4",
        "FSD_2 leads",
        FSD_2,
        Rule(rule.more_than(1, "leading", operator="="), rule.more_than(1 / 2, "leading")),
        "tab-cross",
        replace(FSD_2, runs=all_seeds("add_mod113")),
    ),
)
TABLES = (Item("tab-configs", ("base",), _table_1), Item("tab-cross", ("base", "multiplication"), _table_2))
