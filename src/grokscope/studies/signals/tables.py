"""The tables: one row a signal over all families, the same by family, and the order in which circuits turn."""

from dataclasses import replace
from math import inf

from grokscope.studies import Evidence, Item, Measured, Quantity, Records, Selection, cell
from grokscope.studies.reduction import median, reduce_all
from grokscope.studies.signals.catalogue import SIGNALS, Signal
from grokscope.studies.signals.costs import FILE, read_costs
from grokscope.studies.signals.experiments import CELLS, FAMILIES
from grokscope.studies.signals.quantities import EVERY_FAMILY, RATE, SHARES, alarms, concordance, median_grok
from grokscope.studies.signals.readings import HALF, read_circuit
from grokscope.view.table import Cell, Column, Row, Table, text

__all__ = ["SUPPLEMENTS", "TABLES", "TURNS", "turn_medians"]

NEEDED = ("groks", "cannot-grok")
ALARM_COLUMNS = (
    Column("Leads, published threshold", digits=2),
    Column("Median lead, published threshold", signed=True),
    Column("False alarms, published threshold", digits=2),
    Column("Leads, matched threshold", digits=2),
    Column("Median lead, matched threshold", signed=True),
    Column("False alarms, matched threshold", digits=2),
    *(Column(f"Concordance at {share:.0%}", digits=2) for share in SHARES),
)
ALARM_PARTS = (
    *(f"published {part}" for part in ("share", "lead", "false")),
    *(f"matched {part}" for part in ("share", "lead", "false")),
)
METHOD = (
    "Leads: the share of grokked runs in which the signal passes its threshold at an earlier evaluation than that at "
    "which validation accuracy reaches 0.95. A run that groks without it is no lead, and of its lead it is only known "
    "that it is lower; medians by Kaplan–Meier. Intervals are 95 %: Clopper–Pearson, with each seed as one cluster for "
    "false alarms, order statistics, and for concordance percentiles of a bootstrap over the runs of each cell.",
    f"Matched thresholds are the most lenient that at most {RATE:.0%} of the runs that cannot grok pass, family by "
    "family, chosen on even seeds; false alarms are those of the odd seeds, or of the same runs where a half has fewer "
    "than ten. A run that cannot grok is watched for as long as the run of the same seed, in the family's first cell, "
    "needs to grok; of another seed, where that did not. The step of an evaluation is not interpolated.",
    "Concordance: of two runs of one cell, how often the one that groks sooner has the stronger signal at that share "
    "of the cell's median grok step, a mean over cells; 0.5 is a guess. Runs that have grokked by then are left out.",
    "Signals with final keys are read with the key modes of a model that is not known yet: they cannot warn. What a "
    "table without structure has no basis for, and an MLP no attention for, counts only where it is measured.",
)


def tab_signals(evidence: Evidence) -> Table:
    """One row a signal, over all families."""
    costs = None if evidence.folder is None else read_costs(evidence.folder / FILE)
    rows = []
    for one in SIGNALS:
        found = _row(evidence, one, EVERY_FAMILY)
        runs = evidence.measure(alarms(one.name)).parts.get("matched runs")
        cost = None if costs is None else costs.of(one)
        rows.append((*_about(one), text(runs if isinstance(runs, int) else None), *found, Cell(cost)))
    columns = (
        *map(Column, ("Signal", "Tier", "Source", "Published threshold", "Grokked runs")),
        *ALARM_COLUMNS,
        Column("Cost of an evaluation (training steps)", digits=1),
    )
    note = f"Costs were measured on {costs.place}." if costs else f"Costs are not there: {FILE} beside the records."
    return Table(
        "tab-signals", "tab:signals", "Which signal comes first", columns, tuple(rows), (*_missing(rows), *METHOD, note)
    )


def sup_families(evidence: Evidence) -> Table:
    """One row for each signal and family."""
    rows = [
        (text(one.title), text(family), cell(evidence, alarms(one.name, (family,)), "threshold"), *found)
        for family in FAMILIES
        for one in SIGNALS
        for found in [_row(evidence, one, (family,))]
        if any(part.ours is not None for part in found)
    ]
    columns = (Column("Signal"), Column("Family"), Column("Matched threshold", digits=3), *ALARM_COLUMNS)
    what = "; ".join(
        f"{name}: {', '.join(one.groks)} against {', '.join(one.cannot)}" for name, one in FAMILIES.items()
    )
    title = "Which signal comes first, family by family"
    return Table("sup-families", "sup:families", title, columns, tuple(rows), (*METHOD, f"Families: {what}."))


def _about(one: Signal) -> Row:
    rule = one.published
    said = f"{rule.threshold:g} ({rule.where})" if rule else "none"
    tier: int | str = "final model" if one.is_retrospective else one.tier
    return text(one.title), text(tier), text(one.source or "—"), text(said)


def _row(evidence: Evidence, one: Signal, families: tuple[str, ...]) -> Row:
    found = alarms(one.name, families)
    return (
        *(_finite(cell(evidence, found, part)) for part in ALARM_PARTS),
        *(replace(cell(evidence, concordance(one.name, share, families)), n=None) for share in SHARES),
    )


def _finite(found: Cell) -> Cell:
    """Without the ends of an interval that is open."""
    is_open = found.interval is not None and inf in map(abs, found.interval)
    return replace(found, interval=None) if is_open else found


TURNS = ("restricted falls", "excluded lowest", "excluded rises", "excluded highest", "validation falls", "groks")
DEFINITIONS = {
    "Nanda et al.": ("trig@final", "excluded@final"),
    "Chughtai et al.": ("hidden_restricted@final", "hidden_excluded@final"),
}


def turn_medians(name: str, definition: str) -> Quantity:
    """The median steps at which the losses of a cell's circuits turn, by one definition of them."""
    restricted, excluded = DEFINITIONS[definition]
    options = {"restricted": restricted, "excluded": excluded}
    return Quantity("turns of the circuit", Selection(("groks",), configuration=name), _turns, options=options)


def _turns(records: Records, restricted: str, excluded: str) -> Measured:
    import numpy as np

    rows = [row for record in records.values() if (row := read_circuit(record, restricted, excluded))]
    if not rows:
        return Measured(missing="Losses with final keys were not measured in these runs.")
    values = {"all": {name: np.array([row[name] for row in rows]) for name in TURNS}}
    found = reduce_all({name: median(name) for name in TURNS}, values)
    return Measured({name: float(found[name]) for name in TURNS}, n=len(rows))


def tab_order(evidence: Evidence) -> Table:
    """In which order the losses of a circuit turn, cell by cell."""
    rows = []
    for name, one in CELLS.items():
        for definition in DEFINITIONS if one.kind == "groks" else ():
            found = evidence.measure(turn_medians(name, definition))
            if found.missing:
                continue
            steps = (_step(evidence, turn_medians(name, definition), part) for part in TURNS)
            rows.append((text(one.title), text(definition), text(found.n), *steps, cell(evidence, median_grok(name))))
    columns = (
        *map(Column, ("Task", "Losses of", "n", "Restricted falls", "Excluded lowest", "Excluded rises")),
        *map(Column, ("Excluded highest", "Validation loss falls", "Groks", "Groks, Kaplan–Meier")),
    )
    note = (
        f"Median steps. A loss has fallen when it is at most {HALF:g} of ln(classes), the loss of a guess, and "
        "excluded loss has risen when it is as much above its lowest value. Keys are those of the last checkpoint."
    )
    title = "When circuits form: restricted and excluded loss with the final model's keys"
    return Table("tab-order", "tab:order", title, columns, tuple(rows), (*_missing(rows), note))


def _step(evidence: Evidence, quantity: Quantity, part: str) -> Cell:
    found = replace(cell(evidence, quantity, part), n=None)
    return replace(found, ours="never") if found.ours == inf else found


def _missing(rows: list[Row]) -> tuple[str, ...]:
    is_empty = not any(one.quantity for row in rows for one in row)
    return ("None of its runs is there.",) if is_empty else ()


TABLES = (Item("tab-signals", NEEDED, tab_signals), Item("tab-order", ("groks",), tab_order))


def _sentence(table: Table) -> str:
    """How many rows there are."""
    signals = len({row[0].ours for row in table.rows})
    return f"{signals} signals in {len({row[1].ours for row in table.rows})} families, each with its own threshold."


SUPPLEMENTS = (Item("sup-families", NEEDED, sup_families, _sentence),)
