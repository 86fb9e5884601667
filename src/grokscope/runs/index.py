"""One row per run, kept in a SQLite file beside the runs, so that ten thousand folders need not be read again.

The folders are the truth. A row counts only while the files it was read from are those it was read from: the same
inode, size and times. Whatever does not fit is read anew, and so is everything if the index is missing, damaged or of
another version; it may be deleted at any time. Many may write it, on a network disk too: it is never changed in place,
so no locks are needed. Each writer replaces it as a whole, and none relies on it.
"""

import contextlib
import os
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grokscope.errors import InputError
from grokscope.files import DamagedError, read_file, write_atomically
from grokscope.runs.run_folder import MADE_FOR

__all__ = ["INDEX", "PAYS_FROM", "Facts", "Stamp", "names_to_read", "read_indexed", "stamp_files"]

INDEX = ".index.sqlite"
FORMAT = 5  # SQLite's user_version
LARGEST = 2**30  # bytes of an index: of some million runs
CHECKSUM = slice(68, 72)  # SQLite's application_id, four bytes that are ours: the CRC-32 of the file with zeros there
PAYS_FROM = 200  # runs; fewer are read faster than anybody notices, and their folder stays as it is
SETTLED = 2_000_000_000  # nanoseconds: a file younger than a clock's tick may change again and look the same
STAMPED = (
    "format",
    "spec.json",
    "outcome.json",
    MADE_FOR,
)  # what a row depends on: a finished run's logs do not change

Facts = dict[str, Any]
Stamp = list[tuple[int, int, int, int] | None]


@dataclass(frozen=True)
class _Entry:
    """A run's row in the index."""

    stamp: str
    """What its files looked like."""
    is_complete: bool
    """Whether its log was read."""
    facts: Facts
    """The row itself."""


def names_to_read(wanted: Sequence[str], everyone: Callable[[], Sequence[str]]) -> Sequence[str]:
    """The runs to read for those that are wanted: where the index pays all of the folder, for it holds every run."""
    return everyone() if len(wanted) >= PAYS_FROM else wanted


def read_indexed(
    folder: Path, names: Sequence[str], read: Callable[[str, bool], Facts], complete: bool = False
) -> list[Facts]:
    """`read(name, complete)` for each run of a folder, taken from the index wherever none of its files has changed.

    A complete row has what only a run's log says. Of a run that has not ended it is read each time, and so is a row
    that names a problem. An index that has become stale is written anew if it can be.
    """
    pays = len(names) >= PAYS_FROM
    known = _load(folder / INDEX) if pays else {}
    kept: dict[str, _Entry] = {}
    stamps: dict[str, Stamp] = {}
    rows: list[Facts] = []
    for name in names:
        stamps[name] = stamp_files(f"{folder}/{name}", STAMPED)  # before reading: what changes meanwhile is seen later
        entry, now = known.get(name), str(stamps[name])
        if entry is not None and entry.stamp == now:
            kept[name] = entry
        if name not in kept or (complete and not kept[name].is_complete):
            facts = read(name, complete)
            if facts["problem"] is None and (not complete or facts["outcome"] != "unfinished"):
                kept[name] = _Entry(now, complete, facts)
        else:
            facts = kept[name].facts
        rows.append(facts)
    if pays and kept != known:
        _save(folder / INDEX, kept, stamps)
    return rows


def stamp_files(folder: str, files: Sequence[str]) -> Stamp:
    """What shows whether files are those of before: inode, size, times of content and inode; None if absent."""
    found: Stamp = []
    for file in files:
        try:
            status = os.stat(f"{folder}/{file}")  # noqa: PTH116 (three times as fast as a Path)
        except OSError:
            found.append(None)
        else:
            found.append((status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return found


def _load(path: Path) -> dict[str, _Entry]:
    """The rows of an index that is whole and of this version; none otherwise."""
    try:
        content = bytearray(read_file(path, LARGEST))
        if len(content) < 100 or bytes(content[CHECKSUM]) != _checksum(content):
            return {}
        with contextlib.closing(sqlite3.connect(":memory:")) as database:
            database.deserialize(bytes(content))
            if database.execute("pragma user_version").fetchone() != (FORMAT,):
                return {}
            rows = database.execute("select * from runs")
            names = [column[0] for column in rows.description]
            found = [dict(zip(names, row, strict=True)) for row in rows]
            for facts in found:
                facts["stopped_early"] = bool(facts["stopped_early"])  # SQLite has no booleans
            return {facts["run"]: _Entry(facts.pop("stamp"), bool(facts.pop("is_complete")), facts) for facts in found}
    except (OSError, DamagedError, sqlite3.Error, KeyError):
        return {}


def _save(path: Path, entries: dict[str, _Entry], stamps: dict[str, Stamp]) -> None:
    """Write the rows whose files have settled; where nothing may be written, everything is simply read each time."""
    newest = _now(path.parent) - SETTLED
    if newest < 0:
        return
    settled = [
        (entry.stamp, entry.is_complete, *entry.facts.values())
        for name, entry in entries.items()
        if all(one is None or max(one[2:]) < newest for one in stamps[name])
    ]
    names = ["stamp", "is_complete", *next(iter(entries.values())).facts] if entries else ["stamp", "is_complete"]
    with contextlib.suppress(InputError, sqlite3.Error), contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"pragma user_version = {FORMAT}")
        database.execute(f"create table runs ({', '.join(names)})")
        database.executemany(f"insert into runs values ({', '.join('?' * len(names))})", settled)
        database.commit()
        content = bytearray(database.serialize())
        content[CHECKSUM] = _checksum(content)
        write_atomically(path, bytes(content))


def _checksum(content: bytearray) -> bytes:
    rest = zlib.crc32(bytes(4), zlib.crc32(content[: CHECKSUM.start]))
    return zlib.crc32(content[CHECKSUM.stop :], rest).to_bytes(4, "big")


def _now(folder: Path) -> int:
    """The time by the clock that stamps files there, which on a network disk is not ours; 0 if none can be written."""
    try:
        with tempfile.TemporaryFile(prefix=f".{INDEX}.", suffix=".partial", dir=folder) as probe:
            return os.fstat(probe.fileno()).st_mtime_ns
    except OSError:
        return 0
