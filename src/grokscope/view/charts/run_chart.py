"""One run as a chart: what its log says of every evaluation, with the steps of its events."""

from collections.abc import Iterator, Sequence
from math import isnan, nan

from grokscope.errors import InputError
from grokscope.runs.records import RunRecord
from grokscope.view.charts.drawing import WIDE
from grokscope.view.charts.figure import Ends, Figure, Panel, Series

__all__ = ["run_chart"]

SIZE = (6.0, 1.3)  # inches of a panel
PANELS = {  # what is up → columns of the log, each with its label and role
    "accuracy": {"train_accuracy": ("train", "train"), "validation_accuracy": ("validation", "validation")},
    "loss": {"train_loss": ("train", "train"), "validation_loss": ("validation", "validation")},
    "error": {  # over what counts as success
        "train_relative_error": ("train", "train"),
        "validation_relative_error": ("validation", "validation"),
    },
    "FSD": {"fsd": ("FSD", "fsd")},
    "Fourier rank": {"rank": ("Fourier rank", "rank")},
    "norm ‖W‖": {"norm": ("norm ‖W‖", "norm")},
}
ERROR = "error"
LOGARITHMIC = ("loss", ERROR)
APART = ("grokked", "rank", "norm")  # roles of their curves
HELD_OUT = ("accuracy", "loss")  # what is logged of groups of rows that are held out


def run_chart(name: str, record: RunRecord, untrained_95: float | None = None) -> Figure:
    """The run's curves, a panel for each kind that was logged; its events are vertical lines, named in the first.

    Where answers are real, one panel has the squared error over what counts as success, with a line at 1.
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
            log_y=up in LOGARITHMIC,
            y_range=_ends(found) if up in LOGARITHMIC else None,
        )
        for place, (up, found) in enumerate(curves.items())
    ]
    return Figure(name, "", f"{name}: {record.spec.training.decay_label}", tuple(panels), panel_size=SIZE)


def _columns(record: RunRecord, up: str) -> dict[str, tuple[str, str]]:
    """A panel's columns; of accuracy and loss also those of groups of rows that are held out."""
    if up not in HELD_OUT:
        return PANELS[up]
    names = [name for name in record.evaluations if name.endswith(f"_{up}") and name not in PANELS[up]]
    apart = {
        name: (name.removesuffix(f"_{up}").replace("_", " "), APART[i % len(APART)]) for i, name in enumerate(names)
    }
    return PANELS[up] | apart


def _curves(record: RunRecord, up: str) -> Iterator[Series]:
    columns = _columns(record, up)
    for column, (label, role) in columns.items():
        values = record.evaluations.get(column, [])
        shown = tuple(_positive(values) if up in LOGARITHMIC else values)
        if not all(map(isnan, shown)):
            legend = None if len(columns) > 1 else ""  # one curve needs none
            yield Series(label, "line", role, "run", tuple(record.evaluations["step"]), shown, legend=legend)


def _null(up: str, untrained_95: float | None) -> Iterator[Series]:
    if up == ERROR:
        yield Series("success", "horizontal", "null", "null", y=(1.0,))
    if up == "FSD" and untrained_95 is not None:
        yield Series("95 % of untrained networks", "horizontal", "null", "null", y=(untrained_95,))


def _ends(curves: Sequence[Series]) -> Ends | None:
    """Of a loss that falls by many powers of ten the ends of its axis, which are otherwise left to the data."""
    values = [value for one in curves for value in one.y if value > 0]
    low, high = min(values, default=1.0), max(values, default=1.0)
    return (low / 2, high * 2) if high > WIDE * low else None


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
