"""How often FSD_gen fires on S5 without grokking, and when."""

from collections.abc import Sequence

from grokscope.runs.records import RunRecord
from grokscope.specs import ReadingSpec
from grokscope.studies.answers.reading import by_arm, counted, empty_row, has_runs, said
from grokscope.studies.evidence import Evidence
from grokscope.studies.tables.reading import pooled_steps, pooled_values, read_by
from grokscope.timeline import Flag, Timeline
from grokscope.view.table import Cell, Column, Row, Table, text

__all__ = ["ans_s5_false", "s5_false_sentence"]

FRACTIONS = (0.7, 0.5, 0.3)
CONTROLS = (0.50, 0.80)  # thresholds of the control, which the paper does not state
FIRED = "FSD_gen fired"


def ans_s5_false(evidence: Evidence) -> Table:
    """FSD_gen and its control on S5, in runs that grok and in runs that never do."""
    arms = by_arm(evidence.study("symmetric"))
    columns = (
        *map(Column, ("Trained on, outcome", "Runs")),
        Column(FIRED, digits=2),
        Column("Fired at the first look", digits=2),
        Column("Fired before memorisation", digits=2),
        Column("Fired before grokking", digits=2),
        Column("Median step fired"),
        Column("Steps after memorisation (median)", signed=True),
        *(Column(f"Control ≥ {at:.2f} fired", digits=2) for at in CONTROLS),
    )
    rows: list[Row] = []
    for name, fractions in {**{f"{f:.0%}": (f,) for f in FRACTIONS}, "all": FRACTIONS}.items():
        runs = [record for fraction in fractions for record in arms.get(f"S5_f{fraction:g}", [])]
        for outcome, groks in (("never grokked", False), ("grokked", True)):
            own = [record for record in runs if (record.timeline.grokked is not None) == groks]
            title = f"{name}, {outcome}"
            rows.append(_row(title, own, groks) if own else empty_row(title, len(columns)))
    notes = (
        "Fired: FSD_gen ≥ 0.50 at any look, every 100 steps. On runs that never grok within their budget each is a "
        "false alarm. Shares are of all runs of the row, with 95 % Clopper–Pearson intervals.",
        "Before memorisation: at a look before train accuracy ≥ 0.99, or in a run that never had it. At the first look "
        "nothing has been learnt; an untrained network may lie above the threshold.",
        "Steps after memorisation are of runs that did both: the look of the crossing less that of memorisation; "
        "negative before it. Medians have 95 % intervals by percentile bootstrap, or are Kaplan–Meier's where a run "
        "never fired.",
        "The control is FSD over the elements' index in lexicographic order, at the checkpoints every 500 steps, "
        "with two thresholds because none is printed; runs without it are not counted.",
        "Rows 'all' pool the three shares of training pairs, whose seeds are the same; nothing is tested, so nothing "
        "is corrected for the number of rows.",
    )
    title = "How often does FSD_gen fire on S5 runs that never grok?"
    return Table("ans-s5-false", "ans:s5-false", title, columns, tuple(rows), notes)


def _row(title: str, records: Sequence[RunRecord], groks: bool) -> Row:
    runs = [record.timeline for record in records]
    return (
        text(title),
        Cell(len(runs)),
        counted(run.sync.step is not None for run in runs),
        *(counted(flag in run.sync.flags for run in runs) for flag in (Flag.AT_START, Flag.BEFORE_MEMORIZED)),
        counted(run.sync.lead.is_precursor for run in runs) if groks else text("n/a"),
        pooled_steps([run.sync.step for run in runs], [run.last for run in runs]),
        pooled_values(_delays(runs)),
        *(_control(records, at) for at in CONTROLS),
    )


def _delays(runs: Sequence[Timeline]) -> list[int]:
    """Crossing less memorisation, of the runs that have both."""
    both = [(run.sync.step, run.memorized) for run in runs]
    return [crossed - learnt for crossed, learnt in both if crossed is not None and learnt is not None]


def _control(records: Sequence[RunRecord], at: float) -> Cell:
    """The share of runs in which the control crosses, of those in which it was measured."""
    reading = ReadingSpec(fsd_sync=at, fsd_gen_sync=at)
    read = [found.timeline_by(reading) for record in records if (found := read_by(record, "control_fsd")) is not None]
    return counted(run.sync.step is not None for run in read)


def s5_false_sentence(table: Table) -> str:
    """False alarms against hits, over the three shares of training pairs."""
    never, grokked = table.rows[-2:]
    if not has_runs(never):
        return "How often FSD_gen fires on S5 without grokking is not known: no run of it was trained and did not grok."
    beside = f", and in {said(table, grokked, FIRED)} of those that do" if has_runs(grokked) else ""
    return f"FSD_gen fires in {said(table, never, FIRED)} of the runs of S5 that never grok{beside}."
