"""The figures: the time to grok against the held norm, model by model, and against the scale of the logits."""

from collections.abc import Callable
from math import isfinite, isinf, nan

from grokscope.stats import Estimate
from grokscope.studies import Evidence, Item
from grokscope.studies.clock.cells import MODELS
from grokscope.studies.clock.experiments import DOSES, TEMPERATURES, dose
from grokscope.studies.clock.tables import outcome
from grokscope.view.charts.figure import Ends, Figure, Panel, Series

__all__ = ["FIGURES"]

ROLES = {"mlp": "norm", "none": "mem", "block": "rank", "final": "fsd", "both": "fixed"}
NOTE = (
    "Medians by Kaplan–Meier with 95 % intervals, beside each how many runs grokked of how many. All panels have one "
    "scale of steps."
)
BOUNDS = (
    "A point marked > is the last step of a cell of which fewer than half had grokked; its median is later, which the "
    "line above it stands for."
)
DRAWN = 1.7  # of ρ: beyond are cells that are slower than their budget
STEPS, OPEN = (400.0, 200_000.0), 60_000.0  # the scale, and where the line of a bound ends


def _cells(model: str, is_tempered: bool) -> tuple[str, ...]:
    tempered = tuple(dose(*pair) for pair in TEMPERATURES.get(model, {})) if is_tempered else ()
    return (*(dose(rho) for rho in DOSES[model] if rho < DRAWN), *tempered)


def _points(evidence: Evidence, model: str, across: str, is_tempered: bool) -> Series | None:
    """A model's cells: across ρ or the scale of the logits, up the median step or a bound of it."""
    rows: list[tuple[float, float, float, float, str]] = []
    for name in _cells(model, is_tempered):
        found = evidence.measure(outcome(model, name))
        place = found.number(across) if not found.missing else nan
        step = found.parts.get("step")
        if not isfinite(place) or not isinstance(step, Estimate):
            continue
        is_bound, count = isinf(step.value), f"{round(found.number('grokked') * found.n)}/{found.n}"
        middle = found.number("last") if is_bound else step.value
        low, high = (end if isfinite(end) else middle for end in (step.low, step.high))
        low, high = (middle, OPEN) if is_bound else (low, high)
        rows.append((place, middle, low, high, f"> {count}" if is_bound else count))
    if not rows:
        return None
    rows.sort()
    x, y, lows, highs, texts = zip(*rows, strict=True)
    title, key = MODELS[model].title, outcome(model, dose(1.0)).key
    return Series(title, "points", ROLES[model], "seeds", x, y, lows, highs, texts, quantity=key)


def _figure(
    name: str, title: str, across: str, label: str, x_range: Ends | None, notes: tuple[str, ...]
) -> Callable[[Evidence], Figure]:
    def build(evidence: Evidence) -> Figure:
        panels = tuple(
            Panel(MODELS[model].title, label, "median grok step", (points,), log_y=True, x_range=x_range, y_range=STEPS)
            for model in MODELS
            if (points := _points(evidence, model, across, x_range is None)) is not None
        )
        more = notes if panels else (*notes, "None of its runs is there.")
        return Figure(name, name.replace("fig-", "fig:", 1), title, panels, more, columns=3)

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
            (0.85, DRAWN),
            (NOTE, BOUNDS),
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
            None,
            (NOTE, "Cells in which no run grokked have no scale."),
        ),
    ),
)
