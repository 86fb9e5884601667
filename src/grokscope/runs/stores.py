"""Where runs are stored, by address: a folder, or anything fsspec reaches."""

import shutil
from collections.abc import Callable, Container
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import make_folder, named
from grokscope.runs.remote import RemoteStore
from grokscope.runs.run_folder import RunFolder
from grokscope.runs.store import Store

__all__ = ["is_remote", "open_store", "pull"]


def is_remote(address: str) -> bool:
    """Whether an address is of a place without atomic renames, where runs are committed by markers.

    >>> is_remote("s3://bucket/sweep"), is_remote("file:///mnt/share/sweep"), is_remote("runs/sweep")
    (True, True, False)
    """
    return "://" in address


def open_store(address: str, only: Container[str] | None = None) -> Store:
    """The store at an address: `runs/sweep`, `s3://bucket/sweep`, `file:///mnt/share/sweep`.

    To list the runs of a remote one it suffices to fetch `only` some of their files.

    >>> type(open_store("runs/first")).__name__
    'Store'
    """
    return RemoteStore(address, only) if is_remote(address) else Store(address)


def pull(address: str, to: Path, report: Callable[[str], None] = lambda sentence: None) -> int:
    """Copy every committed run of a remote place into a folder, checked; how many were new there or have gone on.

    One that is damaged is reported and left out.

    Example::

        pull("s3://bucket/sweep", Path("runs/copy"), print)
    """
    copied = 0
    with RemoteStore(address) as store:
        folders, damaged = store.survey()
        make_folder(to)
        for name, why in damaged.items():
            report(f"{name} is damaged and was not copied: {why}")
        for folder in folders:
            target = to / folder.name
            if target.is_symlink():
                raise InputError(f"{named(target)} points outside the folder of runs; nothing was changed")
            there = RunFolder(target, folder.spec)
            if (target / "outcome.json").exists():
                there.add_memberships(folder.made_for)
                continue
            half = to / f".{folder.name}.partial"
            shutil.rmtree(half, ignore_errors=True)
            shutil.copytree(folder.path, half)
            RunFolder(half, folder.spec).add_memberships(there.made_for)
            shutil.rmtree(target, ignore_errors=True)
            half.replace(target)
            copied += 1
    return copied
