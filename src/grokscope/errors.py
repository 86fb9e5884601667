"""What a person sees when their input cannot be used."""

import shlex
from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["InputError", "did_you_mean", "for_shell", "nearest", "plural", "require", "shown"]

SHOWN_CHARACTERS = 80


class InputError(ValueError):
    """One sentence that repeats the offending value and says what was expected.

    The command line prints it and exits with status 2; anything else that escapes is a defect of ours.
    """


def shown(value: object) -> str:
    r"""The value as it may appear in a sentence: printable letters on one line, and short even if it is not.

    >>> print(shown("add_mod97"), shown("α\n"))
    'add_mod97' 'α\n'
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of more than 4,300 digits; lists within lists within lists
        text = f"<{type(value).__name__} too large to write>"
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… ({len(text)} characters)"


def for_shell(place: object) -> str:
    """A file, folder or address as a command line takes it, whatever its name holds.

    >>> for_shell("runs/first"), for_shell("my runs")
    ('runs/first', "'my runs'")
    """
    return shlex.quote(str(place))


def plural(count: int, noun: str) -> str:
    """A number with its noun.

    >>> plural(1, "run"), plural(2_000, "run")
    ('1 run', '2,000 runs')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def require(holds: object, rule: str, *got: object) -> None:
    """Reject what breaks a rule, with the rule and, if it is given, the value itself.

    >>> require(0 < 1.3 < 1, "train_fraction must lie in (0, 1)", 1.3)
    Traceback (most recent call last):
    ...
    grokscope.errors.InputError: train_fraction must lie in (0, 1), got 1.3
    """
    if not holds:
        raise InputError(rule + "".join(f", got {shown(value)}" for value in got))


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like this one, if any is; letter case counts least.

    >>> nearest("s5", ["S5", "Z5"])
    'S5'
    """
    lowered = {candidate.lower(): candidate for candidate in known}
    found = get_close_matches(word.lower()[:SHOWN_CHARACTERS], lowered, n=1, cutoff=0.5)
    return lowered[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence that names the nearest known word, or nothing.

    >>> did_you_mean("weight_deacy", ["weight_decay", "steps"])
    "; did you mean 'weight_decay'?"
    """
    found = nearest(word, known)
    return f"; did you mean {found!r}?" if found else ""
