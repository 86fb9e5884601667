"""What a scored forecaster's process may not do: keep what outlasts a question, or read the runs that it is scored on.

Python's audit events are blocked, so plain Python and the libraries that use it are held; whoever calls the system by
`ctypes` or in a compiled library of their own is not. It is no sandbox.
"""

import mmap
import os
import stat
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from grokscope.errors import require

__all__ = ["FileNumber", "Limits", "file_numbers", "files_kept"]

PROCESSES = {"subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.startfile"}
ALTERS = {
    *("os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink"),
    *("os.truncate", "os.utime", "os.setxattr", "os.removexattr", "os.lockf", "os.kill", "os.killpg", "os.putenv"),
    *("socket.__new__", "sqlite3.connect", "resource.prlimit", "resource.setrlimit", "fcntl.fcntl", "fcntl.ioctl"),
}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
FileNumber = tuple[int, int]
"""Of a device and of a file on it: the same by whatever name it is opened, and it tells none."""
PRIVATE = (mmap.ACCESS_READ, mmap.ACCESS_COPY)


class Limits:
    """What is blocked from now on, in this process and in its forks; it cannot be taken back."""

    def __init__(self, hidden: Iterable[FileNumber]) -> None:
        """Block the opening of these files."""
        self._hidden = frozenset(hidden)
        self._before = files_kept()
        self.stage = "reading"
        """`reading` while the forecaster's file is run, `answering` while it forecasts, else empty."""
        sys.addaudithook(self._check)

    def end_reading(self, name: str) -> None:
        """Reject what would remember from one question to the next: threads, processes and open files."""
        self.stage = ""
        rule = f"{name} may start no threads: they would remember from one question to the next"
        require(threading.active_count() == 1, rule)
        kept = files_kept() - self._before
        require(not kept, f"{name} may keep no file, pipe or socket open: it would last from one question to the next")

    def _check(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.stage:
            return
        if event in PROCESSES:
            raise PermissionError("a scored forecaster may start no processes")
        if event == "mmap.__new__" and arguments[2] not in PRIVATE:
            raise PermissionError("a scored forecaster may map files with ACCESS_READ or ACCESS_COPY only")
        if event == "open" and isinstance(arguments[0], str | bytes):
            self._check_file(os.fsdecode(arguments[0]), arguments[2])
        elif event in ALTERS and self.stage == "answering":
            raise PermissionError("a scored forecaster may change nothing outside its process while it forecasts")

    def _check_file(self, path: str, flags: int) -> None:
        try:
            is_hidden = _number(os.stat(path)) in self._hidden  # noqa: PTH116 – a Path would be slower at every import
        except (OSError, ValueError):  # there is none yet
            is_hidden = False
        if is_hidden:
            raise PermissionError("a scored forecaster may not read the runs that it is scored on")
        real = os.path.realpath(path)
        of_process = Path(real).parts[2] if real.startswith("/proc/") else ""
        if of_process.isdigit() and int(of_process) != os.getpid():
            raise PermissionError("a scored forecaster may not look into other processes")
        if self.stage == "answering" and flags & WRITES and real != os.devnull:
            raise PermissionError("a scored forecaster may write no files while it forecasts")


def file_numbers(paths: Iterable[Path]) -> list[FileNumber]:
    """Of files, and of all files below folders; of what is not there, none.

    >>> file_numbers([Path(__file__)]) == file_numbers([Path(__file__).parent / "." / Path(__file__).name])
    True
    """
    found = list[FileNumber]()
    for path in paths:
        files = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
        for one in files:
            with suppress(OSError):
                found.append(_number(one.stat()))
    return found


def _number(stated: os.stat_result) -> FileNumber:
    return stated.st_dev, stated.st_ino


def files_kept() -> set[int]:
    """Numbers of open files, pipes and sockets, but for devices; none where the system does not list them.

    >>> with open(__file__) as file:
    ...     file.fileno() in files_kept()
    True
    """
    folder = next((one for one in map(Path, ("/proc/self/fd", "/dev/fd")) if one.is_dir()), None)
    found = set[int]()
    for number in [int(one.name) for one in folder.iterdir()] if folder else ():
        with suppress(OSError):  # that of the listing itself
            if not stat.S_ISCHR(os.fstat(number).st_mode):
                found.add(number)
    return found
