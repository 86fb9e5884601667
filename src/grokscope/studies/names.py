"""The studies that come with the package, by name; a misspelt one is rejected before any is imported."""

from pathlib import Path

from grokscope.errors import InputError, did_you_mean, shown

__all__ = ["BUILT_IN", "reject_unknown_study"]

BUILT_IN = ("synchronization", "bakeoff", "tasks", "steering", "foresight", "signals")


def reject_unknown_study(name: str) -> None:
    """Reject what is neither a study of the package nor a folder, which may define one.

    >>> reject_unknown_study("bakeoff")  # it is known
    """
    if name not in BUILT_IN and not Path(name).is_dir():
        known = did_you_mean(name, BUILT_IN) or f"; studies are {', '.join(BUILT_IN)}"
        raise InputError(f"there is no study and no folder {shown(name)}{known}")
