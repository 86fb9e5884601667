"""A user's own group, read from a file that is not trusted."""

import csv
import hashlib
import io
import json
from pathlib import Path

import numpy as np

from grokscope.errors import InputError, shown
from grokscope.tasks.group import Group

__all__ = ["pinned_table", "table_group"]

PREFIX = "table:"
MAX_BYTES = 64 * 2**20
DIGEST_CHARACTERS = 16


def table_group(name: str) -> Group:
    """The group of `table:PATH` or `table:PATH#DIGEST` (.json, .csv or .npy), checked against the digest if given."""
    path, digest = _parts(name)
    content = _content(path)
    if digest and digest != _digest(content):
        raise InputError(
            f"the table {shown(str(path))} has changed: expected sha256 {digest}…, got {_digest(content)}…"
        )
    readers = {".json": _from_json, ".csv": _from_csv, ".npy": _from_npy}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"a table must be a .json, .csv or .npy file, got {shown(str(path))}")
    table, elements = reader(content, path)
    return Group(f"{PREFIX}{path.name}", table, elements)


def pinned_table(name: str) -> str:
    """The name with the digest of the file's present content, so that a run's spec says which table it means."""
    path, _ = _parts(name)
    return f"{PREFIX}{path}#{_digest(_content(path))}"


def _parts(name: str) -> tuple[Path, str]:
    path, mark, digest = name.removeprefix(PREFIX).rpartition("#")
    is_digest = mark and len(digest) == DIGEST_CHARACTERS and set(digest) <= set("0123456789abcdef")
    text = path if is_digest else name.removeprefix(PREFIX)
    if not text or "\0" in text:
        raise InputError(f"a table needs a file, as in table:my_group.json, got {shown(name)}")
    return Path(text), digest if is_digest else ""


def _content(path: Path) -> bytes:
    try:
        if path.is_file() and path.stat().st_size > MAX_BYTES:
            raise InputError(f"the table {shown(str(path))} is larger than {MAX_BYTES // 2**20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"the table {shown(str(path))} cannot be read: {error.strerror}") from None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGEST_CHARACTERS]


def _from_json(content: bytes, path: Path) -> tuple[np.ndarray, list[str]]:
    """Rows alone, or an object with `table` and, if wished, `elements`."""
    try:
        read = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the table {shown(str(path))} is not valid JSON: {error}") from None
    rows = read.get("table") if isinstance(read, dict) else read
    elements = read.get("elements", []) if isinstance(read, dict) else []
    if not isinstance(elements, list) or not all(isinstance(element, str) for element in elements):
        raise InputError(f"the elements in {shown(str(path))} must be a list of texts, got {shown(elements)}")
    return _rows(rows, path), elements


def _from_csv(content: bytes, path: Path) -> tuple[np.ndarray, list[str]]:
    try:
        rows = [[int(cell) for cell in row] for row in csv.reader(io.StringIO(content.decode("utf-8-sig"))) if row]
    except (ValueError, csv.Error) as error:
        raise InputError(f"the table {shown(str(path))} must hold whole numbers: {error}") from None
    return _rows(rows, path), []


def _from_npy(content: bytes, path: Path) -> tuple[np.ndarray, list[str]]:
    try:
        return np.load(io.BytesIO(content), allow_pickle=False), []
    except (ValueError, EOFError, OSError, MemoryError) as error:
        raise InputError(f"the table {shown(str(path))} is not a plain .npy array: {error}") from None


def _rows(rows: object, path: Path) -> np.ndarray:
    whole = isinstance(rows, list) and all(
        isinstance(row, list) and all(type(cell) is int and abs(cell) < 2**31 for cell in row) for row in rows
    )
    if not whole or not isinstance(rows, list) or len({len(row) for row in rows}) != 1:
        raise InputError(f"the table {shown(str(path))} must be rows of equally many whole numbers")
    return np.array(rows)
