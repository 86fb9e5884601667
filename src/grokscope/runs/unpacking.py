"""Packed records as stored runs, so that whatever reads a folder of runs reads them: everything but their weights."""

from collections.abc import Iterable, Mapping
from math import isnan
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import make_folder, named, write_atomically
from grokscope.runs.logs import Columns, encode_row
from grokscope.runs.packed_files import packed_files
from grokscope.runs.packing import unpack_records
from grokscope.runs.records import RunRecord, merge_records
from grokscope.runs.store import Store

__all__ = ["add_records"]


def add_records(source: Path, to: Path) -> int:
    """Store the runs of a file of records, or of all such files in a folder; how many were new there.

    A run that has ended there already stays as it is, and is noted for the studies of its record too. One that has
    begun and not ended is rejected: its weights would no longer be those of its log.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.runs.outcome import RunOutcome
    >>> from grokscope.runs.packing import save_records
    >>> from grokscope.specs import RunSpec
    >>> log = {"step": [0], "train_accuracy": [0.2], "validation_accuracy": [0.1]}
    >>> with TemporaryDirectory() as folder:
    ...     packed = Path(folder, "all.records.gz")
    ...     save_records(packed, [RunRecord(RunSpec(), RunOutcome("never", memorized=0), log, {})])
    ...     add_records(packed, Path(folder, "runs")), len(Store(Path(folder, "runs")).names())
    (1, 1)
    """
    records = merge_records(record for file in packed_files(source) for record in unpack_records(file))
    make_folder(to)
    store = Store(to)
    return sum(_add(record, store) for record in records)


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
