"""Files written atomically, and messages about those that cannot be read.

A file is written beside its place, flushed to the disk, and renamed.
"""

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grokscope.errors import InputError

__all__ = ["DamagedError", "disk_error", "make_folder", "named", "write_atomically", "write_json"]


class DamagedError(InputError):
    """A file is missing, torn or altered: its content is not what the manifest says."""


def write_atomically(path: Path, content: bytes) -> None:
    """The file holds either its former content or all of the new, whatever happens in between.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder, "note"), b"whole")
    ...     Path(folder, "note").read_bytes()
    b'whole'
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        with contextlib.suppress(OSError):  # the folder itself may be what is wrong
            beside.unlink()
        raise disk_error(path, error) from error


def write_json(path: Path, value: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    r"""JSON that people can read, in a folder that is made if it is not there.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_json(Path(folder, "new", "numbers.json"), {"fsd": 0.8})
    ...     Path(folder, "new", "numbers.json").read_text()
    '{\n "fsd": 0.8\n}\n'
    """
    make_folder(path.parent)
    write_atomically(path, (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())


def make_folder(path: Path) -> None:
    """Make the folder, and those it lies in, if they are not there yet; a name with a NUL is rejected too.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     make_folder(Path(folder, "runs", "first"))
    ...     Path(folder, "runs", "first").is_dir()
    True
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"the folder {named(path)} could not be created: {why}") from None


def named(path: Path) -> str:
    r"""A path as it may appear in a sentence: on one line, in printable ASCII, and whole, for its end matters most.

    >>> print(named(Path("runs/first\nsecond")))
    'runs/first\nsecond'
    """
    return ascii(str(path))


def disk_error(path: Path, error: OSError) -> InputError:
    """What a person needs to know when a file cannot be written.

    >>> str(disk_error(Path("runs/log"), OSError(28, "No space left on device"))).partition(";")[0]
    "'runs/log' could not be written: No space left on device"
    """
    try:
        space = os.statvfs(path.parent)
        free = f"{space.f_bavail * space.f_frsize:,} bytes are free there"
    except OSError:
        free = "its folder cannot be read"
    return InputError(f"{named(path)} could not be written: {error.strerror}; {free}")
