"""The figures: the time to grok against the held norm, model by model, and against the scale of the logits."""

from collections.abc import Callable
from math import isfinite, isinf, nan

from grokscope.stats import Estimate
from grokscope.studies import Evidence, Item
from grokscope.studies.clock.cells import MODELS
from grokscope.studies.clock.experiments import DOSES, TEMPERATURES, dose
from grokscope.studies.clock.tables import outcome
from grokscope.view.charts.figure import Figure, Panel, Series

__all__ = ["FIGURES"]

ROLES = {"mlp": "norm", "none": "mem", "block": "rank", "final": "fsd", "both": "grokked"}
NOTE = (
    "Medians by Kaplan–Meier with 95 % intervals, beside each how many runs grokked of how many; cells in which fewer "
    "than half did have no point."
)


def _cells(model: str, is_tempered: bool) -> tuple[str, ...]:
    tempered = tuple(dose(*pair) for pair in TEMPERATURES.get(model, {})) if is_tempered else ()
    return (*map(dose, DOSES[model]), *tempered)


def _points(evidence: Evidence, model: str, across: str, is_tempered: bool) -> Series | None:
    """A model's cells: across ρ or the scale of the logits, up the median step."""
    rows: list[tuple[float, float, float, float, str]] = []
    for name in _cells(model, is_tempered):
        found = evidence.measure(outcome(model, name))
        place = found.number(across) if not found.missing else nan
        step = found.parts.get("step")
        if not isfinite(place) or not isinstance(step, Estimate):
            continue
        middle = nan if isinf(step.value) else step.value
        ends = [middle if isinf(end) else end for end in (step.low, step.high)]
        rows.append((place, middle, ends[0], ends[1], f"{round(found.number('grokked') * found.n)}/{found.n}"))
    if not rows:
        return None
    rows.sort()
    x, y = tuple(row[0] for row in rows), tuple(row[1] for row in rows)
    low, high = tuple(row[2] for row in rows), tuple(row[3] for row in rows)
    return Series(
        MODELS[model].title,
        "points",
        ROLES[model],
        "seeds",
        x,
        y,
        low,
        high,
        tuple(row[4] for row in rows),
        quantity=outcome(model, dose(1.0)).key,
    )


def _figure(name: str, title: str, across: str, label: str, is_tempered: bool) -> Callable[[Evidence], Figure]:
    def build(evidence: Evidence) -> Figure:
        panels = tuple(
            Panel(MODELS[model].title, label, "median grok step", series=(points,), log_y=True)
            for model in MODELS
            if (points := _points(evidence, model, across, is_tempered)) is not None
        )
        notes = (NOTE,) if panels else (NOTE, "None of its runs is there.")
        return Figure(name, name.replace("fig-", "fig:", 1), title, panels, notes, columns=3)

    return build


FIGURES = (
    Item(
        "fig-doses",
        ("parents", "doses"),
        _figure(
            "fig-doses",
            "The held norm and the time to grok, by LayerNorm",
            "ρ",
            "ρ, held norm over norm at grokking",
            False,
        ),
    ),
    Item(
        "fig-logits",
        ("parents", "doses", "temperatures"),
        _figure(
            "fig-logits",
            "The scale of the logits and the time to grok",
            "logits",
            "scale of the logits at grokking",
            True,
        ),
    ),
)
