"""A user's own task: rows from an .npz or Parquet file that is not trusted, or from a Python function.

A file is data: it is read without pickle, and what it declares to hold is checked before anything is allocated. A
function is code: it is run when the task is made, and only a name that says so, `file.py:function`, makes it.
"""

import hashlib
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from grokscope.errors import InputError, require, shown
from grokscope.files import read_given
from grokscope.specs.run import OWN_ROWS
from grokscope.tasks.parquet_file import parquet_arrays
from grokscope.tasks.row_arrays import task_of_arrays
from grokscope.tasks.task import Task
from grokscope.tasks.zipped_arrays import zipped_arrays

__all__ = ["own_rows", "pinned_rows"]

MAX_BYTES = 2**28
MAX_SOURCE = 2**20
DIGEST_CHARACTERS = 16
PYTHON = re.compile(r"(.+\.py):([A-Za-z_][A-Za-z0-9_]*)", re.DOTALL)
READERS: dict[str, Callable[[bytes, str], Mapping[str, Any]]] = {".npz": zipped_arrays, ".parquet": parquet_arrays}


def own_rows(name: str, runs_code: bool = True) -> Task:
    """The task of `PATH.npz`, `PATH.parquet` or `PATH.py:FUNCTION`, checked against the digest in its name if given."""
    place, digest = _parts(name)
    if PYTHON.fullmatch(place) and not runs_code:
        raise InputError(f"{shown(place)} is a function: it is run only where it is trained or measured")
    content, found = _content(place)
    if digest and digest != found:
        raise InputError(f"{shown(place)} has changed: expected sha256 {digest}…, got {found}…")
    return _task(place, content)


def pinned_rows(name: str) -> str:
    """The name with the digest of the file's present content, so that a run's spec says which rows it means."""
    place, _ = _parts(name)
    return f"{place}#{_content(place)[1]}"


def _parts(name: str) -> tuple[str, str]:
    match = OWN_ROWS.fullmatch(name)
    rule = "a task of your own is a printable .npz, .parquet or .py:FUNCTION"
    require(match is not None and name.isprintable(), rule, name)
    assert match is not None
    return match[1], match[2] or ""


def _content(place: str) -> tuple[bytes, str]:
    """The file's bytes, and the digest of them; a function counts with its source file and its name."""
    python = PYTHON.fullmatch(place)
    path, most = (Path(python[1]), MAX_SOURCE) if python else (Path(place), MAX_BYTES)
    content = read_given(path, f"the task {shown(str(path))}", most)
    counted = content + (b"\0" + python[2].encode() if python else b"")
    return content, hashlib.sha256(counted).hexdigest()[:DIGEST_CHARACTERS]


@lru_cache(maxsize=8)
def _task(place: str, content: bytes) -> Task:
    """Made once for each content, so that runs on it share it."""
    python = PYTHON.fullmatch(place)
    if python:
        return _task_of_function(Path(python[1]), python[2], content)
    path = Path(place)
    arrays = READERS[path.suffix](content, f"the task {shown(str(path))}")
    return task_of_arrays(path.name, f"your own rows in {path.name}", arrays)


def _task_of_function(path: Path, function: str, source: bytes) -> Task:
    """What the function returns: a `Task`, or arrays under the names that an .npz file has."""
    called = f"{path.name}:{function}"
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    try:
        with redirect_stdout(sys.stderr):  # what it prints is no answer of ours, such as JSON
            exec(compile(source, str(path), "exec"), vars(module))
    except (Exception, SystemExit) as error:  # whatever somebody's code raises
        raise InputError(f"{shown(str(path))} cannot be run: {_one_line(error)}") from error
    make = getattr(module, function, None)
    require(callable(make), f"{shown(str(path))} has no function {shown(function)}")
    try:
        with redirect_stdout(sys.stderr):
            made = make()  # type: ignore[misc]
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"{shown(called)} fails: {_one_line(error)}") from error
    if isinstance(made, Task):
        return made
    kind = type(made).__name__
    require(isinstance(made, Mapping), f"{shown(called)} must return a Task, or a dict of arrays, got {kind}")
    for key in made:
        require(isinstance(key, str), f"{shown(called)} must name each array with a text", key)
    return task_of_arrays(called, f"what {called} gives", made)


def _one_line(error: BaseException) -> str:
    line = (str(error).splitlines() or ["no message"])[0][:200]
    return f"{type(error).__name__}: {line if line.isprintable() else shown(line)[1:-1]}"
