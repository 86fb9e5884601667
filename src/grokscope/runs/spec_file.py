"""What a run's folder says before anything else of it is read: its format, and its spec."""

import json
import re
from pathlib import Path

from grokscope.errors import InputError, shown
from grokscope.files import DamagedError, named, read_file
from grokscope.specs import RunSpec

__all__ = ["FORMAT", "UNBOUND", "format_of", "read_spec", "spec_bytes"]

LONGEST_FORMAT = 80  # bytes
FORMAT = 2  # of logs, checkpoints and outcomes; folders from before it was written down are of the first
UNBOUND = 1  # the format whose outcomes may lack the names of their run and files


def spec_bytes(spec: RunSpec) -> bytes:
    """What spec.json holds."""
    return (json.dumps(spec.to_dict(), indent=1, sort_keys=True) + "\n").encode()


def format_of(folder: Path) -> int:
    """The format of a run's files; one of a newer grokscope is rejected in a sentence that names both."""
    path = folder / "format"
    try:
        content = read_file(path, most=LONGEST_FORMAT)
    except FileNotFoundError:
        return UNBOUND
    if match := re.fullmatch(rb"grokscope run ([1-9][0-9]{0,8})\n?", content):
        if (number := int(match[1])) <= FORMAT:
            return number
        raise InputError(
            f"{named(folder)} is of format 'grokscope run {number}', which a newer grokscope wrote; this version reads "
            f"'grokscope run {UNBOUND}' to 'grokscope run {FORMAT}'"
        )
    found = shown(content.decode(errors="replace"))
    raise DamagedError(f"{named(path)} is damaged: it holds {found}, and not 'grokscope run {FORMAT}'")


def read_spec(folder: Path) -> RunSpec:
    """The spec in a run's folder, if it is the one whose content hash the folder's name ends in."""
    path = folder / "spec.json"
    try:
        spec = RunSpec.from_json(read_file(path))
        run = spec.content_hash
    except FileNotFoundError:
        raise DamagedError(f"{named(path)} is missing") from None
    except DamagedError:
        raise
    except InputError as error:
        raise DamagedError(f"{named(path)} cannot be read: {error}") from None
    if run != folder.name.rpartition("-")[2]:
        raise DamagedError(f"{named(path)} is the spec of another run, with the content hash {run}")
    return spec
