"""The figure of the transfer to S5: FSD_gen, its control and its nulls, beside accuracy."""

from collections.abc import Mapping
from dataclasses import replace

from grokscope.runs.records import RunRecord
from grokscope.specs import ReadingSpec
from grokscope.studies.evidence import Evidence
from grokscope.studies.figures.reading import beginning, curve, independent_line, quartiles, shown_until, untrained_band
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.studies.tables.variants import FRACTIONS
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.table import not_trained

__all__ = ["fig_transfer"]

CURVES = {  # column → name, colour
    "control_fsd": ("Fourier control", "control"),
    "validation_accuracy": ("validation accuracy", "accuracy"),
    "fsd": ("FSD_gen", "fsd"),
}


def fig_transfer(evidence: Evidence) -> Figure:
    """Figure 9: six seeds of S5, and below them all seeds at each train fraction."""
    printed, study = REPORTED["tab:transfer"], evidence.study("symmetric")
    seeds = [seed for seed in printed.rows if seed != "mean"]
    by_fraction = {fraction: _at(study, fraction) for fraction in FRACTIONS}
    named = {seed: by_fraction[FRACTIONS[0]].get(f"S5_f{FRACTIONS[0]:g}_s{seed}") for seed in seeds}
    until = shown_until(by_fraction[FRACTIONS[0]].values(), 8000)
    panels = [_one_seed(seed, record, by_fraction[FRACTIONS[0]], until) for seed, record in named.items()]
    panels += [_all_seeds(fraction, runs, until) for fraction, runs in by_fraction.items()]
    grokked = sum(record.timeline.grokked is not None for record in study.values())
    title = "FSD_gen on S5: " + (f"{len(study)} runs, of which {grokked} grokked" if study else "no runs")
    notes = (
        "Seeds are trained on 70 % of the pairs, which is 30 % held out. FSD_gen is seen every 100 steps, the "
        "control at the checkpoints.",
        "The paper's diamonds: FSD_gen reaching 0.50 and validation accuracy 0.95, at the printed steps.",
        "Nulls of FSD_gen: the first look of the runs themselves, which are untrained networks, and the exact 95 % "
        "point of independent neurons with Gaussian means, which is the paper's random-activation null.",
        "The lower row: medians over seeds, between quartiles but for validation accuracy; a run whose FSD_gen is "
        "undefined, because its neurons no longer vary, is not in FSD_gen's there.",
        *beginning(until, study.values()),
        *not_trained({f"S5_f{FRACTIONS[0]:g}_s{seed}" for seed, record in named.items() if record is None}),
    )
    return Figure("fig-transfer", "fig:transfer", title, tuple(panels), notes, 3, (2.5, 1.75))


def _at(study: Mapping[str, RunRecord], fraction: float) -> dict[str, RunRecord]:
    return {name: record for name, record in study.items() if name.startswith(f"S5_f{fraction:g}_")}


def _one_seed(seed: str, record: RunRecord | None, runs: Mapping[str, RunRecord], until: int) -> Panel:
    printed = REPORTED["tab:transfer"]
    reading = ReadingSpec()
    marks = [
        Series("paper", "points", role, "paper", (step,), (height,))
        for column, role, height in (("grok", "accuracy", reading.grokked), ("sync", "fsd", reading.fsd_gen_sync))
        if isinstance(step := printed.get(seed, column), int)
    ]
    curves = [curve(record, column, until, name, role) for column, (name, role) in CURVES.items()]
    return _panel(f"seed {seed}", "", (*_nulls(runs, until), *curves, *marks), until)


def _all_seeds(fraction: float, runs: Mapping[str, RunRecord], until: int) -> Panel:
    curves = [quartiles(runs.values(), column, until, name, role) for column, (name, role) in CURVES.items()]
    # Accuracies leap between 0 and 1, and their band would be as grey as the null's.
    curves = [replace(one, low=(), high=()) if one.role == "accuracy" else one for one in curves]
    title = f"trained on {fraction:.0%}, {len(runs)} seeds"
    return _panel(title, "step", (*_nulls(runs, until), *curves), until)


def _panel(title: str, x_label: str, series: tuple[Series, ...], until: int) -> Panel:
    return Panel(title, x_label, "", series, x_range=(0, until), y_range=(-0.06, 1.08))


def _nulls(runs: Mapping[str, RunRecord], until: int) -> tuple[Series, ...]:
    if not runs:
        return ()
    return untrained_band(runs.values(), "fsd", until), independent_line(next(iter(runs.values())))
