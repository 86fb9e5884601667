"""A study of four tiny runs, with a claim, a table, a supplementary analysis and a figure."""

from collections.abc import Mapping

from grokscope.runs.records import RunRecord
from grokscope.specs import Architecture, Cadence, Fork, RunSpec, Training
from grokscope.studies import (
    Claim,
    Estimand,
    Evidence,
    Item,
    Measured,
    Quantity,
    Rule,
    Selection,
    Stratum,
    Study,
    cell,
    rule,
)
from grokscope.studies.reduction import mean
from grokscope.studies.study import Precision, Runs
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.numbers import format_number
from grokscope.view.table import Column, Table, text


def tiny(n_seeds: int | None, precision: Precision) -> Runs:
    """Runs of a size that a test can train."""
    spec = RunSpec(
        "add_mod7",
        architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
        training=Training(steps=12, batch_size=16),
        checkpoints=Cadence(6, at=(6,)),
        measurements=Cadence(3),
        precision=precision,
    )
    return {f"tiny_s{seed}": spec.with_seed(seed) for seed in range(n_seeds or 2)}


def forks(n_seeds: int | None, precision: Precision) -> Runs:
    """Each of them forked at step 6."""
    return {
        f"{name}_x1": RunSpec.from_dict(parent.to_dict() | {"fork": Fork(parent.content_hash, 6).to_dict()})
        for name, parent in tiny(n_seeds, precision).items()
    }


def _norm(records: Mapping[str, RunRecord]) -> Measured:
    values = [record.evaluations["norm"][-1] for record in records.values()]
    mean = sum(values) / len(values)
    return Measured.of(mean, format_number(mean, 1), len(values))


def read_norm(record: RunRecord) -> Mapping[str, float]:
    return {"norm": record.evaluations["norm"][-1]}


LAST_NORM = Estimand(
    "mean last norm",
    (Stratum("tiny runs", Selection(("tiny",))),),
    read_norm,
    {"norm": mean("norm")},
    "{norm:.1f}",
    ("norm", ".1f"),
)
NORM = Quantity("mean last norm", Selection(("tiny",)), _norm)


def _table(evidence: Evidence) -> Table:
    return Table(
        "tab-norm", "tab:norm", "Norms", (Column("Runs"), Column("Norm", 1)), ((text("all"), cell(evidence, NORM)),)
    )


def _supplement(evidence: Evidence) -> Table:
    return Table("sup-norm", "sup:norm", "More norms", (Column("Norm", 1),), ((cell(evidence, NORM),),))


def _sentence(table: Table) -> str:
    return f"The norm is {format_number(table.rows[0][0].ours, 1)}."


def _figure(evidence: Evidence) -> Figure:
    points = Series("norm", "points", "norm", "seeds", (0,), (evidence.measure(NORM).number(),), quantity=NORM.key)
    return Figure("fig-norm", "fig:norm", "Norms", (Panel("Norms", "run", "norm", (points,)),))


STUDY = Study(
    name="small",
    title="A small study",
    experiments={"tiny": tiny, "forks": forks},
    claims=(
        Claim(
            "norm-positive", "The norm is positive.", "§1", "yes", LAST_NORM, Rule(rule.above(0, "norm")), "tab-norm"
        ),
    ),
    tables=(Item("tab-norm", ("tiny",), _table),),
    supplements=(Item("sup-norm", ("tiny",), _supplement, _sentence),),
    figures=(Item("fig-norm", ("tiny",), _figure),),
    measures=("fsd",),
    milestones=("removal",),
    measured=("tiny",),
)
