"""Where files of packed records lie, and how they become runs that every command reads."""

from pathlib import Path

from grokscope.errors import for_shell

__all__ = ["PACKED", "import_command", "packed_files"]

PACKED = "*.records.gz"


def packed_files(path: Path) -> list[Path]:
    """The files of records at a place: the file itself, or those in the folder.

    >>> packed_files(Path("results/study/h200.records.gz")), packed_files(Path("no folder"))
    ([PosixPath('results/study/h200.records.gz')], [])
    """
    return [path] if path.match(PACKED) else sorted(path.glob(PACKED))


def import_command(path: Path) -> str:
    """The command that makes runs of the records at a place.

    >>> import_command(Path("results/study"))
    'grokscope import results/study --out runs/study'
    """
    out = f"runs/{path.name.removesuffix('.records.gz') or 'imported'}"
    return f"grokscope import {for_shell(path)} --out {for_shell(out)}"
