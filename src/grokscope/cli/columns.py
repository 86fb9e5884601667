"""Tables in a terminal: many rows as aligned text, or few with cells that are folded to fit the window."""

from collections.abc import Iterable, Sequence
from typing import Literal

from rich.cells import cell_len

__all__ = ["align", "print_columns"]


def align(header: Sequence[str], rows: Sequence[Sequence[str]], left: frozenset[str] = frozenset()) -> str:
    """The rows under their header, numbers to the right and the columns named in `left` to the left.

    For many rows: rich measures every cell of a table several times, which takes seconds.

    >>> print(align(["run", "step"], [["a", "1,000"], ["bc", "5"]], left=frozenset({"run"})))
    run   step
    a    1,000
    bc       5
    """
    lines = [header, *rows]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    is_left = [name in left for name in header]

    def padded(text: str, width: int, to_left: bool) -> str:
        space = " " * (width - cell_len(text))
        return text + space if to_left else space + text

    return "\n".join("  ".join(map(padded, line, widths, is_left)).rstrip() for line in lines)


def print_columns(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: frozenset[str] = frozenset(),
    whole: frozenset[str] = frozenset(),
) -> None:
    """Print the rows under their header, each cell folded where the window is too narrow but for columns in `whole`."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in header:
        justify: Literal["right", "left"] = "right" if name in right else "left"
        table.add_column(escape(name), justify=justify, overflow="fold", no_wrap=name in whole)
    for row in rows:
        table.add_row(*map(escape, row))
    Console(highlight=False).print(table)
