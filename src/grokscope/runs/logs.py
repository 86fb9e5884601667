"""Lines of a run's append-only files, each believed only if it has its own checksum, and rows as columns.

A line's checksum begins with the run's content hash, so a line of another run is not believed either. Lines of earlier
versions were not bound to their run, and count as before.
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from math import inf, isfinite, nan
from typing import Any

from grokscope.errors import InputError
from grokscope.specs import Membership

__all__ = ["Columns", "Row", "columns_from", "decode_memberships", "decode_rows", "encode_row", "is_evaluation"]

Row = dict[str, Any]
Columns = dict[str, list[int | float]]
LARGEST = 2**63  # of whole numbers
LONGEST_NAME = 200  # characters of a column's name


def encode_row(row: Mapping[str, Any], run: str = "") -> bytes:
    """One line: JSON, with null for what is no finite number, and the CRC-32 of the run's hash and the text."""
    clean = {key: None if isinstance(value, float) and not isfinite(value) else value for key, value in row.items()}
    text = json.dumps(clean, separators=(",", ":"))
    return f"{text}\t{zlib.crc32(f'{run}{text}'.encode()):08x}\n".encode()


def decode_rows(content: bytes, run: str = "") -> tuple[list[Row], int]:
    """Whole rows in the order of lines, and how many lines are torn, altered, of another run, or no evaluation."""
    lines = _decode_lines(content, run)
    rows = [row for row in lines if row is not None and is_evaluation(row)]
    return rows, len(lines) - len(rows)


def decode_memberships(content: bytes, run: str = "") -> tuple[list[Membership], int]:
    """The studies that lines name, and how many lines are torn, altered, of another run, or name none."""
    found, lines = [], _decode_lines(content, run)
    for line in lines:
        with suppress(InputError):
            found.append(Membership.from_dict(line))
    return found, len(lines) - len(found)


def _decode_lines(content: bytes, run: str) -> list[Row | None]:
    """The object of each line; None for one that is not whole."""
    found: list[Row | None] = []
    begun = zlib.crc32(run.encode())
    for line in filter(None, content.split(b"\n")):
        text, _, checksum = line.rpartition(b"\t")
        is_whole = checksum in (b"%08x" % zlib.crc32(text, begun), b"%08x" % zlib.crc32(text))
        found.append(_parsed(text) if text and is_whole else None)
    return found


def _parsed(text: bytes) -> Row | None:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def is_evaluation(row: Row) -> bool:
    """Whether a row is of a step, and its columns have printable names and plain values of a sensible size."""
    step = row.get("step")
    return type(step) is int and 0 <= step < LARGEST and all(map(_is_column, row.items()))


def _is_column(column: tuple[str, Any]) -> bool:
    name, value = column
    if not name.isprintable() or len(name) > LONGEST_NAME:
        return False
    if isinstance(value, int | float):
        return abs(value) < (inf if isinstance(value, float) else LARGEST)  # not so of NaN and infinity
    return value is None or isinstance(value, str)


def columns_from(rows: Iterable[Mapping[str, Any]]) -> Columns:
    """Rows as columns of numbers, in the order of rows; what a row lacks is NaN, and columns with text are left out.

    >>> columns_from([{"step": 0, "fsd": None}, {"step": 100, "fsd": 0.5, "undefined": "why"}])
    {'step': [0, 100], 'fsd': [nan, 0.5]}
    """
    rows = list(rows)
    names = dict.fromkeys(name for row in rows for name in row)  # a continued run may measure more than before
    numeric = [name for name in names if not any(isinstance(row.get(name), str) for row in rows)]
    return {name: [nan if row.get(name) is None else row[name] for row in rows] for name in numeric}
