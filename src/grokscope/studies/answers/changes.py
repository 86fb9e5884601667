"""What changes of a run do: the choices that the paper leaves open, and norms that are held or scaled at a fork."""

from collections.abc import Mapping, Sequence
from math import isnan

from grokscope.runs.records import RunRecord, begun_elsewhere
from grokscope.studies.answers.reading import adjusted, by_arm, counted, empty_row, has_runs, listed, said, waits_apart
from grokscope.studies.evidence import Evidence
from grokscope.studies.tables.reading import pooled_leads, pooled_steps, pooled_values, precursor_share
from grokscope.timeline import Outcome, Timeline
from grokscope.view.table import Cell, Column, Row, Table, text

__all__ = ["ans_sensitivity", "ans_thresholds_mechanism", "sensitivity_sentence", "thresholds_mechanism_sentence"]

DEFAULT = "default"
CHANGES = {
    DEFAULT: "default",
    "beta2_0.98": "β₂ = 0.98",
    "matrices_only": "decay of matrices only",
    "causal": "causal attention",
    "replacement": "batches with replacement",
    "dropout_0.1": "dropout 0.1",
    "warmup_100": "warm-up of 100 steps",
    "clip_1": "gradient clipped to 1",
    "std_0.02": "embeddings of std 0.02",
    "norm_for_mlp": "LayerNorm in place of the MLP",
}
ARMS = {  # arm → (what it is, the arm it is compared with)
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
SIGNIFICANT = 0.05  # what a sentence calls a difference; the table has every p
SAID = ("free_x1", "frozen_x1", "free_x3", "matched_x3")
GROKKED, MEDIAN, HOLM = "Grokked", "Grok step (median)", "p by Holm"
EVENTS = (
    "Grok step: the first look, every 100 steps, with validation accuracy ≥ 0.95. Medians have 95 % intervals by "
    "percentile bootstrap over seeds, or are Kaplan–Meier's where a run did not grok within its budget; shares have "
    "Clopper–Pearson intervals."
)


def ans_sensitivity(evidence: Evidence) -> Table:
    """Every open choice against the default: when runs grok, whether they do, and the sign of the lead."""
    arms = _timelines(by_arm(evidence.study("sensitivity")))
    default = arms.get(DEFAULT, [])
    tests = adjusted([None if arm == DEFAULT else waits_apart(arms.get(arm, []), default) for arm in CHANGES])
    columns = (
        *map(Column, ("Change", "Seeds")),
        Column(GROKKED, digits=2),
        Column(MEDIAN),
        Column("Positive lead", digits=2),
        Column("Median lead (steps)", signed=True),
        Column("Log-rank p", digits=4),
        Column(HOLM, digits=4),
    )
    rows = [
        _change_row(title, arms[arm], test) if arm in arms else empty_row(title, len(columns))
        for (arm, title), test in zip(CHANGES.items(), tests, strict=True)
    ]
    notes = (
        "add_mod97 with one change at a time of what the paper leaves open; the default is the first row.",
        EVENTS,
        "Leads are FSD's at 0.80, over all grokked runs: ties and runs that never crossed are not positive.",
        "Log-rank tests compare the grok steps of each change with the default's; a run that did not grok is censored "
        "at the longest budget. Holm's rule is over the changes.",
        "Arms share their seeds, which the test does not use: it can miss what pairs would show.",
    )
    title = "Which open choice of the paper matters?"
    return Table("ans-sensitivity", "ans:sensitivity", title, columns, tuple(rows), notes)


def _timelines(arms: Mapping[str, Sequence[RunRecord]]) -> dict[str, list[Timeline]]:
    return {arm: [record.timeline for record in records] for arm, records in arms.items()}


def _change_row(title: str, runs: Sequence[Timeline], test: tuple[Cell, Cell]) -> Row:
    leads = [run.sync.lead for run in runs]
    return (text(title), *_grokking(runs), precursor_share(leads), pooled_leads(leads), *test)


def _grokking(runs: Sequence[Timeline]) -> Row:
    """How many runs there are, the share that grokked, and the median step."""
    # A run that fell apart will not grok: it stays at risk as long as any.
    longest = max(run.last for run in runs)
    steps = pooled_steps([run.grokked for run in runs], [longest] * len(runs))
    return Cell(len(runs)), counted(run.grokked is not None for run in runs), steps


def sensitivity_sentence(table: Table) -> str:
    """The default's median, and those of the changes that differ from it after correction."""
    tested = [row for row in table.rows if isinstance(row[-1].ours, float | int)]
    if not tested:
        return "Which open choice matters is not known: there are not both the default's runs and a change's."
    first = f"The median grok step of the default is {said(table, table.rows[0], MEDIAN)}"
    apart = [row for row in tested if float(row[-1].ours or 0) < SIGNIFICANT]
    if apart:
        return f"{first}; it differs with {listed([_shift(table, row) for row in apart])}."
    nearest = min(tested, key=lambda row: float(row[-1].ours or 0))
    return f"{first}; no change is shown to shift it, the nearest being {_shift(table, nearest)}."


def _shift(table: Table, row: Row) -> str:
    return f"{row[0].ours}, {said(table, row, MEDIAN)} (p by Holm {said(table, row, HOLM)})"


def ans_thresholds_mechanism(evidence: Evidence) -> Table:
    """Grokking with norms free, frozen, matched or scaled at the fork, against free ones."""
    records = by_arm(evidence.study("threshold"))
    arms = _timelines(records)
    tests = adjusted(
        [waits_apart(arms.get(arm, []), arms.get(against or "", [])) for arm, (_, against) in ARMS.items()]
    )
    columns = (
        *map(Column, ("Arm", "Seeds")),
        Column(GROKKED, digits=2),
        Column(MEDIAN),
        Column("Unstable without grokking", digits=2),
        Column("Norm at the first look (median)", digits=1),
        Column("Norm at grokking (median)", digits=1),
        Column("Train accuracy at the first look (median)", digits=3),
        Column("Compared with"),
        Column("Log-rank p", digits=4),
        Column(HOLM, digits=4),
    )
    rows = [
        _arm_row(arm, records[arm], test) if arm in records else empty_row(ARMS[arm][0], len(columns))
        for arm, test in zip(ARMS, tests, strict=True)
    ]
    notes = (
        "Forks of add_mod97 at step 1,000 to step 8,000; the parent runs to 15,000. A frozen norm is rescaled after "
        "every step to that at the fork, a matched one to the parent's at the same step.",
        "If a falling norm caused grokking, frozen runs would not grok, and matched ones at λ = 3 would grok as late "
        "as at λ = 1; if the norm follows, neither holds.",
        EVENTS,
        "The first look of a fork is the fork itself, after its weights were scaled and before any step. Unstable: "
        "diverged, or below train accuracy 0.9 at the end without having grokked.",
        "Log-rank tests compare the grok steps with those of the arm named beside; a run that did not grok is censored "
        "at the longest budget of the two. Holm's rule is over all these tests.",
        *_other_parents(evidence.study("threshold")),
    )
    title = "Is the norm at which runs grok a threshold or a consequence?"
    return Table("ans-thresholds-mechanism", "ans:thresholds-mechanism", title, columns, tuple(rows), notes)


def _other_parents(study: Mapping[str, RunRecord]) -> tuple[str, ...]:
    """The note that tells of forks whose parent was made again since."""
    elsewhere, forks = begun_elsewhere(study.values())
    if not elsewhere:
        return ()
    return (
        f"{elsewhere} of {forks} forks begin in another making of their parent than the one in the first "
        "row: the same spec and seed, rounded otherwise. Arms are compared as groups, not seed by seed.",
    )


def _arm_row(arm: str, records: Sequence[RunRecord], test: tuple[Cell, Cell]) -> Row:
    title, against = ARMS[arm]
    runs = [record.timeline for record in records]
    first_train = [record.at(record.timeline.first, "train_accuracy") for record in records]
    return (
        text(title),
        *_grokking(runs),
        counted(run.grokked is None and run.outcome in (Outcome.UNSTABLE, Outcome.DIVERGED) for run in runs),
        pooled_values(run.norm_at_first for run in runs),
        pooled_values(run.norm_at_grok for run in runs if not isnan(run.norm_at_grok)),
        pooled_values(first_train),
        text(ARMS[against][0] if against else None),
        *test,
    )


def thresholds_mechanism_sentence(table: Table) -> str:
    """How many grokked, and when, with the norm free, frozen and matched."""
    rows = [row for row in table.rows if has_runs(row) and row[0].ours in [ARMS[arm][0] for arm in SAID]]
    if not rows:
        return "Whether the norm is a threshold is not known: no run that holds it was trained."
    found = "; ".join(f"{row[0].ours}: {_how_many(table, row)}" for row in rows)
    return f"How many forks grok, and at which step in the median, with {found}."


def _how_many(table: Table, row: Row) -> str:
    seeds, share = int(row[1].ours or 0), float(row[2].ours or 0)
    count = round(share * seeds)
    median = said(table, row, MEDIAN).removesuffix(f", n = {seeds}")
    return f"{count} of {seeds} at {median}" if count else f"none of {seeds}"
