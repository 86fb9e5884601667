"""Tables of what a run has inside: rank and norm over time, FourierKAN, ablations."""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from math import isnan, nan

from grokscope.runs.records import RunRecord
from grokscope.studies.evidence import Evidence
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.studies.tables.reading import REPORTED_LOOKS, at_or_nan, number, pooled_values, seen_every
from grokscope.tasks import named_task
from grokscope.view.table import Cell, Column, Row, Table, not_measured, not_trained, text

__all__ = ["tab_ablation", "tab_kan", "tab_rank"]

PRINTED_RUN = "add_mod97_s42"
BEFORE = 500  # the step that is "before grokking" (docs/paper-audit.md §1)
COMPONENTS = {
    "none": "None (original)",
    "mlp0": "Zero block 0 MLP",
    "mlp1": "Zero block 1 MLP",
    "attn0": "Zero block 0 attention",
    "attn1": "Zero block 1 attention",
}
KAN = {  # printed column → heading, digits, our column
    "rank_one_share": ("Rank-1 frac", 2, "rank_one_share"),
    "r2_rank_1": ("R² (rank 1)", 3, "r2_rank_1"),
    "kan_r2": ("KAN R²", 3, "kan_trained_r2"),
    "agreement": ("Agree", 2, "kan_agreement"),
}


def tab_rank(evidence: Evidence) -> Table:
    """Table 5: rank and norm of one run over time."""
    printed, runs = REPORTED["tab:rank"], evidence.task("add_mod97")
    own, is_widened = runs.get(PRINTED_RUN), any(name not in REPORTED["tab:configs"].rows for name in runs)
    rows: list[Row] = []
    for step in printed.rows:
        cells = [
            Cell(number(at_or_nan(own, int(step), column)), printed.get(step, column))
            for column in ("validation_accuracy", "rank", "norm")
        ]
        was_seen = own is not None and int(step) in own.evaluations["step"]
        phase = str(seen_every(own).timeline.phase(int(step))) if own is not None and was_seen else None
        pooled = [pooled_values([run.at(int(step), column) for run in runs.values()]) for column in ("rank", "norm")]
        rows.append((text(step), *cells, Cell(phase, printed.get(step, "phase")), *(pooled if is_widened else ())))
    columns = [
        Column("Step"),
        Column("Val acc", digits=3),
        Column("Median rank", digits=1),
        Column("Total norm", digits=2),
        Column("Phase"),
    ]
    if is_widened:
        columns += [Column("Median rank, all seeds", digits=1), Column("Total norm, all seeds", digits=2)]
    notes = (
        "Phase 2 starts at the first median rank 1, or at the rank after grokking where 1 does not come.",
        *(("All seeds of add_mod97: medians with 95 % percentile-bootstrap intervals.",) if is_widened else ()),
        *not_trained({PRINTED_RUN} - runs.keys()),
    )
    title = "Rank and norm over time, addition mod 97"
    return Table("tab-rank", printed.label, title, tuple(columns), tuple(rows), notes)


def grok_look(record: RunRecord) -> int | None:
    """The first of the paper's checkpoints at or after grokking, which is where the fits are made."""
    grok = record.timeline.grokked
    looks = (int(step) for step in record.evaluations["step"] if step % PRINTED_LOOKS == 0)
    return None if grok is None else next((step for step in looks if step >= grok), None)


def tab_kan(evidence: Evidence) -> Table:
    """Table 6: ranks before and after grokking, and the Fourier fits of the neurons."""
    printed, base = REPORTED["tab:kan_all"], evidence.study("base")
    rows = [_kan_row(name, base.get(name)) for name in printed.rows]
    for task in dict.fromkeys(record.spec.task for record in base.values()):
        runs = {name: record for name, record in base.items() if record.spec.task == task}
        if task.startswith("add") and runs.keys() - printed.rows.keys():
            rows.append(_kan_pooled(task, runs))
    columns = (
        Column("Experiment"),
        Column("Rank before", digits=1),
        Column("Rank after", digits=1),
        *(Column(heading, digits=digits) for heading, digits, _ in KAN.values()),
        Column("Dom. freq"),
        Column("KAN R², closed form", digits=3),
    )
    notes = (
        f"Before is step {BEFORE}, after is the first checkpoint, every {PRINTED_LOOKS} steps, at or after grokking.",
        "KAN R² is the trained fit's, as printed; the closed form beside it converges for every prime.",
        *not_measured("The fits at that checkpoint were", _without(base, printed.rows, "kan_trained_r2")),
        *not_trained(printed.rows.keys() - base.keys()),
    )
    title = "Fourier fits of the neurons of nine additions"
    return Table("tab-kan", printed.label, title, columns, tuple(rows), notes)


def _without(runs: Mapping[str, RunRecord], names: Iterable[str], column: str) -> list[str]:
    """The trained runs among these that have no such value at the grok look, or did not grok."""
    trained = [name for name in names if name in runs]
    return [name for name in trained if isnan(at_or_nan(runs[name], grok_look(runs[name]), column))]


def _kan_readings() -> list[tuple[str, Callable[[RunRecord], float | int]]]:
    """Reported column and our value of it, in the table's order."""

    def after(column: str) -> Callable[[RunRecord], float | int]:
        return lambda record: at_or_nan(record, grok_look(record), column)

    fits = [(name, after(column)) for name, (_, _, column) in KAN.items()]
    return [
        ("rank_before", lambda record: record.at(BEFORE, "rank")),
        ("rank_after", after("rank")),
        *fits,
        ("mode", after("fsd_mode")),
        ("", after("kan_r2")),
    ]


def _kan_row(name: str, record: RunRecord | None) -> Row:
    printed = REPORTED["tab:kan_all"]
    readings = _kan_readings()
    values = [number(read(record)) if record else None for _, read in readings]
    return (text(name), *(Cell(v, printed.get(name, column)) for v, (column, _) in zip(values, readings, strict=True)))


def _kan_pooled(task: str, runs: Mapping[str, RunRecord]) -> Row:
    cells = [
        Cell() if column == "mode" else pooled_values([read(record) for record in runs.values()])
        for column, read in _kan_readings()
    ]
    return (text(f"{task}, all seeds"), *cells)


def tab_ablation(evidence: Evidence) -> Table:
    """Table 7: accuracy over all pairs without one component."""
    printed, runs = REPORTED["tab:ablation"], evidence.task("add_mod97")
    own, is_widened = runs.get(PRINTED_RUN), any(name not in REPORTED["tab:configs"].rows for name in runs)
    rows: list[Row] = []
    for part, title in COMPONENTS.items():
        drop = _drop(own, part)
        cells = [
            Cell(number(100 * (_accuracy(own) - (0 if part == "none" else drop))), printed.get(part, "accuracy")),
            Cell(None if part == "none" else number(100 * drop), printed.get(part, "drop")),
        ]
        pooled = pooled_values([100 * _drop(run, part) for run in runs.values()])
        rows.append((text(title), *cells, *((pooled,) if is_widened else ())))
    columns = [Column("Ablated component"), Column("Accuracy (%)", digits=2), Column("Drop (pp)", digits=1)]
    if is_widened:
        columns.append(Column("Drop (pp), all seeds", digits=1))
    notes = (
        "Over all pairs, at the first checkpoint at or after grokking, which is step 4,000 in the paper.",
        *(("All seeds of add_mod97: medians with 95 % percentile-bootstrap intervals.",) if is_widened else ()),
        *not_measured("The ablations at that checkpoint were", _without(runs, {PRINTED_RUN}, "drop_mlp0_zero")),
        *not_trained({PRINTED_RUN} - runs.keys()),
    )
    title = "Zero-ablation, addition mod 97"
    return Table("tab-ablation", printed.label, title, tuple(columns), tuple(rows), notes)


def _drop(record: RunRecord | None, part: str) -> float | int:
    return nan if record is None else at_or_nan(record, grok_look(record), f"drop_{part}_zero")


def _accuracy(record: RunRecord | None) -> float | int:
    """Accuracy over all pairs at the grok look: train and validation, each by its number of pairs."""
    if record is None:
        return nan
    step, count = grok_look(record), len(named_task(record.spec.task).inputs)
    train = int(Fraction(str(record.spec.train_fraction)) * count)  # as the split rounds
    parts = (at_or_nan(record, step, name) for name in ("train_accuracy", "validation_accuracy"))
    return sum(size * value for size, value in zip((train, count - train), parts, strict=True)) / count
