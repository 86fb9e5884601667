"""A table as data: our value and the paper's, with interval and number of runs where there are any."""

from collections.abc import Iterable
from dataclasses import dataclass

from grokscope.errors import InputError

__all__ = ["Cell", "Column", "Row", "Table", "Value", "cut_short", "not_measured", "not_trained", "text"]

Value = float | int | str | None
NAMED = 12  # missing runs that a note names; of more it says how many


@dataclass(frozen=True)
class Cell:
    """One value; every part may be missing."""

    ours: Value = None
    """What our runs give; None where a run is missing, "never" where a step was not reached."""
    paper: Value = None
    """What the paper reports."""
    interval: tuple[float, float] | None = None
    """95 % interval of ours."""
    n: int | None = None
    """Runs, or clusters of runs, behind ours."""
    paper_interval: tuple[float | int, float | int] | None = None
    """What is reported as its interval."""
    quantity: str = ""
    """The key of the quantity that ours is; empty for words and for what is only reported."""


@dataclass(frozen=True)
class Column:
    """A column's heading, and how its numbers are written."""

    name: str
    """The heading."""
    digits: int = 0
    """Digits after the point."""
    signed: bool = False
    """Whether a plus is written."""


Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """One table of a study, made of records."""

    name: str
    """`tab-cross`; its files are called so."""
    label: str
    """The paper's LaTeX label, `tab:cross`."""
    title: str
    """What it shows."""
    columns: tuple[Column, ...]
    """One for each cell of a row."""
    rows: tuple[Row, ...]
    """Cells, as many in each row as there are columns."""
    notes: tuple[str, ...] = ()
    """Sentences below it: how it was computed, and what is missing."""

    def __post_init__(self) -> None:
        uneven = [len(row) for row in self.rows if len(row) != len(self.columns)]
        if uneven:
            raise InputError(f"{self.name} has a row of {uneven[0]} cells for {len(self.columns)} columns")

    def cell(self, row: str, column: str) -> Cell:
        """The cell in the row whose first cell is this, under this heading."""
        place = [heading.name for heading in self.columns].index(column)
        return next(cells[place] for cells in self.rows if cells[0].ours == row)


def text(value: Value) -> Cell:
    """A cell that says what its row is.

    >>> text("add_mod97").ours
    'add_mod97'
    """
    return Cell(value)


def not_trained(missing: Iterable[str]) -> tuple[str, ...]:
    """The note that names missing runs; none if none is.

    >>> not_trained(["add_mod97_s1", "add_mod97_s0"])
    ('Not trained, so left empty: add_mod97_s0, add_mod97_s1.',)
    """
    return _named("Not trained, so left empty", missing)


def not_measured(what: str, runs: Iterable[str]) -> tuple[str, ...]:
    """The note that names runs of which something was not measured; none if there are none.

    >>> not_measured("FSD was", ["add_mod97_s0"])
    ('FSD was not measured, so left empty: add_mod97_s0.',)
    """
    return _named(f"{what} not measured, so left empty", runs)


def cut_short(runs: Iterable[str]) -> tuple[str, ...]:
    """The note that names runs that were ended soon after grokking; none if there are none.

    >>> cut_short(["add_mod97_s0"])
    ('Stopped early after grokking, so that their leads are biased: add_mod97_s0.',)
    """
    return _named("Stopped early after grokking, so that their leads are biased", runs)


def _named(sentence: str, runs: Iterable[str]) -> tuple[str, ...]:
    names = sorted(set(runs))
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return (f"{sentence}: {', '.join(names[:NAMED])}{more}.",) if names else ()
