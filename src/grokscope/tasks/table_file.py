"""A user's own group, read from a file that is not trusted."""

import csv
import hashlib
import io
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from grokscope.errors import InputError, did_you_mean, require, shown
from grokscope.files import parse_json, read_given
from grokscope.specs.run import PINNED_TABLE, TABLE
from grokscope.tasks.group import Group

__all__ = ["pinned_table", "table_group"]

MAX_BYTES = 64 * 2**20
DIGEST_CHARACTERS = 16
NAME_CHARACTERS = 40
WHOLE_NUMBER = re.compile(" *[+-]?[0-9]{1,18} *")
Contents = tuple[Any, list[str]]


def table_group(name: str) -> Group:
    """The group of `table:PATH` or `table:PATH#DIGEST` (.json, .csv or .npy), checked against the digest if given."""
    path, digest = _parts(name)
    content = _content(path)
    if digest and digest != _digest(content):
        raise InputError(f"the table {_called(path)} has changed: expected sha256 {digest}…, got {_digest(content)}…")
    return _group(path, content)


def pinned_table(name: str) -> str:
    """The name with the digest of the file's present content, so that a run's spec says which table it means."""
    path, _ = _parts(name)
    return f"{TABLE}{path}#{_digest(_content(path))}"


@lru_cache(maxsize=8)
def _group(path: Path, content: bytes) -> Group:
    """Made once for each content, so that runs on one table share its characters and modes."""
    table, elements = READERS[path.suffix.lower()](content, path)
    for element in elements:
        if not 0 < len(element) <= NAME_CHARACTERS or not element.isprintable():
            rule = f"1 to {NAME_CHARACTERS} printable characters"
            raise InputError(f"each element's name in {_called(path)} must have {rule}, got {shown(element)}")
    return Group(f"{TABLE}{path.name}", table, elements)


def _parts(name: str) -> tuple[Path, str]:
    pinned = PINNED_TABLE.fullmatch(name)
    text, digest = pinned.groups() if pinned else (name.removeprefix(TABLE), "")
    require(text and text.isprintable(), "a table needs a file with a printable name, as in table:my_group.json", name)
    path = Path(text)
    require(path.suffix.lower() in READERS, f"a table must be a .json, .csv or .npy file, got {_called(path)}")
    return path, digest


def _called(path: Path) -> str:
    return shown(str(path))


def _content(path: Path) -> bytes:
    return read_given(path, f"the table {_called(path)}", MAX_BYTES)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGEST_CHARACTERS]


def _from_json(content: bytes, path: Path) -> Contents:
    """Rows alone, or an object with `table` and, if wished, `elements`."""
    read = parse_json(content, f"the table {_called(path)}")
    if not isinstance(read, dict):
        return _rows(read, path), []
    for key in read:
        if key not in ("table", "elements"):
            hint = did_you_mean(key, ("table", "elements"))
            raise InputError(f"the table {_called(path)} has an unknown field {shown(key)}{hint}")
    elements = read.get("elements", [])
    require(
        isinstance(elements, list) and all(isinstance(element, str) for element in elements),
        f"the elements in {_called(path)} must be a list of texts",
        elements,
    )
    return _rows(read.get("table"), path), elements


def _from_csv(content: bytes, path: Path) -> Contents:
    try:
        lines = [line for line in csv.reader(io.StringIO(content.decode("utf-8-sig"))) if line]
    except (ValueError, csv.Error) as error:
        raise InputError(f"the table {_called(path)} is not a CSV text: {error}") from None
    rows = [[int(cell) if WHOLE_NUMBER.fullmatch(cell) else cell for cell in line] for line in lines]
    return _rows(rows, path), []


def _from_npy(content: bytes, path: Path) -> Contents:
    try:
        return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False), []
    except Exception as error:  # numpy reads the header as Python: a bad one fails in any way in which Python can
        raise InputError(f"the table {_called(path)} is not a plain .npy array: {shown(str(error))}") from None


READERS: dict[str, Callable[[bytes, Path], Contents]] = {".json": _from_json, ".csv": _from_csv, ".npy": _from_npy}


def _rows(rows: Any, path: Path) -> list[list[int]]:
    """The rows, if they are lists of as many whole numbers as there are rows."""
    require(isinstance(rows, list) and rows, f"the table {_called(path)} must be rows of whole numbers", rows)
    for g, row in enumerate(rows):
        require(
            isinstance(row, list) and len(row) == len(rows),
            f"row {g} of the table {_called(path)} must have {len(rows)} entries",
            row,
        )
        for h, entry in enumerate(row):
            if type(entry) is not int:
                raise InputError(f"the table {_called(path)} must hold whole numbers, got {g}·{h} = {shown(entry)}")
    return rows
