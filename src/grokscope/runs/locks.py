"""Being the only writer: a lock that the system frees when its process dies, so none is ever stale."""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import DamagedError, disk_error, open_file

__all__ = ["BusyError", "hold_lock", "lock_owner"]


class BusyError(InputError):
    """Another living process writes this run."""


@contextmanager
def hold_lock(lock: Path, name: str) -> Iterator[None]:
    """Be the only process that holds this lock; somebody who asks for it meanwhile gets a `BusyError`."""
    with os.fdopen(_take_lock(lock, name)):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _take_lock(lock: Path, name: str) -> int:
    """The lock's descriptor, held by us alone; what is written into the file only tells others who we are."""
    while True:
        try:
            descriptor = open_file(lock, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise disk_error(lock, error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, lock):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, json.dumps({"host": socket.gethostname(), "process": os.getpid()}).encode())
                return descriptor
        except BlockingIOError:
            who = _owner(descriptor)
            os.close(descriptor)
            raise BusyError(f"{name} is being written by {who}") from None
        except OSError as error:
            os.close(descriptor)
            raise disk_error(lock, error) from None
        os.close(descriptor)  # its owner has just removed it: try again


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the open file is still the one with this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _owner(descriptor: int) -> str:
    """Who holds an open lock, as it says itself."""
    try:
        found = json.loads(os.pread(descriptor, 1000, 0))
        return f"process {int(found['process'])} on {ascii(str(found['host']))[1:-1]}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process"


def lock_owner(lock: Path) -> str | None:
    """Who holds a lock, as its file says; that of a process that died may still lie there. None if there is none."""
    try:
        with os.fdopen(open_file(lock), "rb") as file:
            return _owner(file.fileno())
    except (OSError, DamagedError):
        return None
