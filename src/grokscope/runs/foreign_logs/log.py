"""A log of somebody else's run: its columns, and what was decided when it was read."""

from dataclasses import dataclass

from grokscope.runs.logs import Columns

__all__ = ["ForeignLog"]


@dataclass(frozen=True, eq=False)
class ForeignLog:
    """One run, as another program logged it."""

    name: str
    """What the file calls the run; else the file's name."""
    columns: Columns
    """By our names, over rising steps; NaN where a row lacks a value."""
    failed_at: int | None = None
    """The step from which on its training loss is no finite number."""
    notes: tuple[str, ...] = ()
    """What was decided: units, columns read, lines left out, rows thinned."""
