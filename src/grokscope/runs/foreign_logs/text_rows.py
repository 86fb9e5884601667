"""Rows of tables as text (CSV, TSV) and of JSON, one by one, whatever the size of the file."""

import csv
import gzip
import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from grokscope.errors import InputError, require
from grokscope.files import DamagedError, named, open_file

__all__ = ["BAD_LINE", "Row", "json_rows", "table_rows", "text_of"]

Row = Mapping[str, Any]
BAD_LINE: Row = {}
"""Stands for a line that could not be read."""
LARGEST_DOCUMENT = 64 * 2**20  # characters of JSON that is one object, not lines
LONGEST_LINE = 2**20
PIECE = 2**16
CHECKSUM = re.compile(r"\t[0-9a-f]{8}$")  # with which our own logs end their lines
ROWS = ("log_history", "history", "log", "logs", "evaluations", "data", "metrics")  # keys that hold the rows of a run


@contextmanager
def text_of(path: Path) -> Iterator[TextIO]:
    """The text of a file, unpacked if its name ends in .gz."""
    try:
        with os.fdopen(open_file(path, follow_links=True), "rb") as raw:
            content = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
            with io.TextIOWrapper(content, encoding="utf-8-sig", errors="replace", newline="") as text:
                yield text
    except FileNotFoundError:
        raise InputError(f"there is no file {named(path)}") from None
    except DamagedError as error:
        raise InputError(str(error)) from None
    except (OSError, EOFError, gzip.BadGzipFile) as error:
        raise InputError(f"{named(path)} cannot be read: {error}") from None


def table_rows(path: Path) -> Iterator[Row]:
    """Rows of a table with a header, separated by commas, semicolons or tabs."""
    with text_of(path) as text:
        head = text.readline(LONGEST_LINE)
        require(head.strip(), f"{named(path)} is empty")
        apart = max(",;\t", key=head.count)
        [header] = csv.reader([head], delimiter=apart)
        header = [name.strip() for name in header]
        if repeated := {name for name in header if name and header.count(name) > 1}:
            raise InputError(f"{named(path)} has two columns {min(repeated)!r}")
        require(not all(map(_is_number, header)), f"{named(path)} needs a first line with the names of its columns")
        try:
            for fields in csv.reader(text, delimiter=apart):
                if fields:
                    yield dict(zip(header, fields, strict=True)) if len(fields) == len(header) else BAD_LINE
        except csv.Error as error:
            raise InputError(f"{named(path)} cannot be read as a table: {error}") from None


def json_rows(path: Path) -> Iterator[Row]:
    """Rows of JSON lines, of a list of objects, of an object of lists, or of an object with one of these in it.

    A value that is an object itself is a group of columns, `train/accuracy`.
    """
    yield from map(_flat, _json_rows(path))


def _flat(row: Row) -> Row:
    if not any(isinstance(value, dict) for value in row.values()):
        return row
    found: dict[str, Any] = {}
    for name, value in row.items():
        inner = _flat(value) if isinstance(value, dict) else None
        found |= {name: value} if inner is None else {f"{name}/{key}": one for key, one in inner.items()}
    return found or BAD_LINE


def _json_rows(path: Path) -> Iterator[Row]:
    with text_of(path) as text:
        head = text.read(PIECE).lstrip()
        require(head, f"{named(path)} is empty")
        if head.startswith("["):
            yield from _rows_of_list(head[1:], text, path)
        elif _is_line(head):
            yield from _rows_of_lines(head, text)
        else:
            whole = head + text.read(LARGEST_DOCUMENT)
            too_long = f"{named(path)} is one JSON object of more than {LARGEST_DOCUMENT:,} characters; write its rows"
            require(len(whole) < LARGEST_DOCUMENT, f"{too_long} as JSON lines, which may have any length")
            yield from _rows_of_document(_parsed(whole, path), path)


def _is_line(head: str) -> bool:
    first, newline, rest = head.partition("\n")
    return bool(newline and rest.strip()) and _row_of(first) is not BAD_LINE


def _rows_of_lines(head: str, text: TextIO) -> Iterator[Row]:
    *lines, last = head.split("\n")
    yield from (_row_of(line) for line in lines if line.strip())
    last += text.readline(LONGEST_LINE)
    if last.strip():
        yield _row_of(last)
    while line := text.readline(LONGEST_LINE):
        if line.strip():
            yield _row_of(line)


def _row_of(line: str) -> Row:
    try:
        found = json.loads(CHECKSUM.sub("", line.rstrip("\r\n")))
    except (ValueError, RecursionError):
        return BAD_LINE
    return found if isinstance(found, dict) and found else BAD_LINE


def _rows_of_list(buffer: str, text: TextIO, path: Path) -> Iterator[Row]:
    """The objects of a list, each decoded as soon as it is whole."""
    decoder, is_read = json.JSONDecoder(), False
    while True:
        buffer = buffer.lstrip(" \t\r\n,")
        if buffer.startswith("]") or (is_read and not buffer):
            return
        try:
            found, end = decoder.raw_decode(buffer)
        except (ValueError, RecursionError):
            piece = "" if is_read else text.read(PIECE)
            is_read = is_read or not piece
            if is_read and buffer:
                yield BAD_LINE
                return
            require(len(buffer) < LONGEST_LINE, f"{named(path)} is not a JSON list of objects")
            buffer += piece
            continue
        require(isinstance(found, dict), f"{named(path)} must hold objects, a row each", found)
        yield found or BAD_LINE
        buffer = buffer[end:]
        if len(buffer) < PIECE and not is_read:
            piece = text.read(PIECE)
            is_read, buffer = not piece, buffer + piece


def _rows_of_document(found: Any, path: Path) -> Iterator[Row]:
    for key in ROWS:
        if isinstance(found, dict) and isinstance(found.get(key), list | dict):
            found = found[key]
    if isinstance(found, list):
        require(all(isinstance(row, dict) for row in found), f"{named(path)} must hold objects, a row each")
        yield from found
        return
    columns = {name: values for name, values in found.items() if isinstance(values, list)}
    if not columns:
        yield found  # one row
        return
    uneven = {len(values) for values in columns.values()}
    require(len(uneven) == 1, f"the columns of {named(path)} are not of one length", sorted(uneven))
    yield from (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{named(path)} is not valid JSON: {error}") from None
    require(isinstance(found, dict), f"{named(path)} must hold rows or columns as JSON", found)
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
