"""Beyond the paper: which of the choices that it leaves open change when a run groks."""

from operator import itemgetter

from grokscope.studies import Evidence, Item, Measured, Quantity, Records, Selection, cell
from grokscope.studies.synchronization import readings
from grokscope.studies.synchronization.comparisons import grokking, holm_adjusted, log_rank
from grokscope.studies.synchronization.sentences import empty_row, enumerate_parts, quote
from grokscope.view.table import Column, Row, Table, text

__all__ = ["EVENTS", "GROKKED", "HOLM", "MEDIAN", "SUPPLEMENTS"]

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
SIGNIFICANT = 0.05  # what a sentence calls a difference; the table has every p
GROKKED, MEDIAN, HOLM = "Grokked", "Grok step (median)", "Holm-adjusted p"
COLUMNS = (
    *map(Column, ("Change", "Seeds")),
    Column(GROKKED, digits=2),
    Column(MEDIAN),
    Column("Positive lead", digits=2),
    Column("Median lead (steps)", signed=True),
    Column("Log-rank p", digits=4),
    Column(HOLM, digits=4),
)
EVENTS = (
    "Grok step: the first evaluation, every 100 steps, with validation accuracy ≥ 0.95. Medians have 95 % intervals by "
    "order statistics over seeds, or are Kaplan–Meier's where a run did not grok within its budget; shares have "
    "Clopper–Pearson intervals."
)
NOTES = (
    "add_mod97 with one change at a time of what the paper leaves open; the default is the first row.",
    EVENTS,
    "Leads are FSD's at 0.80, over all grokked runs: ties and runs that never crossed are not positive.",
    "Log-rank tests compare the grok steps of each change with the default's; a run that did not grok is censored "
    "at the longest budget. Holm correction over the changes.",
    "Configurations share their seeds, which the test does not use: it can miss what pairs would show.",
)
TESTS = {name: log_rank("sensitivity", name, DEFAULT) for name in CHANGES if name != DEFAULT}


def _leads(records: Records) -> Measured:
    """The share of grokked runs in which FSD crosses first, and the median lead."""
    leads = [record.timeline.sync.lead for record in records.values()]
    return Measured({"share": readings.precursor_share(leads), "median": readings.median_lead(leads)}, n=len(leads))


def _supplement(evidence: Evidence) -> Table:
    """Every open choice against the default: when runs grok, whether they do, and the sign of the lead."""
    return Table(
        "sup-sensitivity",
        "sup:sensitivity",
        "Which setting that the paper does not specify matters?",
        COLUMNS,
        rows=tuple(_row(evidence, name) for name in CHANGES),
        notes=NOTES,
    )


def _row(evidence: Evidence, name: str) -> Row:
    runs = Selection(("sensitivity",), configuration=name)
    if not runs.select(evidence.records):
        return empty_row(CHANGES[name], len(COLUMNS))
    leads = Quantity("leads", runs, _leads)
    return (
        text(CHANGES[name]),
        *(cell(evidence, grokking(runs), part) for part in ("runs", "share", "median")),
        *(cell(evidence, leads, part) for part in ("share", "median")),
        cell(evidence, TESTS.get(name, log_rank("sensitivity", DEFAULT, DEFAULT))),
        cell(evidence, holm_adjusted(TESTS, "sensitivity"), name),
    )


def _sentence(table: Table) -> str:
    """The default's median, and those of the changes that differ from it after correction."""
    tested = [(float(row[-1].ours), row) for row in table.rows if isinstance(row[-1].ours, float | int)]
    if not tested:
        return "Which setting matters is not known: there are not both the default's runs and a change's."
    first = f"The median grok step of the default is {quote(table, table.rows[0], MEDIAN)}"
    apart = [_shift(table, row) for p, row in tested if p < SIGNIFICANT]
    if apart:
        return f"{first}; it differs with {enumerate_parts(apart)}."
    nearest = min(tested, key=itemgetter(0))[1]
    return f"{first}; no change is shown to shift it, the nearest being {_shift(table, nearest)}."


def _shift(table: Table, row: Row) -> str:
    return f"{row[0].ours}, {quote(table, row, MEDIAN)} (Holm-adjusted p {quote(table, row, HOLM)})"


SUPPLEMENTS = (Item("sup-sensitivity", ("sensitivity",), _supplement, _sentence),)
