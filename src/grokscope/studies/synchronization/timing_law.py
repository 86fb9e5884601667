"""§6: Δt = C/λ on one run's branches (Table 9), and how far repetitions of one fork are apart."""

from collections.abc import Mapping
from math import isnan
from statistics import pstdev

from grokscope.studies import Claim, Evidence, Item, Measured, Quantity, Records, Rule, Selection, cell, rule
from grokscope.studies.synchronization import intervention, readings
from grokscope.studies.synchronization.forks import law
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.view.numbers import format_number
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


def _span(records: Records, needed: int) -> Measured:
    """Largest less smallest grok step of repetitions of one fork."""
    found = [float(step) for record in records.values() if (step := record.timeline.grokked) is not None]
    if len(found) < needed:
        return Measured.lacking(len(found), needed, "grokked repetitions of the fork")
    span = max(found) - min(found)
    return Measured.of(
        span,
        format_number(span),
        len(found),
        note=f"Standard deviation {format_number(pstdev(found))}; the repetitions differ in their data order.",
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


CLAIMS = (
    Claim(
        "fork-constant-stable",
        "The stable branches follow Δt = 3,000/λ.",
        "§5.3, §6, Table 9",
        "C = 3,000, R² = 1.00",
        branch_law(STABLE),
        Rule(
            rule.all_of(rule.within(0.2, 3000, "C"), rule.at_least(0.9, "R²")),
            rule.any_of(rule.within(0.2, 3000, "C"), rule.at_least(0.5, "R²")),
        ),
        "tab-timing",
        seeds_law(STABLE),
        over=" over {n} branches",
    ),
    Claim(
        "fork-constant-all",
        "All grokked branches follow Δt = 3,600/λ.",
        "§6, Table 9",
        "C = 3,600, R² = 0.81",
        branch_law(FITTED),
        Rule(
            rule.all_of(rule.within(0.2, 3600, "C"), rule.at_least(0.71, "R²")),
            rule.any_of(rule.within(0.2, 3600, "C"), rule.at_least(0.5, "R²")),
        ),
        "tab-timing",
        seeds_law(FITTED),
        over=" over {n} branches",
    ),
    Claim(
        "rerun-spread",
        "Re-running the identical fork gives grok steps that span 1,100 steps.",
        "§6",
        "1,100",
        Quantity("span of grok steps", Selection(("spread",)), _span, None, {"needed": 5}),
        Rule(rule.any_of(rule.within(0.2, 1100), rule.above(1100)), rule.at_least(500)),
        "tab-timing",
    ),
)
TABLES = (Item("tab-timing", ("fork",), _table_9),)
