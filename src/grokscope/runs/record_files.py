"""Records of a folder, whether it holds packed files or stored runs."""

from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import named
from grokscope.runs.packing import unpack_records
from grokscope.runs.records import RunRecord
from grokscope.runs.runs import open_runs

__all__ = ["record_places", "records_at"]


def records_at(path: Path) -> list[RunRecord]:
    """The records of all packed files of a folder, of one such file, or of the runs that a folder stores.

    A run that was trained again is in another file with the same spec, and counts as another run.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.runs import Store
    >>> from grokscope.specs import RunSpec
    >>> with TemporaryDirectory() as folder:
    ...     _ = Store(folder).add(RunSpec())
    ...     len(records_at(Path(folder)))
    1
    """
    if path.name.endswith(".records.gz"):
        return unpack_records(path)
    if not path.is_dir():
        raise InputError(f"there is no folder {named(path)}")
    files = sorted(path.glob("*.records.gz"))
    if files:
        return [record for file in files for record in unpack_records(file)]
    return [run.record for run in open_runs(path)]


def record_places(path: Path) -> list[Path]:
    """The packed files, or the folders of runs, that `records_at` reads.

    >>> [one.name for one in record_places(Path("all.records.gz"))]
    ['all.records.gz']
    """
    if path.name.endswith(".records.gz"):
        return [path]
    return sorted(path.glob("*.records.gz")) or sorted(one.parent for one in path.glob("*/spec.json"))
