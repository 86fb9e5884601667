"""What a caller gave, as plain values, or a refusal in one sentence."""

from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any

from grokscope.errors import InputError, shown

__all__ = ["asked", "is_whole", "listed", "one_line", "step_of", "whole"]


def is_whole(value: Any) -> bool:
    """Whether something is an integer, numpy's included."""
    return isinstance(value, Integral)


def whole(value: Any, name: str, of_what: str) -> int:
    """A count of at least 1; numpy's integers are as good.

    >>> whole(100, "every", "steps")
    100
    """
    if not is_whole(value) or value < 1:
        raise InputError(f"{name} must be a whole number of {of_what}, at least 1, got {shown(value)}")
    return int(value)


def step_of(value: Any) -> int:
    """A step as a plain integer: numpy's and torch's too, which JSON does not know."""
    try:
        return int(value)
    except (TypeError, ValueError):
        raise InputError(f"a step must be a whole number, got {shown(value)}") from None


def listed(values: Any, name: str) -> tuple[Any, ...]:
    """Several of something."""
    if not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list of names, got {shown(values)}")
    return tuple(values)


def asked(what: str, ask: Callable[[], Any]) -> Any:
    """What somebody's function gives, or one sentence that says which of them failed."""
    try:
        return ask()
    except InputError:
        raise
    except Exception as error:  # whatever it raises
        raise InputError(f"{what} fails: {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """What somebody else's code raised, in one line."""
    return f"{type(error).__name__}: {(str(error).splitlines() or ['no message'])[0][:200]}"
