"""Where packed records and collections of them lie, and how they become runs that every command reads."""

from pathlib import Path

from grokscope.errors import for_shell

__all__ = ["PACKED", "collection_folder", "has_records", "import_command", "packed_files"]

PACKED = "*.records.gz"
COLLECTION, RUNS_TABLE = "collection", "runs.parquet"


def packed_files(path: Path) -> list[Path]:
    """The files of records at a place: the file itself, or those in the folder.

    >>> packed_files(Path("results/study/h200.records.gz")), packed_files(Path("no folder"))
    ([PosixPath('results/study/h200.records.gz')], [])
    """
    return [path] if path.match(PACKED) else sorted(path.glob(PACKED))


def collection_folder(path: Path) -> Path | None:
    """The collection of tables that a folder is, or has; None where there is none.

    >>> collection_folder(Path("no folder")) is None
    True
    """
    return next((one for one in (path, path / COLLECTION) if (one / RUNS_TABLE).is_file()), None)


def has_records(path: Path) -> bool:
    """Whether records lie at a place, packed or as a collection.

    >>> has_records(Path("no folder"))
    False
    """
    return bool(packed_files(path)) or collection_folder(path) is not None


def import_command(path: Path) -> str:
    """The command that makes runs of the records at a place.

    >>> import_command(Path("results/study"))
    'grokscope import results/study --out runs/study'
    """
    out = f"runs/{path.name.removesuffix('.records.gz') or 'imported'}"
    return f"grokscope import {for_shell(path)} --out {for_shell(out)}"
