"""A chart as data: matplotlib and the page draw the same description, and its CSV holds what they draw."""

from dataclasses import dataclass, fields
from typing import Any, Literal

from grokscope.errors import InputError

__all__ = ["Ends", "Figure", "Kind", "Numbers", "Panel", "Series", "Source"]

Kind = Literal["line", "step", "points", "bars", "band", "vertical", "horizontal", "span", "cells"]
Source = Literal["run", "seeds", "paper", "fit", "null"]
Numbers = tuple[float | int, ...]
Ends = tuple[float | int, float | int]
FEWEST = {  # what each kind cannot be drawn without
    "line": ("x", "y"),
    "step": ("x", "y"),
    "points": ("x", "y"),
    "bars": ("x", "y"),
    "band": ("x", "low", "high"),
    "vertical": ("x",),
    "horizontal": ("y",),
    "span": ("low", "high"),
    "cells": ("x", "y", "depth"),
}


@dataclass(frozen=True)
class Series:
    """One curve, set of points, bars or cells, band or mark; a column is empty or has a number for each row."""

    label: str
    """What it is."""
    kind: Kind
    """How it is drawn. A span is shaded from low to high along x; a cell fills one unit around (x, y)."""
    role: str
    """What it is about, which gives its colour and marker: `fsd`, `validation`, `λ = 3`."""
    source: Source
    """Where it comes from: one reported run, many seeds, the paper, a fitted law, or a null."""
    x: Numbers = ()
    """Across."""
    y: Numbers = ()
    """Up; NaN where there is none."""
    low: Numbers = ()
    """Lower end of an interval around y, or of a band."""
    high: Numbers = ()
    """Upper end of the same."""
    texts: tuple[str, ...] = ()
    """Words beside each point, bar or vertical; at the foot where y is NaN."""
    width: float = 0.8
    """Of a bar, in units of x."""
    legend: str | None = None
    """What the legend says of it and its like: the label if not given, nothing if empty."""
    base: Numbers = ()
    """Where each bar begins, if not at 0."""
    depth: Numbers = ()
    """Opacity of each cell, in [0, 1]."""

    quantity: str = ""
    """The key of the quantity whose values are drawn; empty for what is only reported or a mark."""

    def __post_init__(self) -> None:
        sizes = {name: len(values) for name, values in self.columns.items() if values}
        if len(set(sizes.values())) > 1:
            raise InputError(f"the columns of a series must be equally long, got {sizes}")
        missing = [name for name in FEWEST[self.kind] if sizes and name not in sizes]
        if missing:
            raise InputError(f"a series of kind {self.kind} needs {missing[0]}")

    @property
    def columns(self) -> dict[str, tuple[float | int | str, ...]]:
        """Everything that has one value for each row, by the name it has in the CSV."""
        numbers = {name: getattr(self, name) for name in ("x", "y", "low", "high")}
        return numbers | {"text": self.texts, "base": self.base, "depth": self.depth}

    @property
    def entry(self) -> str:
        """Its words in the legend; empty where it has none."""
        return (self.label if self.legend is None else self.legend) if len(self) else ""

    def __len__(self) -> int:
        return max(map(len, self.columns.values()))


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    """What it shows."""
    x_label: str
    """What is across."""
    y_label: str
    """What is up."""
    series: tuple[Series, ...] = ()
    """Drawn in this order."""
    x_ticks: tuple[tuple[float | int, str], ...] = ()
    """Places and names, where x is no scale of its own."""
    log_x: bool = False
    """Whether x is logarithmic."""
    log_y: bool = False
    """Whether y is logarithmic."""
    x_range: Ends | None = None
    """Ends of x; from the data if not given."""
    y_range: Ends | None = None
    """Ends of y; from the data if not given."""
    y_ticks: tuple[tuple[float | int, str], ...] = ()
    """Places and names, where y is no scale of its own."""

    @property
    def has_runs(self) -> bool:
        """Whether anything in it comes from runs of ours."""
        return any(len(one) and one.source in ("run", "seeds") for one in self.series)

    def to_dict(self) -> dict[str, Any]:
        """The description as the page's script reads it: what is a default is left out.

        >>> Panel("Loss", "step", "nats", (Series("train", "line", "train", "run", (0, 1), (4.5, 0.1)),)).to_dict()
        {'title': 'Loss', 'x_label': 'step', 'y_label': 'nats', 'series': [{'label': 'train', 'kind': 'line', 'role':
        'train', 'source': 'run', 'x': (0, 1), 'y': (4.5, 0.1)}]}
        """
        return _chosen(self) | {"series": [_chosen(one) for one in self.series if len(one)]}


def _chosen(part: Panel | Series) -> dict[str, Any]:
    values = {field.name: (getattr(part, field.name), field.default) for field in fields(part)}
    return {name: value for name, (value, default) in values.items() if value != default}


@dataclass(frozen=True)
class Figure:
    """One figure of a study, made of records."""

    name: str
    """`fig-two-phase`; its files are called so."""
    label: str
    """The paper's LaTeX label, `fig:two_phase`."""
    title: str
    """What it shows of our runs, and of how many."""
    panels: tuple[Panel, ...]
    """Row by row."""
    notes: tuple[str, ...] = ()
    """Sentences below it: how it was computed, and what is missing."""
    columns: int = 1
    """Panels in a row."""
    panel_size: tuple[float, float] = (3.3, 2.3)
    """Width and height of a panel in inches."""
