"""Lines of a run's append-only files, each believed only if it has its own checksum, and rows as columns."""

import json
import zlib
from collections.abc import Iterable, Mapping
from math import isfinite, nan
from typing import Any

__all__ = ["Columns", "Row", "columns_from", "decode_rows", "encode_row"]

Row = dict[str, Any]
Columns = dict[str, list[int | float]]


def encode_row(row: Mapping[str, Any]) -> bytes:
    """One line: JSON, with null for what is no finite number, and its CRC-32."""
    clean = {key: None if isinstance(value, float) and not isfinite(value) else value for key, value in row.items()}
    text = json.dumps(clean, separators=(",", ":"))
    return f"{text}\t{zlib.crc32(text.encode()):08x}\n".encode()


def decode_rows(content: bytes) -> tuple[list[Row], int]:
    """Whole rows in the order of lines, and how many lines are torn or altered."""
    rows, bad = [], 0
    for line in content.split(b"\n"):
        text, _, checksum = line.rpartition(b"\t")
        if text and checksum == f"{zlib.crc32(text):08x}".encode():
            rows.append(json.loads(text))
        elif line:
            bad += 1
    return rows, bad


def columns_from(rows: Iterable[Mapping[str, Any]]) -> Columns:
    """Rows as columns of numbers, in the order of rows; what a row lacks is NaN, and columns with text are left out.

    >>> columns_from([{"step": 0, "fsd": None}, {"step": 100, "fsd": 0.5, "undefined": "why"}])
    {'step': [0, 100], 'fsd': [nan, 0.5]}
    """
    rows = list(rows)
    names = dict.fromkeys(name for row in rows for name in row)  # a continued run may measure more than before
    numeric = [name for name in names if not any(isinstance(row.get(name), str) for row in rows)]
    return {name: [nan if row.get(name) is None else row[name] for row in rows] for name in numeric}
