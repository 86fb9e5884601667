"""Where records are read: a folder of runs, a packed file, or a folder of packed files."""

from dataclasses import replace
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import named
from grokscope.runs.records import RunRecord, record_of, unpacked
from grokscope.runs.runs import open_runs
from grokscope.runs.store import Store
from grokscope.studies.evidence import Evidence
from grokscope.studies.study import Study

__all__ = ["PACKED", "read_evidence", "read_records", "stored_records"]

PACKED = "*.records.gz"


def read_records(path: Path) -> list[RunRecord]:
    """The records of a packed file; of a folder's packed files together; or of the finished runs in a folder.

    A run that is in several files is the last one's, with the memberships of all.
    """
    if path.is_file():
        found = unpacked(path)
    else:
        open_runs(path)  # rejects what is no folder, and names the nearest
        files = sorted(path.glob(PACKED))
        found = [record for file in files for record in unpacked(file)] if files else stored_records(Store(path))
    if not found:
        raise InputError(f"{named(path)} holds no finished runs and no records ({PACKED})")
    united: dict[str, RunRecord] = {}
    for record in found:
        known = united.get(record.spec.content_hash)
        members = dict.fromkeys((*(known.made_for if known else ()), *record.made_for))
        united[record.spec.content_hash] = replace(record, made_for=tuple(members))
    return list(united.values())


def stored_records(store: Store) -> list[RunRecord]:
    """The records of all finished runs of a store, by name; runs that are not finished are left out."""
    return [record_of(folder) for folder in sorted(store, key=lambda one: one.name) if folder.outcome is not None]


def read_evidence(study: Study, path: Path) -> Evidence:
    """A study's evidence from the records stored there."""
    return study.evidence(read_records(path), path if path.is_dir() else path.parent)
