"""`python -m grokscope.runs.packing --spec plan.json --out records.gz`: what is finished of a plan, in one file.

Stores do not travel well; this file does. It needs the core packages only, and can be written at any time.
"""

import argparse
import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import isnan, nan
from pathlib import Path
from typing import Any

from grokscope.errors import InputError, shown
from grokscope.files import named, parse_json, read_given, write_atomically
from grokscope.runs.logs import Columns
from grokscope.runs.outcome import EVENTS, RunOutcome
from grokscope.runs.plans import read_plan
from grokscope.runs.records import RunRecord
from grokscope.runs.store import Store
from grokscope.specs import Membership, Plan, RunSpec

__all__ = [
    "finished_records",
    "main",
    "pack_head",
    "pack_lines",
    "pack_records",
    "read_head",
    "record_line",
    "save_records",
    "unpack_records",
]

BAD_INPUT = 2
# What each version calls evaluations and checkpoints; the first has no memberships, the last is written.
COLUMNS = {
    "grokscope records 1": ("log", "measured"),
    "grokscope records 2": ("evaluations", "checkpoints"),
}
FORMAT = "grokscope records 2"
LARGEST = 2**31  # bytes of a file of records
TIMES, ALLOWED = 100, 2**24  # how often larger its text may be, and bytes that any text may have
DIGITS = 7  # significant: what float32 holds
NEEDED = ("step", "train_accuracy", "validation_accuracy")  # columns of all evaluations


def pack_records(records: Iterable[RunRecord], about: Mapping[str, Any] | None = None) -> bytes:
    """Records as one compressed file of lines, numbers to seven digits; the same records give the same bytes.

    What the file is about, such as which part of a plan, stands in its first line; `read_head` reads it.

    >>> from grokscope.runs.outcome import RunOutcome
    >>> record = RunRecord(RunSpec(), RunOutcome(), {"step": [0], "fsd": [0.1]}, {})
    >>> pack_records([record]) == pack_records([record])
    True
    """
    return pack_lines([pack_head(about), *map(record_line, records)])


def pack_head(about: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The first line of a packed file.

    >>> pack_head({"part": 3})
    {'format': 'grokscope records 2', 'part': 3}
    """
    return {"format": FORMAT, **(about or {})}


def record_line(record: RunRecord) -> dict[str, Any]:
    """A record as a line of a packed file.

    Example::

        pack_lines([pack_head(), record_line(record)])
    """
    return {
        "spec": record.spec.to_dict(),
        "outcome": record.outcome.to_dict(),
        "evaluations": _rounded(record.evaluations),
        "checkpoints": _rounded(record.checkpoints),
        "made_for": [one.to_dict() for one in record.made_for],
    }


def pack_lines(lines: Iterable[Mapping[str, Any]]) -> bytes:
    """Lines, compressed: a packed file, or a part of one. Parts that follow each other are one file.

    >>> gzip.decompress(pack_lines([{"a": 1}]) + pack_lines([{"b": 2}])).split()
    [b'{"a":1}', b'{"b":2}']
    """
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    return gzip.compress(text.encode(), mtime=0)


def unpack_records(path: Path) -> list[RunRecord]:
    """The records in a file that `pack_records` made, by this version or an earlier one.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_records(Path(folder, "none.records.gz"), [])
    ...     unpack_records(Path(folder, "none.records.gz"))
    []
    """
    content = read_given(path, f"the records {named(path)}", LARGEST)
    try:
        lines = _unpacked_lines(content)  # one by one: the text of many records is larger than they are
        head = parse_json(next(lines, b"null"), "the first line")
        version = head.get("format") if isinstance(head, dict) else None
        if not isinstance(version, str) or version not in COLUMNS:
            raise ValueError(f"its format is {shown(version)}, and this version reads {' and '.join(COLUMNS)}")
        return [_record(parse_json(line, "a record"), *COLUMNS[version]) for line in lines]
    except (OSError, EOFError, zlib.error, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise InputError(f"the records {named(path)} cannot be read: {error}") from None


def read_head(path: Path) -> dict[str, Any]:
    """What a packed file says of itself in its first line, without reading the records.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_records(Path(folder, "one.records.gz"), [], {"part": 3})
    ...     read_head(Path(folder, "one.records.gz"))["part"]
    3
    """
    try:
        with gzip.open(path) as lines:
            head = parse_json(lines.readline(ALLOWED), "the first line")
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise InputError(f"the records {named(path)} cannot be read: {error}") from None
    if not isinstance(head, dict) or head.get("format") not in COLUMNS:
        raise InputError(f"{named(path)} is no file of records that this version reads")
    return head


def _unpacked_lines(content: bytes) -> Iterator[bytes]:
    """The lines of a compressed text, as long as it is not far larger than any records would be."""
    left = ALLOWED + TIMES * len(content)
    with gzip.open(io.BytesIO(content)) as lines:
        while line := lines.readline(left + 1):
            left -= len(line)
            if left < 0:
                raise ValueError(f"its text has more than {TIMES} times its {len(content):,} bytes")
            yield line


def save_records(path: Path, records: Iterable[RunRecord], about: Mapping[str, Any] | None = None) -> None:
    """Write records to a file, with what it is about.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.runs.outcome import RunOutcome
    >>> log = {"step": [0], "train_accuracy": [0.2], "validation_accuracy": [0.1]}
    >>> with TemporaryDirectory() as folder:
    ...     save_records(Path(folder, "all.records.gz"), [RunRecord(RunSpec(), RunOutcome("never"), log, {})])
    ...     len(unpack_records(Path(folder, "all.records.gz")))
    1
    """
    write_atomically(path, pack_records(records, about))


def finished_records(plan: Plan) -> list[RunRecord]:
    """The records of the plan's finished runs, in the order of the plan.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     finished_records(Plan(folder, (RunSpec(),)))  # it was not trained
    []
    """
    folders = map(Store(plan.out).locate, plan.runs)
    return [folder.record() for folder in folders if folder.outcome.is_finished]


def _record(parts: Mapping[str, Any], evaluations: str, checkpoints: str) -> RunRecord:
    logged, measured = (
        {name: [nan if x is None else x for x in values] for name, values in parts[part].items()}
        for part in (evaluations, checkpoints)
    )
    if lacking := [name for name in NEEDED if name not in logged]:
        raise ValueError(f"a log has no column {lacking[0]!r}")
    _reject_misread(logged)
    _reject_misread(measured)
    if unknown := [name for name in EVENTS if name not in parts["outcome"]]:
        raise ValueError(f"an outcome does not say {unknown[0]!r}")
    outcome = RunOutcome.from_dict(parts["outcome"])
    if not outcome.is_finished:
        raise ValueError("a record is of a run that has not ended")
    made_for = tuple(Membership.from_dict(one) for one in parts.get("made_for", ()))
    return RunRecord(RunSpec.from_dict(parts["spec"]), outcome, logged, measured, made_for)


def _reject_misread(columns: Columns) -> None:
    """Columns hold numbers, as many in each, and are over increasing steps."""
    if len({len(values) for values in columns.values()}) > 1:
        raise ValueError("the columns of a log are not of one length")
    for name, values in columns.items():
        if not all(isinstance(value, int | float) for value in values):
            raise ValueError(f"the column {name[:40]!r} of a log holds something that is not a number")
    if columns and "step" not in columns:
        raise ValueError("a log has no column 'step'")
    steps = columns.get("step", [])
    is_increasing = all(step < later for step, later in pairwise(steps))
    if not is_increasing or any(isinstance(step, bool) or step % 1 != 0 for step in steps):
        raise ValueError("the steps of a log are not increasing whole numbers")


def _rounded(columns: Columns) -> dict[str, list[float | None]]:
    return {
        name: [None if isnan(x) else x if isinstance(x, int) else float(f"{x:.{DIGITS}g}") for x in values]
        for name, values in columns.items()
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the records of a plan, and report how many there are; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.runs.packing", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="the plan, as a command's `--plan-only` writes it")
    parser.add_argument("--out", type=Path, required=True, help="the file of records, FILE.gz")
    chosen = parser.parse_args(arguments)
    try:
        plan = read_plan(chosen.spec)
        records = finished_records(plan)
        save_records(chosen.out, records)
    except InputError as error:
        print(f"grokscope: {error}", file=sys.stderr)
        return BAD_INPUT
    print(f"wrote {chosen.out}: {len(records)} of {len(plan.runs)} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
