"""The studies that come with the package, by name; a misspelt one is rejected before any is imported."""

import re
from difflib import get_close_matches
from pathlib import Path

from grokscope.errors import InputError, did_you_mean, shown

__all__ = ["BUILT_IN", "arxiv_number", "near_numbers", "reject_unknown_study"]

BUILT_IN = ("synchronization", "bakeoff", "tasks", "steering", "foresight", "accelerators", "clock", "signals")
# With or without what people write before it, and without its version.
ARXIV = re.compile(r"(?:(?:https?://)?arxiv(?:\.org/(?:abs|pdf)/|:)\s*)?(\d{4}\.\d{4,5})(?:v\d+)?", re.IGNORECASE)


def reject_unknown_study(name: str) -> None:
    """Reject what is neither a study of the package nor a paper's number nor a folder, which may define one.

    >>> reject_unknown_study("bakeoff")  # it is known
    """
    if name not in BUILT_IN and arxiv_number(name) is None and not Path(name).is_dir():
        known = did_you_mean(name, BUILT_IN) or f"; studies are {', '.join(BUILT_IN)}"
        raise InputError(f"there is no study and no folder {shown(name)}{known}")


def arxiv_number(text: str) -> str | None:
    """The arXiv number that a text is, if it is one.

    >>> [arxiv_number(text) for text in ("2606.12966", "arXiv:2606.12966v2", "https://arxiv.org/abs/2606.12966", "S5")]
    ['2606.12966', '2606.12966', '2606.12966', None]
    """
    found = ARXIV.fullmatch(text.strip())
    return found[1] if found else None


def near_numbers(number: str, known: list[str]) -> list[str]:
    """The known numbers most like this one, or all of them where none is.

    >>> near_numbers("2606.12969", ["2405.20233", "2606.12966"]), near_numbers("0901.0001", ["2606.12966"])
    (['2606.12966'], ['2606.12966'])
    """
    return get_close_matches(number, known, n=3, cutoff=0.7) or sorted(known)
