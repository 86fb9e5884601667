"""Records as stored runs, so that whatever reads a folder of runs reads them: everything but their weights."""

from collections.abc import Iterable, Mapping
from math import isnan
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import make_folder, named, write_atomically
from grokscope.runs.logs import Columns, encode_row
from grokscope.runs.records import RunRecord, merge_records
from grokscope.runs.store import Store

__all__ = ["add_records"]


def add_records(records: Iterable[RunRecord], to: Path) -> int:
    """Store records as runs of a folder; how many were new there.

    A run that has ended there already stays as it is, and is noted for the studies of its record too. One that has
    begun and not ended is rejected: its weights would no longer be those of its log.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.runs.outcome import RunOutcome
    >>> from grokscope.specs import RunSpec
    >>> log = {"step": [0], "train_accuracy": [0.2], "validation_accuracy": [0.1]}
    >>> record = RunRecord(RunSpec(), RunOutcome("never", memorized=0), log, {})
    >>> with TemporaryDirectory() as folder:
    ...     add_records([record], Path(folder)), len(Store(folder).names())
    (1, 1)
    """
    make_folder(to)
    store = Store(to)
    return sum(_add(record, store) for record in merge_records(records))


def _add(record: RunRecord, store: Store) -> bool:
    """Store a record as a run; whether it was new."""
    folder = store.add(record.spec, record.made_for)
    with folder.lock():
        if folder.outcome.is_finished:
            return False
        if folder.log():
            raise InputError(f"{named(folder.path)} has begun and not ended; nothing was written over it")
        for which, columns in (("log", record.evaluations), ("measures", record.checkpoints)):
            if columns:
                lines = (encode_row(row, record.spec.identity) for row in _rows(columns))
                write_atomically(folder.path / f"{which}.jsonl", b"".join(lines))
        folder.finish(record.outcome)
    return True


def _rows(columns: Columns) -> Iterable[Mapping[str, float | int | None]]:
    """A row per step; steps are whole numbers, and what is undefined is None."""
    for values in zip(*columns.values(), strict=True):
        row = {name: None if isnan(value) else value for name, value in zip(columns, values, strict=True)}
        yield {**row, "step": int(row["step"] or 0)}
