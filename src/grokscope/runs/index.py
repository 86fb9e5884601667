"""What a list of runs shows, kept beside them, so that ten thousand folders need not be read again.

The folders are the truth. A row counts only while the files it was read from are those it was read from: the same
inode, size and times. Whatever does not fit is read anew, and so is everything if the index is missing, damaged or of
another version; it may be deleted at any time. Many may write it: each replaces it as a whole, and none relies on it.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from grokscope.errors import InputError
from grokscope.files import write_atomically

__all__ = ["INDEX", "PAYS_FROM", "Stamp", "indexed", "stamp"]

INDEX = ".index.json"
FORMAT = "grokscope index 2"
PAYS_FROM = 200  # runs; fewer are read faster than anybody notices, and their folder stays as it is
SETTLED = 2_000_000_000  # nanoseconds: a file younger than a clock's tick may change again and look the same

Stamp = list[list[int] | None]
SomeRow = TypeVar("SomeRow")
Row = Any


def indexed(folder: Path, names: Sequence[str], files: Sequence[str], read: Callable[[str], SomeRow]) -> list[SomeRow]:
    """`read(name)` for each run of a folder, taken from the index wherever none of its `files` has changed.

    A row may depend on the content of these files alone; one that is None is read again the next time. An index that
    has become stale is written anew if it can be.
    """
    known = _load(folder / INDEX, files) if len(names) >= PAYS_FROM else {}
    kept: dict[str, tuple[Stamp, Row]] = {}
    rows, fresh = [], 0
    for name in names:
        now = stamp(f"{folder}/{name}", files)  # before reading: what changes meanwhile is read again next time
        then, row = known.get(name, (None, None))
        if row is None or then != now:
            row, fresh = read(name), fresh + 1
        rows.append(row)
        kept[name] = (now, row)
    if len(names) >= PAYS_FROM and (fresh or len(kept) != len(known)):
        _save(folder / INDEX, files, kept)
    return rows


def stamp(folder: str, files: Sequence[str]) -> Stamp:
    """What tells whether files are those of before: inode, size, and when content and inode changed; None if absent."""
    found: Stamp = []
    for file in files:
        try:
            status = os.stat(f"{folder}/{file}")  # noqa: PTH116 (three times as fast as a Path)
        except OSError:
            found.append(None)
        else:
            found.append([status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns])
    return found


def _load(path: Path, files: Sequence[str]) -> dict[str, tuple[Stamp, Row]]:
    """The rows of an index that is whole and ours; none otherwise."""
    try:
        digest, _, body = path.read_bytes().partition(b"\n")
        if digest.decode() != hashlib.sha256(body).hexdigest():
            return {}
        found = json.loads(body)
        if found["format"] != FORMAT or found["files"] != list(files):
            return {}
        return {name: (then, row) for name, (then, row) in found["runs"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _save(path: Path, files: Sequence[str], runs: dict[str, tuple[Stamp, Row]]) -> None:
    """Write the rows whose files have settled; where nothing may be written, everything is simply read each time."""
    newest = _now(path.parent) - SETTLED
    if newest < 0:
        return
    settled = {
        name: kept for name, kept in runs.items() if all(one is None or max(one[2:]) < newest for one in kept[0])
    }
    body = json.dumps({"format": FORMAT, "files": list(files), "runs": settled}, separators=(",", ":")).encode()
    with contextlib.suppress(InputError):
        write_atomically(path, hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def _now(folder: Path) -> int:
    """The time by the clock that stamps files there, which on a network disk is not ours; 0 if it cannot be asked."""
    probe = folder / f".{INDEX}.{os.getpid()}.partial"
    try:
        probe.touch()
        try:
            return probe.stat().st_mtime_ns
        finally:
            probe.unlink(missing_ok=True)
    except OSError:
        return 0
