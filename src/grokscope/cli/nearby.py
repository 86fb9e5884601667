"""Where runs are when a folder has none: one level down, as in `runs` with a folder for each experiment."""

from pathlib import Path

from grokscope.errors import InputError, for_shell, plural
from grokscope.files import named
from grokscope.runs import Store
from grokscope.runs.packed_files import has_records, import_command

__all__ = ["describe_absence"]

MOST = 3  # folders that are named


def describe_absence(folder: Path) -> str:
    """That a folder has no runs, and which folders in it have some; else how to train some."""
    absence = f"there are no runs in {folder}"
    if has_records(folder):
        return f"{absence}, but packed records; make runs of them with: {import_command(folder)}"
    folders = [path for path in sorted(folder.iterdir()) if path.is_dir()]
    found = [f"{named(path)} has {count:,}" for path in folders if (count := _count(path))]
    if not found:
        return f"{absence}; train some with: grokscope train add_mod97 --out {for_shell(folder)}"
    more = [f"{plural(len(found) - MOST, 'more folder')} in it have some"] if len(found) > MOST else []
    return f"{absence}: {', '.join([*found[:MOST], *more])}"


def _count(path: Path) -> int:
    try:
        return len(Store(path).names())
    except (OSError, InputError):  # it may not be read
        return 0
