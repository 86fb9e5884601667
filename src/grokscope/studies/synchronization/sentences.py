"""Sentences of supplementary analyses: every number in one is a cell of its table."""

from collections.abc import Sequence

from grokscope.view.render import cell_text
from grokscope.view.table import Cell, Row, Table, text

__all__ = ["NO_RUNS", "empty_row", "enumerate_parts", "has_runs", "quote"]

NO_RUNS = "no runs"


def empty_row(title: str, columns: int) -> Row:
    """A row that says that there are no runs."""
    return (text(title), text(NO_RUNS), *(Cell(),) * (columns - 2))


def has_runs(row: Row) -> bool:
    """Whether a row is more than its title."""
    return row[1].ours != NO_RUNS


def quote(table: Table, row: Row, column: str) -> str:
    """A cell as the table shows it, or "unknown" where it is empty."""
    place = [heading.name for heading in table.columns].index(column)
    return cell_text(row[place], table.columns[place]) or "unknown"


def enumerate_parts(parts: Sequence[str]) -> str:
    """Parts of a sentence as one.

    >>> enumerate_parts(["a", "b", "c"])
    'a, b and c'
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
