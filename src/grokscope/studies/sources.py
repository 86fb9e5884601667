"""Where records are read: a folder of runs, a packed file, a folder of packed files, or a collection of tables."""

from collections.abc import Container
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import named
from grokscope.runs.packed_files import PACKED, collection_folder, packed_files
from grokscope.runs.packing import unpack_records
from grokscope.runs.records import RunRecord, merge_records
from grokscope.runs.runs import open_runs
from grokscope.runs.store import Store
from grokscope.studies.evidence import Evidence
from grokscope.studies.study import Study
from grokscope.view.collection import open_collection

__all__ = ["PACKED", "every_record", "read_evidence", "read_records", "record_places", "stored_records"]


def read_records(path: Path) -> list[RunRecord]:
    """The records of a packed file; of a folder's packed files together; or of the finished runs in a folder.

    A run that is in several files is the last one's, with the memberships of all. A folder without packed files that
    has a collection (Parquet), or is one, gives the records of that.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.runs.outcome import RunOutcome
    >>> from grokscope.runs.packing import save_records
    >>> from grokscope.specs import RunSpec
    >>> log = {"step": [0], "train_accuracy": [0.2], "validation_accuracy": [0.1]}
    >>> with TemporaryDirectory() as folder:
    ...     save_records(Path(folder, "all.records.gz"), [RunRecord(RunSpec(), RunOutcome("never"), log, {})])
    ...     [record.spec.task for record in read_records(Path(folder))]
    ['add_mod97']
    """
    if not path.is_file():
        open_runs(path)  # rejects what is no folder, and names the nearest
    known = _packed_or_collected(path)
    found = stored_records(Store(path)) if known is None else known
    if not found:
        raise InputError(f"{named(path)} holds no finished runs and no records ({PACKED})")
    return merge_records(found)


def every_record(path: Path) -> list[RunRecord]:
    """The records of these places too, but also of runs that have not ended, and each training of a run for itself.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.specs import RunSpec
    >>> with TemporaryDirectory() as folder:
    ...     _ = Store(folder).add(RunSpec())
    ...     len(every_record(Path(folder)))
    1
    """
    known = _packed_or_collected(path)
    return [run.record for run in open_runs(path)] if known is None else known


def record_places(path: Path) -> list[Path]:
    """The packed files, the tables of a collection, or the folders of runs, that `every_record` reads.

    >>> [one.name for one in record_places(Path("all.records.gz"))]
    ['all.records.gz']
    """
    if files := packed_files(path):
        return files
    tables = collection_folder(path)
    return sorted(one.parent for one in path.glob("*/spec.json")) if tables is None else sorted(tables.iterdir())


def _packed_or_collected(path: Path) -> list[RunRecord] | None:
    """The records of a packed file, of a folder's packed files, or of its collection; None where there is none."""
    if path.is_file():
        return unpack_records(path)
    if files := packed_files(path):
        return [record for file in files for record in unpack_records(file)]
    tables = collection_folder(path)
    return None if tables is None else open_collection(tables).records()


def stored_records(store: Store, without: Container[str] = ()) -> list[RunRecord]:
    """The records of all finished runs of a store but those with these names; a damaged one is rejected.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.specs import RunSpec
    >>> with TemporaryDirectory() as folder:
    ...     _ = Store(folder).add(RunSpec())
    ...     stored_records(Store(folder))  # it has not finished
    []
    """
    folders = [store.folder(name) for name in store.names() if name not in without]
    return [folder.record() for folder in folders if folder.outcome.is_finished]


def read_evidence(study: Study, first: Path, *others: Path) -> Evidence:
    """A study's evidence from the records stored in these places; one that is in several of them counts once.

    Example::

        study = find_study("synchronization")
        read_evidence(study, Path("results/synchronization"))
    """
    records = merge_records(record for place in (first, *others) for record in read_records(place))
    evidence = study.evidence(records, first if first.is_dir() else first.parent)
    if not any(evidence.records.values()):
        studies = sorted({member.study for record in records for member in record.made_for})
        raise InputError(f"none of these runs was made for {study.name}: they were made for {', '.join(studies)}")
    return evidence
