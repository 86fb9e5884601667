"""§6: Δt = C/λ on one run's branches (Table 9), and how far repetitions of one fork are apart."""

from collections.abc import Mapping
from math import isnan
from typing import Any

from grokscope.runs.records import RunRecord
from grokscope.studies import (
    Claim,
    Estimand,
    Evidence,
    Item,
    Measured,
    Quantity,
    Rule,
    Selection,
    Stratum,
    cell,
    rule,
)
from grokscope.studies.reduction import greatest, least, spread
from grokscope.studies.synchronization import intervention, readings
from grokscope.studies.synchronization.designs import step_or_inf
from grokscope.studies.synchronization.forks import law
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.view.table import Cell, Column, Row, Table, text

__all__ = ["CLAIMS", "TABLES"]

FITTED = ("1", "2", "3", "4", "5")  # λ = 10 is kept out of the reported fit
STABLE = FITTED[:3]


def branch_law(decays: tuple[str, ...]) -> Quantity:
    """The paper's law of the reported run's branches."""
    return law(intervention.branches(*decays), readings.CADENCE)


def seeds_law(decays: tuple[str, ...]) -> Quantity:
    """The paper's law of all seeds' branches."""
    return law(intervention.all_branches(*decays), readings.CADENCE)


def _prediction(found: Mapping[str, Measured], decay: str) -> Measured:
    """Δt at one λ by the law, and how far off it is."""
    predicted = found["law"].number("C") / float(decay)
    error = abs(found["branch"].number("Δt") - predicted)
    return Measured({"predicted": predicted, "error": None if isnan(error) else error}, n=found["law"].n)


def prediction(decay: str) -> Quantity:
    """Δt of a branch by the law that is fitted to λ ≤ 5."""
    return Quantity(
        "Δt by the law",
        intervention.branches(decay),
        _prediction,
        readings.CADENCE,
        {"decay": decay},
        members={"law": branch_law(FITTED), "branch": intervention.branch(decay)},
    )


def _table_9(evidence: Evidence) -> Table:
    """Δt = C/λ fitted to one run's branches, C = mean(λΔt)."""
    reported = REPORTED["tab:timing_fit"]
    rows = [_branch_row(evidence, decay) for decay in intervention.DECAYS]
    rows += [
        _fit_row(evidence, "C, λ ≤ 5", branch_law(FITTED), "all"),
        _fit_row(evidence, "C, λ ≤ 3", branch_law(STABLE), "stable"),
    ]
    if evidence.experiment("fork").keys() - {*intervention.branches(*intervention.DECAYS).names}:
        rows.append(_fit_row(evidence, "C, λ ≤ 5, all seeds", seeds_law(FITTED)))
        rows.append(_fit_row(evidence, "C, λ ≤ 3, all seeds", seeds_law(STABLE)))
    return Table(
        "tab-timing",
        reported.label,
        "Fit of the timing law",
        columns=(*map(Column, ("λ", "Δt observed", "Δt predicted", "Error", "Status", "C")), Column("R²", digits=2)),
        rows=tuple(rows),
        notes=(
            intervention.SEEN,
            "C = mean(λΔt) over the mean Δt of each λ, the paper's estimator; λ = 10 is not in the fit, as reported.",
            "Intervals of C leave out one seed at a time; runs that never grokked are not in the fit.",
            *intervention.untrained_branches(evidence),
        ),
    )


def _branch_row(evidence: Evidence, decay: str) -> Row:
    reported = REPORTED["tab:timing_fit"]
    paper = {column: reported.get(decay, column) for column in reported.columns}
    return (
        text(decay),
        cell(evidence, intervention.branch(decay), "Δt", paper["observed"] or "never"),
        cell(evidence, prediction(decay), "predicted", paper["predicted"]),
        cell(evidence, prediction(decay), "error", paper["error"]),
        cell(evidence, intervention.branch(decay), "outcome", paper["status"]),
        Cell(),
        Cell(),
    )


def _fit_row(evidence: Evidence, title: str, fit: Quantity, row: str = "") -> Row:
    reported = REPORTED["tab:timing_fit"]
    return (
        text(title),
        *(Cell(),) * 4,
        *(
            cell(evidence, fit, part, reported.get(row, name))
            for part, name in (("C", "constant"), ("R²", "r_squared"))
        ),
    )


def _read_grok_step(record: RunRecord) -> Mapping[str, float]:
    return {"grok": step_or_inf(record.timeline.grokked)}


def _derive_span(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"span": parts["latest"] - parts["earliest"]}


CLAIMS = (
    Claim(
        "rerun-spread",
        "Five runs of the identical fork, each with its own data order, grok at steps that span 1,100 steps, within "
        "20 %.",
        "§6",
        "1,100",
        Estimand(
            "span of grok steps",
            (Stratum("repetitions of one fork", Selection(("spread",)), 5),),
            _read_grok_step,
            {"latest": greatest("grok"), "earliest": least("grok"), "spread": spread("grok")},
            "{span:,.0f}",
            ("spread", ",.0f"),
            derive=_derive_span,
        ),
        Rule(rule.within(0.2, 1100, "span")),
        "tab-timing",
    ),
)
TABLES = (Item("tab-timing", ("fork",), _table_9),)
