"""Does more weight decay make a small network grok sooner? A study of nine runs, a few minutes on two cores.

grokscope reproduce examples/own_study --out runs/own_study
"""

from collections.abc import Mapping
from math import inf
from typing import Any

from grokscope.runs.records import RunRecord
from grokscope.specs import Architecture, Cadence, RunSpec, Training
from grokscope.stats import kaplan_meier
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
from grokscope.studies.reduction import median
from grokscope.studies.study import Precision, Runs
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.numbers import format_step
from grokscope.view.table import Column, Table, text

DECAYS = (0.3, 0.5, 1.0)  # at 3 none of these networks memorises


def decay(n_seeds: int | None, precision: Precision) -> Runs:
    """What to run: three values of λ, three seeds of each if not more are wanted."""
    small = Architecture(layers=1, width=64, heads=2, mlp_width=128)
    return {
        f"decay{value:g}_s{seed}": RunSpec(
            "add_mod31",
            train_fraction=0.6,
            architecture=small,
            training=Training(steps=3000, batch_size=128, learning_rate=3e-3, weight_decay=value),
            measurements=Cadence(every=25),
            checkpoints=Cadence(every=None),
            precision=precision,
        ).with_seed(seed)
        for value in DECAYS
        for seed in range(n_seeds or 3)
    }


def _median_grok_step(records: Mapping[str, RunRecord]) -> Measured:
    """The median grok step by Kaplan–Meier: a run that has not grokked is later than its last evaluation."""
    events = [record.timeline for record in records.values()]
    times = [one.last if one.grokked is None else one.grokked for one in events]
    found = kaplan_meier(times, [one.grokked is not None for one in events]).median
    return Measured.of(found, format_step(int(found.value)) if found.value < 1e9 else "never", len(records))


def grok_step(value: float) -> Quantity:
    """The quantity behind the table's cell and the figure's point."""
    return Quantity("median grok step", Selection(("decay",), weight_decays=(value,)), _median_grok_step)


def read_grok_step(record: RunRecord) -> Mapping[str, float]:
    """What the claim reads of one run; infinite where it has not grokked."""
    grokked = record.timeline.grokked
    return {"grok step": inf if grokked is None else float(grokked)}


def derive_ratio(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """How many times sooner the median run groks at the higher λ."""
    return {"ratio": parts["low"] / parts["high"]}


RATIO = Estimand(
    "ratio of median grok steps",
    strata=tuple(Stratum(f"λ = {value:g}", Selection(("decay",), weight_decays=(value,))) for value in (0.5, 1.0)),
    read=read_grok_step,
    parts={"low": median("grok step", "λ = 0.5"), "high": median("grok step", "λ = 1")},
    text="{ratio:.1f} times",
    effect=("ratio", ".1f"),
    derive=derive_ratio,
)
CLAIMS = (
    Claim(
        "decay-speeds-up",
        "Twice the weight decay makes grokking twice as fast.",
        "our own question",
        "twice",
        RATIO,
        Rule.of_many(rule.within(0.2, of=2, part="ratio")),
        "tab-decay",
    ),
)


def _table(evidence: Evidence) -> Table:
    rows = tuple((text(f"{value:g}"), cell(evidence, grok_step(value))) for value in DECAYS)
    return Table("tab-decay", "tab:decay", "Grok step by weight decay", (Column("λ"), Column("Median grok step")), rows)


def _figure(evidence: Evidence) -> Figure:
    found = [evidence.measure(grok_step(value)).number() for value in DECAYS]
    keys = "; ".join(grok_step(value).key for value in DECAYS)
    points = Series("median of the seeds", "points", "validation", "seeds", DECAYS, tuple(found), quantity=keys)
    panel = Panel("Addition mod 31, one layer", "weight decay λ", "median grok step", (points,), log_x=True)
    return Figure("fig-decay", "fig:decay", "Grok step by weight decay", (panel,))


STUDY = Study(
    name="decay",
    title="Weight decay and the time to grok",
    experiments={"decay": decay},
    claims=CLAIMS,
    tables=(Item("tab-decay", ("decay",), _table),),
    figures=(Item("fig-decay", ("decay",), _figure),),
)
