"""Figure 9: FSD_gen on S5 over the steps, its control and its nulls, with validation accuracy."""

from dataclasses import replace

from grokscope.specs import ReadingSpec
from grokscope.studies import Evidence, Item
from grokscope.studies.synchronization import readings, series
from grokscope.studies.synchronization.experiments import S5_SEEDS
from grokscope.studies.synchronization.groups import FRACTIONS, SIX, run_at, seeds_at
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.table import not_trained

__all__ = ["FIGURES"]

CURVES = {  # column → name, colour
    "control_fsd": ("Fourier control", "control"),
    "validation_accuracy": ("validation accuracy", "accuracy"),
    "fsd": ("FSD_gen", "fsd"),
}


def _fig_transfer(evidence: Evidence) -> Figure:
    """Figure 9: six seeds of S5, and below them all seeds at each train fraction."""
    runs = evidence.experiment("symmetric")
    until = series.last_shown(seeds_at(FRACTIONS[0]).select(evidence.records).values(), 8000)
    panels = [_seed_panel(evidence, seed, until) for seed in S5_SEEDS]
    panels += [_fraction_panel(evidence, fraction, until) for fraction in FRACTIONS]
    grokked = len(readings.grokked_runs(runs.values()))
    return Figure(
        "fig-transfer",
        "fig:transfer",
        "FSD_gen on S5: " + (f"{len(runs)} runs, of which {grokked} grokked" if runs else "no runs"),
        tuple(panels),
        notes=(
            "Seeds are trained on 70 % of the pairs, which is 30 % held out. FSD_gen is evaluated every 100 steps, the "
            "control at the checkpoints.",
            "The paper's diamonds: FSD_gen reaching 0.50 and validation accuracy 0.95, at the reported steps.",
            "Nulls of FSD_gen: the first evaluation of the runs themselves, which are untrained networks, and the "
            "exact 95 % point of independent neurons with Gaussian means, which is the paper's random-activation null.",
            "The lower row: medians over seeds, between quartiles but for validation accuracy; a run whose FSD_gen is "
            "undefined, because its neurons no longer vary, is not in FSD_gen's there.",
            *series.steps_shown(until, runs.values()),
            *not_trained(set(SIX.names) - runs.keys()),
        ),
        columns=3,
        panel_size=(2.5, 1.75),
    )


def _seed_panel(evidence: Evidence, seed: int, until: int) -> Panel:
    reported, reading, run = REPORTED["tab:transfer"], ReadingSpec(), run_at(FRACTIONS[0], seed)
    return _panel(
        f"seed {seed}",
        "",
        (
            *_nulls(evidence, FRACTIONS[0], until),
            *[
                series.line(evidence, series.curve(run, column), until, name, role)
                for column, (name, role) in CURVES.items()
            ],
            *[
                Series("paper", "points", role, "paper", (step,), (height,))
                for column, role, height in (
                    ("grok", "accuracy", reading.grokked),
                    ("sync", "fsd", reading.fsd_gen_sync),
                )
                if isinstance(step := reported.get(str(seed), column), int)
            ],
        ),
        until,
    )


def _fraction_panel(evidence: Evidence, fraction: float, until: int) -> Panel:
    runs = seeds_at(fraction)
    curves = [
        series.seeds_line(evidence, series.quartiles(runs, column), until, name, role)
        for column, (name, role) in CURVES.items()
    ]
    # Accuracies leap between 0 and 1, and their band would be as grey as the null's.
    curves = [replace(one, low=(), high=()) if one.role == "accuracy" else one for one in curves]
    title = f"trained on {fraction:.0%}, {len(runs.select(evidence.records))} seeds"
    return _panel(title, "step", (*_nulls(evidence, fraction, until), *curves), until)


def _panel(title: str, x_label: str, drawn: tuple[Series, ...], until: int) -> Panel:
    return Panel(title, x_label, "", drawn, x_range=(0, until), y_range=(-0.06, 1.08))


def _nulls(evidence: Evidence, fraction: float, until: int) -> tuple[Series, ...]:
    runs = seeds_at(fraction)
    first = next(iter(runs.select(evidence.records)), None)
    if first is None:
        return ()
    return series.untrained_band(evidence, series.untrained(runs, "fsd"), until), *series.independent_line(
        evidence, readings.one_run(first, "symmetric")
    )


FIGURES = (Item("fig-transfer", ("symmetric",), _fig_transfer),)
