"""Files: written atomically, read with their kind, size, depth and numbers checked, and named in messages.

A file is written beside its place, flushed to the disk, and renamed. What is read may have been replaced by anything,
so a pipe never makes a reader wait, a link inside a run is not followed, and nothing larger than expected is read.
"""

import contextlib
import errno
import json
import math
import os
import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeVar

from grokscope.errors import InputError, require, shown

__all__ = [
    "DamagedError",
    "discard",
    "disk_error",
    "free_place",
    "make_folder",
    "named",
    "open_file",
    "parse_json",
    "read_file",
    "read_given",
    "read_json",
    "write_atomically",
    "write_json",
]

SomeJson = TypeVar("SomeJson", dict[str, Any], list[Any])
LARGEST = 64 * 2**20  # bytes of JSON; a plan of a hundred thousand runs has half of that
DEEPEST = 32  # lists and objects within each other; nothing of ours has more than ten
KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


class DamagedError(InputError):
    """A file is missing, torn, altered or replaced: its content is not what was written."""


def open_file(path: Path, flags: int = os.O_RDONLY, follow_links: bool = False) -> int:
    """The descriptor of a regular file; anything else in its place is a `DamagedError`, and never waited for.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "note").write_text("whole")
    ...     with os.fdopen(open_file(Path(folder, "note"))) as file:
    ...         file.read()
    'whole'
    """
    flags |= os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow_links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags, 0o644)
    except ValueError:  # no file has a name with a NUL
        raise FileNotFoundError(path) from None
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise DamagedError(f"{named(path)} is a link, not a file") from None
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        raise DamagedError(f"{named(path)} is {KINDS.get(kind, 'a device')}, not a file")
    return descriptor


def read_file(path: Path, most: int = LARGEST, follow_links: bool = False) -> bytes:
    """All bytes of a regular file of at most so many; `FileNotFoundError` only if nothing has this name.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "note").write_text("whole")
    ...     read_file(Path(folder, "note"))
    b'whole'
    """
    try:
        with os.fdopen(open_file(path, follow_links=follow_links), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise DamagedError(f"{named(path)} has {size:,} bytes, and at most {most:,} are read")
            return file.read()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedError(f"{named(path)} cannot be read: {error.strerror}") from None


def read_given(path: Path, what: str, most: int = LARGEST) -> bytes:
    """A file that somebody named, wherever it lies; one that cannot be read is rejected as `what`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "note").write_text("whole")
    ...     read_given(Path(folder, "note"), "the note")
    b'whole'
    """
    try:
        return read_file(path, most, follow_links=True)
    except FileNotFoundError:
        raise InputError(f"{what} cannot be read: {os.strerror(errno.ENOENT)}") from None
    except DamagedError as error:
        raise InputError(f"{what} {str(error).removeprefix(f'{named(path)} ')}") from None


def read_json(path: Path, kind: type[SomeJson], follow_links: bool = False) -> SomeJson:
    """A JSON file's object or list; `FileNotFoundError` only if nothing has this name.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "note.json").write_text('{"fsd": 0.8}')
    ...     read_json(Path(folder, "note.json"), dict)
    {'fsd': 0.8}
    """
    content = read_file(path, follow_links=follow_links)
    try:
        found = parse_json(content, named(path))
    except InputError as error:
        raise DamagedError(str(error)) from None
    if not isinstance(found, kind):
        raise DamagedError(f"{named(path)} must hold {'a list' if kind is list else 'an object'} as JSON")
    return found


def parse_json(text: str | bytes, name: str) -> Any:
    """The value of a JSON text with finite numbers, each key once, and not too deep; else an `InputError`.

    >>> parse_json('{"fsd": 0.8}', "the note")
    {'fsd': 0.8}
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
            raise InputError(f"each JSON key of {name} must stand once, got {shown(twice)}")
        return found

    def finite(number: str) -> float:
        value = float(number)
        require(math.isfinite(value), f"{name} holds finite numbers only", number)
        return value

    try:
        found = json.loads(text, object_pairs_hook=unique, parse_constant=finite, parse_float=finite)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # Python reads no integer of more than 4,300 digits
        raise InputError(f"{name} is not valid JSON: {error}") from None
    level = [found]
    for _ in range(DEEPEST):
        containers = [value for value in level if isinstance(value, dict | list)]
        level = [inner for value in containers for inner in (value.values() if isinstance(value, dict) else value)]
        if not level:
            return found
    raise InputError(f"{name} has more than {DEEPEST} lists and objects within each other")


def discard(path: Path) -> None:
    """Remove a file, a link or a pipe, if there is one; a folder in a file's place is kept under a hidden name.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "note").write_text("old")
    ...     discard(Path(folder, "note"))
    ...     Path(folder, "note").exists()
    False
    """
    try:
        if path.is_dir() and not path.is_symlink():
            path.rename(free_place(path.with_name(f".damaged-{path.name}")))
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise disk_error(path, error) from None


def free_place(path: Path) -> Path:
    """The path, or the first of its numbered variants, that nothing has yet.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "note").write_text("old")
    ...     free_place(Path(folder, "note")).name
    'note.2'
    """
    numbered = (path.with_name(f"{path.name}.{number}") for number in count(2))
    return next(place for place in chain([path], numbered) if not os.path.lexists(place))


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
    r"""A path as it may appear in a sentence: on one line, in printable letters, and whole, for its end matters most.

    >>> print(named(Path("runs/first\nsecond")))
    'runs/first\nsecond'
    """
    return repr(str(path))


def disk_error(path: Path, error: OSError) -> InputError:
    """What a person needs to know when a file cannot be written.

    >>> str(disk_error(Path("runs/log"), OSError(28, "No space left on device"))).partition(";")[0]
    "'runs/log' could not be written: No space left on device"
    """
    sentence = f"{named(path)} could not be written: {error.strerror}"
    if not path.parent.is_dir():
        return InputError(f"{sentence}; there is no folder {named(path.parent)}")
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return InputError(sentence)
    space = os.statvfs(path.parent)
    return InputError(f"{sentence}; {space.f_bavail * space.f_frsize:,} bytes are free there")
