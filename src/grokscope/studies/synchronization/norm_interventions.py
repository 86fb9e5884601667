"""§6, beyond the paper: whether runs grok when the norm is frozen, matched or scaled at a fork."""

from grokscope.law import count_foreign_forks
from grokscope.stats import known, share_that
from grokscope.studies import Claim, Evidence, Item, Measured, Quantity, Records, Rule, Selection, cell, rule
from grokscope.studies.synchronization import readings
from grokscope.studies.synchronization.comparisons import grokking, holm_adjusted, log_rank
from grokscope.studies.synchronization.sensitivity import EVENTS, GROKKED, HOLM, MEDIAN
from grokscope.studies.synchronization.sentences import empty_row, has_runs, quote
from grokscope.timeline import Outcome
from grokscope.view.table import Column, Row, Table, text

__all__ = ["CLAIMS", "SUPPLEMENTS"]

CONFIGURATIONS = {  # configuration → (what it is, the one it is compared with)
    "parent": ("the parent, from step 0", None),
    "free_x1": ("free norm, λ = 1", None),
    "frozen_x1": ("norm frozen at the fork, λ = 1", "free_x1"),
    "matched_x1": ("norm matched to the parent's, λ = 1", "free_x1"),
    "free_x3": ("free norm, λ = 3", "free_x1"),
    "frozen_x3": ("norm frozen at the fork, λ = 3", "free_x3"),
    "matched_x3": ("norm matched to the parent's, λ = 3", "free_x3"),
    "scaled0.5": ("weights × 0.5, λ = 1", "free_x1"),
    "scaled0.8": ("weights × 0.8, λ = 1", "free_x1"),
    "scaled1.25": ("weights × 1.25, λ = 1", "free_x1"),
    "scaled2": ("weights × 2, λ = 1", "free_x1"),
}
TESTS = {name: log_rank("threshold", name, other) for name, (_, other) in CONFIGURATIONS.items() if other}
IN_SENTENCE = ("free_x1", "frozen_x1", "free_x3", "matched_x3")
COLUMNS = (
    *map(Column, ("Configuration", "Seeds")),
    Column(GROKKED, digits=2),
    Column(MEDIAN),
    Column("Unstable without grokking", digits=2),
    Column("Norm at the first evaluation (median)", digits=1),
    Column("Norm at grokking (median)", digits=1),
    Column("Train accuracy at the first evaluation (median)", digits=3),
    Column("Compared with"),
    Column("Log-rank p", digits=4),
    Column(HOLM, digits=4),
)
NOTES = (
    "Forks of add_mod97 at step 1,000 to step 8,000; the parent runs to 15,000. A frozen norm is rescaled after "
    "every step to that at the fork, a matched one to the parent's at the same step.",
    "If a falling norm caused grokking, frozen runs would not grok, and matched ones at λ = 3 would grok as late "
    "as at λ = 1; if the norm follows, neither holds.",
    EVENTS,
    "The first evaluation of a fork is the fork itself, after its weights were scaled and before any step. Unstable: "
    "diverged, or below train accuracy 0.9 at the end without having grokked.",
    "Log-rank tests compare the grok steps with those of the configuration in the column before; a run that did not "
    "grok is censored at the longest budget of the two. Holm correction over all these tests.",
)


def _collapses(records: Records, below: float) -> Measured:
    """In how many forks train accuracy is below a bound at the fork, right after the weights were scaled."""
    found = known(one for record in records.values() for one in record.evaluations["train_accuracy"][:1])
    if len(found) < 4:
        return Measured.lacking(len(found), 4, "forks with scaled weights")
    count = sum(value < below for value in found)
    return Measured({"collapse": count}, f"{count} of {len(found)} collapse", len(found), "Train accuracy at the fork.")


def _state(records: Records) -> Measured:
    """How many runs become unstable without grokking; norms and train accuracy at the first evaluation and later."""
    runs = [record.timeline for record in records.values()]
    failed = (Outcome.UNSTABLE, Outcome.DIVERGED)
    first = [record.at(record.timeline.first, "train_accuracy") for record in records.values()]
    return Measured(
        {
            "unstable": share_that(run.grokked is None and run.outcome in failed for run in runs),
            "first norm": readings.median_value(run.norm_at_first for run in runs),
            "grok norm": readings.median_value(run.norm_at_grok for run in runs),
            "first accuracy": readings.median_value(first),
        },
        n=len(runs),
    )


def _supplement(evidence: Evidence) -> Table:
    """Grokking with norms free, frozen, matched or scaled at the fork, against free ones."""
    elsewhere, forks = count_foreign_forks(evidence.experiment("threshold").values())
    other_parents = (
        f"{elsewhere} of {forks} forks begin in another run of their parent than the one in the first row: the same "
        "spec and seed, rounded otherwise. Configurations are compared as groups, not seed by seed."
    )
    return Table(
        "sup-thresholds-mechanism",
        "sup:thresholds-mechanism",
        "Is the norm at which runs grok a threshold or a consequence?",
        COLUMNS,
        rows=tuple(_row(evidence, name) for name in CONFIGURATIONS),
        notes=(*NOTES, other_parents) if elsewhere else NOTES,
    )


def _row(evidence: Evidence, name: str) -> Row:
    title, against = CONFIGURATIONS[name]
    runs = Selection(("threshold",), configuration=name)
    if not runs.select(evidence.records):
        return empty_row(title, len(COLUMNS))
    state = Quantity("state at the fork and at grokking", runs, _state)
    return (
        text(title),
        *(cell(evidence, grokking(runs), part) for part in ("runs", "share", "median")),
        *(cell(evidence, state, part) for part in ("unstable", "first norm", "grok norm", "first accuracy")),
        text(CONFIGURATIONS[against][0] if against else None),
        cell(evidence, TESTS.get(name, log_rank("threshold", name, name))),
        cell(evidence, holm_adjusted("threshold", TESTS), name),
    )


def _sentence(table: Table) -> str:
    """How many grokked, and when, with the norm free, frozen and matched."""
    titles = [CONFIGURATIONS[name][0] for name in IN_SENTENCE]
    rows = [row for row in table.rows if has_runs(row) and row[0].ours in titles]
    if not rows:
        return "Whether the norm is a threshold is not known: no run that holds it was trained."
    found = "; ".join(f"{row[0].ours}: {_how_many(table, row)}" for row in rows)
    return f"Forks that grok, with the median step: {found}."


def _how_many(table: Table, row: Row) -> str:
    seeds, share = int(row[1].ours or 0), float(row[2].ours or 0)
    count = round(share * seeds)
    median = quote(table, row, MEDIAN).removesuffix(f", n = {seeds}")
    return f"{count} of {seeds} at {median}" if count else f"none of {seeds}"


CLAIMS = (
    Claim(
        "scaling-collapses",
        "Scaling the weights at the fork collapses train accuracy, whatever the factor.",
        "§6",
        "any factor but 1",
        Quantity(
            "collapse of train accuracy",
            Selection(("threshold",), configuration="scaled*"),
            _collapses,
            options={"below": 0.9},
        ),
        Rule(rule.more_than(1, "collapse", operator="="), rule.more_than(1 / 2, "collapse")),
        "fig-threshold",
    ),
)
SUPPLEMENTS = (Item("sup-thresholds-mechanism", ("threshold",), _supplement, _sentence),)
