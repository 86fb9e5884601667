"""Tables of many rows as aligned text: rich measures every cell of a table several times, which takes seconds."""

from collections.abc import Sequence

from rich.cells import cell_len

__all__ = ["align"]


def align(header: Sequence[str], rows: Sequence[Sequence[str]], left: frozenset[str] = frozenset()) -> str:
    """The rows under their header, numbers to the right and the columns named in `left` to the left.

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
