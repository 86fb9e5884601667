"""One run as a chart: what its log says of every evaluation, with the steps of its events."""

from collections.abc import Iterator, Sequence
from math import isnan, nan

from grokscope.errors import InputError
from grokscope.runs.records import RunRecord
from grokscope.view.charts.figure import Figure, Panel, Series

__all__ = ["run_chart"]

SIZE = (6.0, 1.3)  # inches of a panel
PANELS = {  # what is up → columns of the log, each with its label and role
    "accuracy": {"train_accuracy": ("train", "train"), "validation_accuracy": ("validation", "validation")},
    "loss": {"train_loss": ("train", "train"), "validation_loss": ("validation", "validation")},
    "FSD": {"fsd": ("FSD", "fsd")},
    "Fourier rank": {"rank": ("Fourier rank", "rank")},
    "norm ‖W‖": {"norm": ("norm ‖W‖", "norm")},
}
LOGARITHMIC = "loss"


def run_chart(name: str, record: RunRecord, untrained_95: float | None = None) -> Figure:
    """The run's curves, a panel for each kind that was logged; its events are vertical lines, named in the first.

    `untrained_95` is the 95 % quantile of FSD in untrained networks of the same spec, a horizontal line.
    """
    curves = {up: found for up in PANELS if (found := tuple(_curves(record, up)))}
    if not curves:
        raise InputError(f"{name} has no evaluations to plot yet")
    panels = [
        Panel(
            up[0].upper() + up[1:],
            "step",
            up,
            (*found, *_null(up, untrained_95), *_marks(record, not place)),
            log_y=up == LOGARITHMIC,
        )
        for place, (up, found) in enumerate(curves.items())
    ]
    return Figure(name, "", f"{name}: {record.spec.training.decay_label}", tuple(panels), panel_size=SIZE)


def _curves(record: RunRecord, up: str) -> Iterator[Series]:
    for column, (label, role) in PANELS[up].items():
        values = record.evaluations.get(column, [])
        shown = tuple(_positive(values) if up == LOGARITHMIC else values)
        if not all(map(isnan, shown)):
            legend = None if len(PANELS[up]) > 1 else ""  # one curve needs none
            yield Series(label, "line", role, "run", tuple(record.evaluations["step"]), shown, legend=legend)


def _null(up: str, untrained_95: float | None) -> Iterator[Series]:
    if up == "FSD" and untrained_95 is not None:
        yield Series("95 % of untrained networks", "horizontal", "null", "null", y=(untrained_95,))


def _positive(values: Sequence[float]) -> list[float]:
    """Values that a logarithmic axis can show."""
    return [value if value > 0 else nan for value in values]


def _marks(record: RunRecord, with_words: bool) -> Iterator[Series]:
    events = record.timeline_or_none
    fork = record.spec.fork
    steps = {
        "forked": ("null", fork.step if fork else None),
        "memorised": ("train", events.memorized if events else None),
        "synchronised": ("fsd", events.sync.step if events else None),
        "grokked": ("grokked", events.grokked if events else None),
    }
    for word, (role, step) in steps.items():
        if step is not None:
            yield Series(word, "vertical", role, "run", (step,), texts=(word,) * with_words, legend="")
