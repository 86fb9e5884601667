"""§6, beyond the paper: the timing law with runs that have not yet grokked, and with Δt from FSD's crossing."""

from collections.abc import Mapping
from math import isnan

from grokscope.law import Ending
from grokscope.law.censored import CensoredForm
from grokscope.studies import Claim, Evidence, Item, Measured, Quantity, Rule, Selection, cell, rule
from grokscope.studies.synchronization import crossprime
from grokscope.studies.synchronization.branches import branch_estimand, derive_law
from grokscope.studies.synchronization.experiments import DECAYS
from grokscope.studies.synchronization.forks import Start, law, likely_law, times_to_grok
from grokscope.studies.synchronization.sentences import empty_row, enumerate_parts, quote
from grokscope.view.table import Cell, Column, Row, Table, text

__all__ = ["CLAIMS", "SUPPLEMENTS"]

TASKS = {
    "add_mod53": "crossprime",
    "add_mod97": "crossprime",
    "add_mod131": "crossprime",
    "sub_mod97": "open_questions",
}
STARTS: tuple[Start, ...] = ("fork", "FSD crossing")
CONSTANT, EXPONENT = "C, censored runs in", "α, censored runs in"
COLUMNS = (
    *map(Column, ("Runs", "Forks", "In the fit")),
    Column("Grokked after", digits=2),
    Column("Not yet grokked (censored)", digits=2),
    Column("Unstable (left out)", digits=2),
    Column("Grokked before"),
    Column("Δt (median steps)"),
    Column(CONSTANT),
    Column("C, censored runs dropped"),
    Column("C, the paper's mean(λΔt)"),
    Column(EXPONENT, digits=2),
    Column("α, censored runs dropped", digits=2),
    Column("a of a + C/λ (steps)", signed=True),
    Column("ΔAICc (C λ^−α minus C/λ)", digits=1, signed=True),
    Column("ΔAICc (a + C/λ minus C/λ)", digits=1, signed=True),
)
COUNTS = ("forks", "in the fit", str(Ending.GROKKED), str(Ending.CENSORED), str(Ending.FAILED), "before", "median")
NOTES = (
    "Δt is evaluated every 100 steps, from the fork, or from the first evaluation at or after it with FSD ≥ 0.80. A "
    "fork that never crossed has no second Δt and is not counted there; one that crossed at the evaluation at which it "
    "grokked, or later, has grokked before.",
    "Fits with censored runs are by maximum likelihood of log Δt, normal around the law: a grokked run counts as the "
    "interval between two evaluations, a stable one that had not grokked by its last evaluation as longer. Unstable "
    "runs, a competing event, are left out of every fit and reported as a share.",
    "Dropped is the same fit without the censored runs; where none is censored, it is the same. The paper's estimator "
    "is C = mean(λΔt) over the mean Δt of each λ, grokked runs only.",
    "α is the exponent of Δt = C λ^−α; the law says 1. ΔAICc compares fits of the same runs with censored ones "
    "in: negative values favour the alternative to C/λ.",
    "Intervals are 95 % t intervals that leave out one replicate at a time, with all its forks; that of C is of its "
    "logarithm. Replicates differ in the seed (p = 97) or in the data order (p = 53, 131). No interval "
    "is given for a. Shares have Clopper–Pearson intervals for the effective number of "
    "forks, of which n are independent replicates. The intervals are for one task at a time and not corrected "
    "for their number.",
    "Rows of one λ have the median Δt from the fork; runs that did not grok are later, and Kaplan–Meier's median is "
    "given.",
)


def _difference(found: Mapping[str, Measured]) -> Measured:
    """How much higher the AICc of a law is than that of C/λ; nothing where one is not defined."""
    value = found["law"].number("AICc") - found["C/λ"].number("AICc")
    return Measured.of(None if isnan(value) else value, n=found["law"].n)


def fits(runs: Selection, start: Start, has_censored: bool) -> tuple[tuple[Quantity, str], ...]:
    """The quantities and parts of a row's fits, in the order of the columns.

    Without censored runs the fits with and without them are the same quantities.
    """

    def likely(form: CensoredForm, dropped: bool = False) -> Quantity:
        return likely_law(runs, form, start, dropped and has_censored, crossprime.FORKS)

    def above_simple(form: CensoredForm) -> Quantity:
        return Quantity(
            f"AICc of the {form} law from the {start} less that of C/λ",
            runs,
            _difference,
            members={"law": likely(form), "C/λ": likely("inverse")},
        )

    return (
        (likely("inverse"), "C"),
        (likely("inverse", dropped=True), "C"),
        (law(runs, start=start, needed=crossprime.FORKS), "C"),
        (likely("power"), "α"),
        (likely("power", dropped=True), "α"),
        (likely("offset"), "a"),
        (above_simple("power"), "value"),
        (above_simple("offset"), "value"),
    )


def _supplement(evidence: Evidence) -> Table:
    """C, the exponent and the offset of the timing law of every task with forks, and the cells behind them."""
    rows: list[Row] = []
    for task, experiment in TASKS.items():
        runs = crossprime.forks(task, experiment=experiment)
        for start in STARTS:
            times = times_to_grok(runs, start=start)
            has_censored = evidence.measure(times).number(str(Ending.CENSORED)) > 0
            rows.append(_row(evidence, f"{task}, from the {start}", times, fits(runs, start, has_censored)))
        for decay in DECAYS:
            rows.append(_row(evidence, f"{task}, λ = {decay:g}", crossprime.times_at(task, decay, experiment), ()))
    return Table(
        "sup-law",
        "sup:law",
        "Does Δt = C/λ hold when runs that have not yet grokked are counted?",
        COLUMNS,
        tuple(rows),
        NOTES,
    )


def _row(evidence: Evidence, title: str, times: Quantity, fitted: tuple[tuple[Quantity, str], ...]) -> Row:
    if not evidence.measure(times).n:
        return empty_row(title, len(COLUMNS))
    cells = [cell(evidence, times, part) for part in COUNTS]
    cells += [cell(evidence, quantity, part) for quantity, part in fitted]
    return (text(title), *cells, *(Cell(),) * (len(COLUMNS) - 1 - len(cells)))


def _sentence(table: Table) -> str:
    """C and α of every task, from the fork."""
    place = [column.name for column in COLUMNS].index(CONSTANT)
    rows = [row for row in table.rows if str(row[0].ours).endswith(STARTS[0]) and row[place].ours is not None]
    if not rows:
        return "Whether Δt = C/λ holds with censored runs is not known: no fork has grokked."
    found = "; ".join(f"{str(row[0].ours).partition(',')[0]} has {_fit_text(table, row)}" for row in rows)
    return f"With the runs that have not yet grokked counted as censored, {found}."


def _fit_text(table: Table, row: Row) -> str:
    return enumerate_parts([f"C = {quote(table, row, CONSTANT)}", f"α = {quote(table, row, EXPONENT)}"])


CLAIMS = (
    Claim(
        "law-exponent",
        "Δt is proportional to 1/λ at every prime: the exponent is within 0.1 of 1.",
        "§6, tested here with runs that never grok counted as later than all others",
        "α = 1",
        branch_estimand(
            "exponent α of the median Δt ∝ λ^−α",
            crossprime.EVERY_DRAW,
            DECAYS,
            {"time": "median"},
            ", ".join(f"{label}: {{α ({label}):.2f}}" for label in crossprime.LABELS),
            (tuple(f"α ({label})" for label in crossprime.LABELS), ".2f"),
            derive_law,
        ),
        Rule.of_many(rule.every(rule.between(0.9, 1.1), *(f"α ({label})" for label in crossprime.LABELS))),
        "sup-law",
        "new",
    ),
)
SUPPLEMENTS = (Item("sup-law", ("crossprime", "open_questions"), _supplement, _sentence),)
