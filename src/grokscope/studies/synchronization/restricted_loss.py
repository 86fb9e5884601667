"""§5.2: FSD against the paper's restricted loss. Table 3 and Figure 1."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from grokscope.runs.records import RunRecord
from grokscope.stats import Estimate, share_that
from grokscope.studies import (
    Claim,
    Estimand,
    Evidence,
    Item,
    Measured,
    Quantity,
    Records,
    Rule,
    Selection,
    Stratum,
    cell,
    rule,
)
from grokscope.studies.reduction import mean, total
from grokscope.studies.synchronization import readings
from grokscope.studies.synchronization.designs import NINE, as_flag, first_reached, one_run_of
from grokscope.studies.synchronization.events import (
    EVERY_EVENT,
    doubt_notes,
    fsd_wins,
    mean_lead,
    median_events,
    run_events,
    unmeasured_runs,
)
from grokscope.studies.synchronization.readings import (
    CADENCE,
    REPORTED_ADDITIONS,
    all_seeds,
)
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.studies.synchronization.series import MEDIANS, OPEN, lead_bars, medians, reported_points
from grokscope.timeline import LeadStatus
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.numbers import format_estimate, format_number
from grokscope.view.table import Cell, Column, Row, Table, not_measured, not_trained, text

__all__ = ["CLAIMS", "FIGURES", "TABLES"]

PAPER = REPORTED["tab:exloss"]
NAMES = tuple(name for name in PAPER.rows if name != "mean")
MEASURES = {"lead": ("FSD", "fsd", -0.2), "restricted lead": ("restricted loss", "restricted", 0.2)}
LEAD = "lead over grokking (steps)"


def _needing_loss(found: Measured, records: Records) -> Measured:
    """The quantity, of which runs are missing where the restricted loss was not measured in all."""
    measured = sum(record.timeline.restricted.lead.status is not LeadStatus.UNMEASURED for record in records.values())
    if measured == len(records):
        return found
    return replace(found, missing=Measured.lacking(measured, len(records), "runs with a restricted loss").missing)


def _fsd_first(records: Records) -> Measured:
    """In how many runs FSD crosses at an earlier evaluation than the restricted loss; never loses to any step."""
    wins = [fsd_wins(record.timeline.sync, record.timeline.restricted) for record in records.values()]
    decided = [win for win in wins if win is not None]
    found = share_that(decided)
    return _needing_loss(
        Measured(
            {"value": found, "FSD first": sum(decided), "runs": len(records)},
            f"{sum(decided)} of {len(decided)}",
            len(decided),
            f"The share is {format_estimate(found, 2)}." if found else "",
        ),
        records,
    )


def fsd_first(runs: Selection) -> Quantity:
    """The share of runs in which FSD comes before the restricted loss."""
    return Quantity("runs in which FSD crosses before the restricted loss", runs, _fsd_first, CADENCE)


def _loss_leads(records: Records) -> Measured:
    """In how many runs the restricted loss falls to 0.5 nats before, at or after grokking, and its mean lead."""
    leads = [record.timeline.restricted.lead for record in records.values()]
    mean = readings.mean_lead(leads)
    signs = [lead.sign for lead in leads if lead.sign is not None]
    shown = format_number(mean.value) if isinstance(mean, Estimate) else str(mean or "undefined")
    never = sum(lead.status is LeadStatus.NEVER for lead in leads)
    return _needing_loss(
        Measured(
            {
                "before grokking": signs.count(1),
                "at grokking": signs.count(0),
                "after grokking": signs.count(-1),
                "grokked": len(signs),
                "mean lead": mean,
            },
            text=f"{signs.count(1)} of {len(leads)} before grokking, mean lead {shown}",
            n=len(leads),
            note=f"{never} grok without it.",
        ),
        records,
    )


def loss_leads(runs: Selection) -> Quantity:
    """How the restricted loss stands to grokking."""
    return Quantity("leads of the restricted loss", runs, _loss_leads, CADENCE)


def _table_3(evidence: Evidence) -> Table:
    """Table 3: FSD against the paper's restricted loss, all at the same evaluations."""
    base, found = evidence.experiment("base"), {name: run_events(name) for name in NAMES}
    own = ("grok", "sync", "lead", "restricted sync", "restricted lead", "wins")
    rows: list[Row] = [
        (text(name), *(cell(evidence, events, part, PAPER.get(name, part.replace(" ", "_"))) for part in own))
        for name, events in found.items()
    ]
    trained = readings.trained_part(REPORTED_ADDITIONS, base)
    rows.append(_mean_row(evidence, trained, "mean, the paper's additions", "mean"))
    rows += [_mean_row(evidence, all_seeds(task), f"mean, {task}, all seeds") for task in _widened(evidence)]
    return Table(
        "tab-exloss",
        PAPER.label,
        "FSD against the restricted loss of the paper",
        columns=(
            *map(Column, ("Run", "Grok", "FSD sync")),
            Column("FSD lead", signed=True),
            Column("Restricted loss sync"),
            Column("Restricted loss lead", signed=True),
            Column("FSD earlier?", digits=2),
        ),
        rows=tuple(rows),
        notes=(
            f"{EVERY_EVENT} The restricted loss is measured at checkpoints. The paper calls this loss ExLoss.",
            "FSD is earlier if it crosses at an earlier evaluation; a crossing that was never reached counts as later.",
            *doubt_notes(evidence, found),
            *not_measured("The restricted loss was", unmeasured_runs(evidence, found, "restricted sync")),
            *not_trained(set(NAMES) - base.keys()),
        ),
    )


def _mean_row(evidence: Evidence, runs: Selection, title: str, row: str = "") -> Row:
    return (
        text(title),
        Cell(),
        Cell(),
        cell(evidence, mean_lead(runs), "value", PAPER.get(row, "lead")),
        Cell(),
        cell(evidence, loss_leads(runs), "mean lead", PAPER.get(row, "restricted_lead")),
        cell(evidence, fsd_first(runs), "value", PAPER.get(row, "wins")),
    )


def _widened(evidence: Evidence) -> list[str]:
    """The additions of which more runs were trained than are reported."""
    return [t for t in readings.widened_tasks(evidence.experiment("base"), NAMES) if t.startswith("add")]


def _figure_1(evidence: Evidence) -> Figure:
    """Figure 1: leads of FSD and of the restricted loss, nine additions."""
    base, runs = evidence.experiment("base"), [run_events(name) for name in NAMES]
    trained = len({*NAMES} & base.keys())
    ours = [
        lead_bars(evidence, runs, part, label, role, offset, 0.38) for part, (label, role, offset) in MEASURES.items()
    ]
    panels = [
        Panel(
            "The paper's runs (p above, seed below)",
            "experiment",
            LEAD,
            series=(
                *(ours if trained else ()),
                *[
                    reported_points(
                        {i + offset: PAPER.get(name, part.replace(" ", "_")) for i, name in enumerate(NAMES)}
                    )
                    for part, (_, _, offset) in MEASURES.items()
                ],
            ),
            x_ticks=tuple((place, _tick(name)) for place, name in enumerate(NAMES)),
        )
    ]
    title = f"How long before grokking: FSD and the restricted loss, {trained} of the paper's {len(NAMES)} additions"
    widened = sorted(_widened(evidence), key=lambda task: int(task.rpartition("mod")[2]))
    if widened:
        counts = [evidence.measure(median_events(all_seeds(task))).n for task in widened]
        panels.append(_by_prime(evidence, widened, counts))
        title += f" and all {sum(counts)} runs of {len(widened)} primes"
    return Figure(
        "fig-exloss",
        "fig:fsd_exloss",
        title,
        tuple(panels),
        notes=(
            f"{EVERY_EVENT} A lead of 0 is a tie; below 0 the crossing came after grokking.",
            *((MEDIANS, OPEN) if widened else ()),
            *not_trained(set(NAMES) - base.keys()),
        ),
        columns=len(panels),
        panel_size=(3.6, 2.5),
    )


def _tick(name: str) -> str:
    task, _, seed = name.rpartition("_s")
    return f"{task.rpartition('mod')[2]}\n{seed}"


def _by_prime(evidence: Evidence, tasks: Sequence[str], counts: Sequence[int]) -> Panel:
    """Medians over all seeds of each prime."""
    named = zip(tasks, counts, strict=True)
    quantities = [median_events(all_seeds(task)) for task in tasks]
    series = (
        medians((cell(evidence, one, part) for one in quantities), role, f"{label}, median of all seeds", offset)
        for part, (label, role, offset) in MEASURES.items()
    )
    return Panel(
        "All seeds of each prime",
        "p",
        LEAD,
        (Series("", "horizontal", "null", "null", (), (0,)), *series),
        x_ticks=tuple((i, f"{task.rpartition('mod')[2]}\nn = {n}") for i, (task, n) in enumerate(named)),
        x_range=(-0.6, len(tasks) - 0.4),
    )


def _read_order(record: RunRecord) -> Mapping[str, float]:
    """Whether FSD crosses before the restricted loss falls and before half of the validation set is solved."""
    found = record.timeline
    if found.restricted.lead.status is LeadStatus.UNMEASURED:
        return {}
    lead, wins = found.restricted.lead, fsd_wins(found.sync, found.restricted)
    half = first_reached(record, "validation_accuracy", 0.5)
    crossing = inf if found.sync.step is None else found.sync.step
    return {
        "FSD first": as_flag(wins),
        "before half": as_flag(found.grokked is not None and crossing < (inf if half is None else half)),
        "before": as_flag(lead.sign == 1),
        "late": as_flag(lead.sign == -1),
        "groks": as_flag(lead.sign is not None),
        "lead": lead.bound,
    }


ORDER = {name: total(name) for name in ("FSD first", "before half", "before", "late", "groks")}
SHARES = {f"share {name}": mean(name) for name in ("FSD first", "before half", "before", "late")}


def _order(name: str, strata: tuple[Stratum, ...], text: str, effect: str) -> Estimand:
    parts = ORDER | SHARES | {"mean lead": mean("lead")}
    return Estimand(name, strata, _read_order, parts, text, (effect, ".0%"), cadence=CADENCE)


CLAIMS = (
    Claim(
        "fsd-before-restricted",
        "FSD crosses before the restricted loss falls to 0.5 nats in all nine configurations.",
        "§5.2, Table 3",
        "9 of 9",
        _order("FSD before the restricted loss", NINE, "{FSD first:.0f} of {n:.0f}", "share FSD first"),
        Rule(rule.more_than(1, "FSD first", operator="=")),
        "tab-exloss",
    ),
    Claim(
        "restricted-never-leads",
        "The restricted loss never falls before grokking.",
        "§5.2, Table 3, Figure 1",
        "0 of 9, mean −167",
        _order(
            "leads of the restricted loss",
            NINE,
            "{before:.0f} of {n:.0f} before grokking, mean lead {mean lead:+,.0f}",
            "share before",
        ),
        Rule(rule.all_of(rule.equals(0, "before"), rule.above(0, "groks"))),
        "fig-exloss",
    ),
    Claim(
        "restricted-late-113",
        "At p = 113 the restricted loss falls only after grokking.",
        "§5.2, Table 3",
        "−1,500",
        _order("restricted loss after grokking", one_run_of("add_mod113"), "{late:.0f} of {n:.0f}", "share late"),
        Rule(rule.more_than(1, "late", operator="=")),
        "tab-exloss",
    ),
    Claim(
        "earliest-predictor",
        "FSD is the earliest available predictor: it crosses before half of the validation set is solved, and before "
        "the restricted loss falls.",
        "Abstract, §5.2",
        "9 of 9",
        _order("FSD before its rivals", NINE, "{before half:.0f} and {FSD first:.0f} of {n:.0f}", "share before half"),
        Rule(rule.every(rule.more_than(1, "value", operator="="), "before half", "FSD first")),
        "tab-exloss",
    ),
)
TABLES = (Item("tab-exloss", ("base",), _table_3),)
FIGURES = (Item("fig-exloss", ("base",), _figure_1),)
