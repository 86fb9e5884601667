"""How often FSD leads grokking when there are many seeds, and whether multiplication has a precursor of its own."""

from collections.abc import Sequence

from grokscope.runs.records import RunRecord
from grokscope.stats import sign_test
from grokscope.studies.answers.reading import (
    LEAD_COLUMNS,
    adjusted,
    by_arm,
    counted,
    empty_row,
    lead_cells,
    listed,
    paired_at_random,
    said,
)
from grokscope.studies.evidence import Evidence
from grokscope.studies.tables.reading import pooled_steps, read_by
from grokscope.timeline import Timeline
from grokscope.view.table import Cell, Column, Row, Table, text

__all__ = ["ans_lead_share", "ans_multiplication", "lead_share_sentence", "multiplication_sentence"]

ARMS = {  # arm → study
    "add_mod53": "base",
    "add_mod71": "base",
    "add_mod97": "base",
    "add_mod113": "base",
    "add_mod131": "base",
    "sub_mod97": "base",
    "mult_mod97": "base",
    "S5_f0.7": "symmetric",
    "S5_f0.5": "symmetric",
    "S5_f0.3": "symmetric",
    "A5": "open_questions",
    "Aff11": "open_questions",
    "D59": "open_questions",
}
TESTS = (Column("Sign-test p", digits=4), Column("p by Holm", digits=4))
LEADS = (
    "A lead is the grok step less the step of the crossing, each the first look; of runs that did not grok there is "
    "none. Shares are of all grokked runs, with 95 % Clopper–Pearson intervals: ties and runs that never crossed are "
    "not positive."
)
MEANS = (
    "Means and medians have 95 % percentile-bootstrap intervals over seeds; where a run never crossed, the mean is a "
    "bound and the median Kaplan–Meier's."
)
TASK = "mult_mod97"
READINGS = {  # how it is read → measured column; none is the log's, at every look
    "own basis, every look": None,
    "own basis, checkpoints": "fsd",
    "additive basis, checkpoints": "fsd@additive",
    "by a + b, checkpoints": "fsd@sum",
}


def ans_lead_share(evidence: Evidence) -> Table:
    """How often the crossing comes before grokking, task by task, over all seeds."""
    arms = {study: by_arm(evidence.study(study)) for study in set(ARMS.values())}
    runs = {arm: [record.timeline for record in arms[study].get(arm, [])] for arm, study in ARMS.items()}
    tests = adjusted([_sign_p(found) for found in runs.values()])
    columns = (
        *map(Column, ("Runs", "Seeds")),
        Column("Grokked", digits=2),
        *LEAD_COLUMNS,
        Column("Doubtful crossings"),
        Column("Positive if paired at random", digits=2),
        *TESTS,
    )
    rows = [
        _lead_row(arm, found, test) if found else empty_row(arm, len(columns))
        for (arm, found), test in zip(runs.items(), tests, strict=True)
    ]
    notes = (
        "FSD ≥ 0.80, of groups FSD_gen ≥ 0.50, against validation accuracy ≥ 0.95, seen every 100 steps.",
        LEADS,
        MEANS,
        "Doubtful are crossings of grokked runs at the first look, or before the training set was learnt.",
        "The alternative is a crossing that knows nothing of its run's grokking and only tends to come early: paired "
        "at random is the share of positive leads when each run's grok step meets another seed's crossing, over all "
        "such pairs. A share no higher than that shows order, not prediction.",
        "Sign tests are exact and two-sided, ties left out; Holm's rule is over the rows of this table.",
        "S5 is trained on the share of pairs in its name; the other groups on 0.5, everything else on 0.3.",
    )
    title = "How often does FSD lead grokking when there are many seeds?"
    return Table("ans-lead-share", "ans:lead-share", title, columns, tuple(rows), notes)


def _lead_row(title: str, runs: Sequence[Timeline], test: tuple[Cell, Cell]) -> Row:
    counts = [run.sync for run in runs if run.sync.lead.sign is not None]
    doubtful = Cell(sum(bool(crossing.flags) for crossing in counts), n=len(counts)) if counts else Cell()
    leads = lead_cells([run.sync.lead for run in runs])
    grokked = counted(run.grokked is not None for run in runs)
    return (text(title), Cell(len(runs)), grokked, *leads, doubtful, paired_at_random(runs), *test)


def _sign_p(runs: Sequence[Timeline]) -> float | None:
    signs = [run.sync.lead.sign for run in runs if run.sync.lead.sign is not None]
    return sign_test(signs).p_value if signs else None


def lead_share_sentence(table: Table) -> str:
    """The share of positive leads of every prime, and the lowest and the highest of the other tasks and groups."""
    rows = [row for row in table.rows if row[3].ours is not None]
    if not rows:
        return "How often FSD leads grokking is not known: no run of these tasks has grokked."
    primes = [row for row in rows if str(row[0].ours).startswith("add_mod")]
    others = [row for row in rows if row not in primes]
    parts = [listed([_said_share(table, row) for row in primes])] if primes else []
    if others:
        low, high = (pick(others, key=lambda row: float(row[3].ours or 0)) for pick in (min, max))
        ends = [low] if low[3].ours == high[3].ours else [low, high]
        parts.append(f"elsewhere {' to '.join(_said_share(table, row) + _said_doubt(table, row) for row in ends)}")
    how = "the share of grokked runs in which it crosses first (in brackets, if crossings are paired at random)"
    return f"How often FSD leads grokking, {how}: {'; '.join(parts)}."


def _said_share(table: Table, row: Row) -> str:
    share, by_chance = (said(table, row, name) for name in ("Positive lead", "Positive if paired at random"))
    return f"{row[0].ours} {share} ({by_chance})"


def _said_doubt(table: Table, row: Row) -> str:
    """What is to be said of crossings that cannot be news of grokking."""
    doubtful = said(table, row, "Doubtful crossings")
    return "" if doubtful.startswith("0") else f", with doubtful crossings in {doubtful}"


def ans_multiplication(evidence: Evidence) -> Table:
    """Leads of multiplication in its own basis and in the two that it does not have."""
    records = by_arm(evidence.study("base")).get(TASK, [])
    long = [record for name, record in evidence.study("multiplication").items() if name.endswith("_long")]
    read = {how: _read(records, column) for how, column in READINGS.items()}
    read |= {f"{how}, one seed to the printed 55,000 steps": _read(long, column) for how, column in READINGS.items()}
    tests = adjusted([_sign_p(found) if how in READINGS else None for how, found in read.items()])
    columns = (
        *map(Column, ("Read", "Seeds")),
        Column("Grokked", digits=2),
        Column("First crossing (median step)"),
        *LEAD_COLUMNS,
        *TESTS,
    )
    rows = [
        _basis_row(how, found, test) if found else empty_row(how, len(columns))
        for (how, found), test in zip(read.items(), tests, strict=True)
    ]
    notes = (
        "FSD ≥ 0.80 of the same activations in three readings. The own basis is the characters of the multiplicative "
        "group, over the nonzero answers in the order of their discrete logarithms: the basis in which every run of "
        "multiplication is watched. The additive one has the answers in the order of the integers; by a + b is as "
        "printed.",
        "At checkpoints, every 500 steps, grokking is seen at the same checkpoints. Runs that were not so measured are "
        "not counted.",
        LEADS,
        MEANS,
        "A crossing that did not come is later than the last look: such medians are Kaplan–Meier's.",
        "Sign tests are exact and two-sided; Holm's rule is over the readings of all seeds.",
    )
    title = "Has multiplication a precursor in its own basis?"
    return Table("ans-multiplication", "ans:multiplication", title, columns, tuple(rows), notes)


def _read(records: Sequence[RunRecord], column: str | None) -> list[Timeline]:
    """The runs with this column as their FSD; none is the log's."""
    if column is None:
        return [record.timeline for record in records]
    return [read.timeline for record in records if (read := read_by(record, column)) is not None]


def _basis_row(title: str, runs: Sequence[Timeline], test: tuple[Cell, Cell]) -> Row:
    crossed = pooled_steps([run.sync.step for run in runs], [run.last for run in runs])
    leads = lead_cells([run.sync.lead for run in runs])
    return (text(title), Cell(len(runs)), counted(run.grokked is not None for run in runs), crossed, *leads, *test)


def multiplication_sentence(table: Table) -> str:
    """The share of positive leads in every reading of all seeds."""
    rows = [row for row in table.rows[: len(READINGS)] if row[4].ours is not None]
    if not rows:
        return "Whether multiplication has a precursor is not known: no run of it has grokked."
    found = [f"{said(table, row, 'Positive lead')} ({row[0].ours})" for row in rows]
    return f"Multiplication crosses before it groks in these shares of its grokked runs: {listed(found)}."
