"""A figure as data: what is drawn is what its CSV holds, and nothing else."""

from dataclasses import dataclass
from typing import Literal

from grokscope.errors import InputError

__all__ = ["Ends", "Figure", "Kind", "Numbers", "Panel", "Series", "Source"]

Kind = Literal["line", "step", "points", "bars", "band", "vertical", "horizontal", "span"]
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
}


@dataclass(frozen=True)
class Series:
    """One curve, set of points or bars, band or mark; a column is empty or has a number for each row."""

    label: str
    """What it is."""
    kind: Kind
    """How it is drawn. A span is shaded from low to high along x."""
    role: str
    """What it is about, which gives its colour and marker: `fsd`, `validation`, `λ = 3`."""
    source: Source
    """Where it comes from: one printed run, many seeds, the paper, a fitted law, or a null."""
    x: Numbers = ()
    """Across."""
    y: Numbers = ()
    """Up; NaN where there is none."""
    low: Numbers = ()
    """Lower end of an interval around y, or of a band."""
    high: Numbers = ()
    """Upper end."""
    texts: tuple[str, ...] = ()
    """Words beside each point, bar or vertical; at the foot where y is NaN."""
    width: float = 0.8
    """Of a bar, in units of x."""
    legend: str | None = None
    """What the legend says of it and its like: the label if not given, nothing if empty."""

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
        """x, y, low, high and texts."""
        return {"x": self.x, "y": self.y, "low": self.low, "high": self.high, "text": self.texts}

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
    """Whether y is."""
    x_range: Ends | None = None
    """Ends of x; from the data if not given."""
    y_range: Ends | None = None
    """Ends of y; from the data if not given."""

    @property
    def has_runs(self) -> bool:
        """Whether anything in it comes from runs of ours."""
        return any(len(one) and one.source in ("run", "seeds") for one in self.series)


@dataclass(frozen=True)
class Figure:
    """One figure of the paper, made of records."""

    name: str
    """`fig-two-phase`; its files are called so."""
    label: str
    """The paper's LaTeX label, `fig:two_phase`."""
    title: str
    """What it shows of our runs, and of how many."""
    panels: tuple[Panel, ...]
    """Row by row."""
    notes: tuple[str, ...] = ()
    """Sentences below it: how it was read, and what is missing."""
    columns: int = 1
    """Panels in a row."""
    panel_size: tuple[float, float] = (3.3, 2.3)
    """Width and height of a panel in inches."""
