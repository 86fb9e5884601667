"""§6, beyond the paper: whether runs grok when the norm is scaled, kept above a level, led to one, or kept."""

from collections.abc import Mapping

from grokscope.law import count_foreign_forks
from grokscope.specs import NormHold
from grokscope.stats import share_that
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
from grokscope.studies.reduction import least, mean, median
from grokscope.studies.synchronization import readings
from grokscope.studies.synchronization.comparisons import grokking, holm_adjusted, log_rank
from grokscope.studies.synchronization.designs import every_run, read_lead
from grokscope.studies.synchronization.edition import norm_holds
from grokscope.studies.synchronization.sensitivity import EVENTS, GROKKED, HOLM, MEDIAN
from grokscope.studies.synchronization.sentences import empty_row, has_runs, quote
from grokscope.timeline import Outcome
from grokscope.view.table import Column, Row, Table, text

__all__ = ["CLAIMS", "SUPPLEMENTS"]

FREE = "free norm, λ = 1"


def _title(name: str, hold: NormHold) -> str:
    """What a hold does, in words."""
    if hold.level is None:
        return (
            f"norm of {name.removeprefix('kept_')} kept" if hold.parts != ("all",) else f"norm kept from {hold.start:,}"
        )
    if hold.over:
        return f"norm led to {hold.level:g} by {hold.start + hold.over:,}"
    return f"norm kept at {hold.level:g} and more"


SCALED = {
    "parent": ("the parent, from step 0", None),
    "free_x1": (FREE, None),
    "free_x3": ("free norm, λ = 3", "free_x1"),
    "scaled0.5": ("weights × 0.5, λ = 1", "free_x1"),
    "scaled0.8": ("weights × 0.8, λ = 1", "free_x1"),
    "scaled1.25": ("weights × 1.25, λ = 1", "free_x1"),
    "scaled2": ("weights × 2, λ = 1", "free_x1"),
}
HELD = {name: (_title(name, hold), "free") for name, hold in norm_holds().items() if hold is not None}
CONFIGURATIONS: dict[tuple[str, str], tuple[str, str | None]] = {  # what each is, and the one it is compared with
    **{("threshold", name): found for name, found in SCALED.items()},
    **{("norms", name): found for name, found in HELD.items()},
}
TESTS = {
    title: log_rank(experiment, name, other) for (experiment, name), (title, other) in CONFIGURATIONS.items() if other
}
IN_SENTENCE = (FREE, *(HELD[name][0] for name in ("floor35", "floor26", "led23.5", "kept_from1000", "kept_from2000")))
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
    "Forks of add_mod97 at step 1,000 to step 8,000, of scaled weights to 3,000; the parent runs to 15,000. A norm is "
    "kept or led by scaling the weights after every step, all of them or those of a part; one that is kept above a "
    "level falls freely until it is there.",
    "If a run grokked because its norm had fallen to a threshold, runs whose norm is kept above it would not, and runs "
    "that are led there would grok at once; if the norm follows, neither holds.",
    EVENTS,
    "The first evaluation of a fork is the fork itself, after its weights were scaled and before any step. Unstable: "
    "diverged, or below train accuracy 0.9 at the end without having grokked.",
    "Log-rank tests compare the grok steps with those of the configuration in the column before; a run that did not "
    "grok is censored at the longest budget of the two. Holm correction over all these tests.",
)


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
        rows=tuple(_row(evidence, *which) for which in CONFIGURATIONS),
        notes=(*NOTES, other_parents) if elsewhere else NOTES,
    )


def _row(evidence: Evidence, experiment: str, name: str) -> Row:
    title, against = CONFIGURATIONS[experiment, name]
    runs = Selection((experiment,), configuration=name)
    if not runs.select(evidence.records):
        return empty_row(title, len(COLUMNS))
    state = Quantity("state at the fork and at grokking", runs, _state)
    return (
        text(title),
        *(cell(evidence, grokking(runs), part) for part in ("runs", "share", "median")),
        *(cell(evidence, state, part) for part in ("unstable", "first norm", "grok norm", "first accuracy")),
        text(FREE if against else None),
        cell(evidence, TESTS.get(title, log_rank(experiment, name, name))),
        cell(evidence, holm_adjusted(TESTS, "threshold", "norms"), title),
    )


def _sentence(table: Table) -> str:
    """How many grokked, and when, with the norm free, above a level, led down and kept."""
    rows = [row for row in table.rows if has_runs(row) and row[0].ours in IN_SENTENCE]
    if len(rows) < 2:  # free runs alone say nothing
        return "Whether the norm is a threshold is not known: no run that holds it was trained."
    found = "; ".join(f"{row[0].ours}: {_how_many(table, row)}" for row in rows)
    return f"Forks that grok, with the median step: {found}."


def _how_many(table: Table, row: Row) -> str:
    seeds, share = int(row[1].ours or 0), float(row[2].ours or 0)
    count = round(share * seeds)
    median = quote(table, row, MEDIAN).removesuffix(f", n = {seeds}")
    return f"{count} of {seeds} at {median}" if count else f"none of {seeds}"


FACTORS = ("scaled0.5", "scaled0.8", "scaled1.25", "scaled2")


def _read_collapse(runs: Records, names: tuple[str, ...], below: float) -> Mapping[str, float]:
    """With how many factors train accuracy is below a bound right after the weights were scaled."""
    if any(name not in runs for name in names):
        return {}
    found = [runs[name].evaluations["train_accuracy"][0] for name in names]
    return {"factors": float(sum(value < below for value in found))}


def _held(name: str, configurations: tuple[str, ...], effect: str) -> Estimand:
    """Grokking of branches whose norm is held."""
    strata = every_run(*configurations, experiment="norms")
    parts = {f"groks {one}": mean("groks", one) for one in configurations}
    parts |= {f"grok step {one}": median("grok", one) for one in configurations}
    return Estimand(name, strata, read_lead, parts, f"{{{effect}:.0%}}", (effect, ".0%"))


CLAIMS = (
    Claim(
        "scaling-collapses",
        "Scaling the weights at the fork collapses train accuracy, whatever the factor.",
        "§6",
        "any factor but 1",
        Estimand(
            "factors at which train accuracy falls below 0.9",
            (
                Stratum(
                    "parents of add_mod97", Selection(("threshold",), configuration="scaled*"), 3, ("s42", "s0", "s1")
                ),
            ),
            _read_collapse,
            {"least": least("factors"), "mean": mean("factors")},
            "{least:.0f} of 4 factors in every parent",
            ("mean", ".2f"),
            "seed",
            options={"names": FACTORS, "below": 0.9},
        ),
        Rule(rule.equals(4, "least")),
        "sup-thresholds-mechanism",
    ),
    Claim(
        "norm-kept-above",
        "Of runs whose norm is kept above that of grokking, at 35 or at 45, fewer than 10 % grok by step 8,000.",
        "§6: grokking needs the norm to fall below a threshold; tested here by holding it",
        "no grokking",
        _held("grokking with the norm kept above a floor", ("floor45", "floor35"), "groks floor35"),
        Rule.of_many(rule.every(rule.below(0.1), "groks floor45", "groks floor35")),
        "sup-thresholds-mechanism",
        "new",
    ),
    Claim(
        "norm-led-down",
        "The median run whose norm is led to 23.5 from step 1,000 to 1,500 groks by step 2,000.",
        "§6: grokking occurs when the norm has fallen; tested here by leading it",
        "at once",
        _held("grokking with the norm led down", ("led23.5",), "groks led23.5"),
        Rule.of_many(rule.at_most(2000, "grok step led23.5")),  # led from step 1,000
        "sup-thresholds-mechanism",
        "new",
    ),
    Claim(
        "norm-kept-still-groks",
        "Most runs whose norm is kept as it is at step 2,000 grok all the same, by step 8,000.",
        "asked here",
        "—",
        _held("grokking with the norm kept from step 2,000", ("kept_from2000",), "groks kept_from2000"),
        Rule.of_many(rule.above(0.5, "groks kept_from2000")),
        "sup-thresholds-mechanism",
        "new",
    ),
)
SUPPLEMENTS = (Item("sup-thresholds-mechanism", ("threshold", "norms"), _supplement, _sentence),)
