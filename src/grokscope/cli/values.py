"""The values of options, checked before they are parsed, so that a wrong one is rejected in one sentence."""

from collections.abc import Iterable, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from grokscope.cli.commands import Argument
from grokscope.errors import InputError, did_you_mean, shown

__all__ = ["check_values"]

KINDS: dict[Any, str] = {int: "whole number", float: "number"}


def check_values(words: Sequence[str], arguments: Iterable[Argument]) -> None:
    """Reject a value that is no number where one is expected, or none of the words that an option takes."""
    known = {one.written: one for one in arguments}
    taking: Argument | None = None
    for word in words[: words.index("--")] if "--" in words else words:
        option, equals, value = word.partition("=")
        if word.startswith("--"):
            taking = known.get(option.replace("_", "-"))
            if equals and taking is not None:
                _check(taking, value)
            continue
        if taking is not None and taking.takes_value:
            _check(taking, word)
        if taking is not None and not taking.is_list:  # what follows a single value is positional
            taking = None


def _check(argument: Argument, value: str) -> None:
    kind = _element(argument.kind)
    if kind in KINDS:
        try:
            kind(value)
        except ValueError:
            raise InputError(f"{argument.written} takes a {KINDS[kind]}, got {shown(value)}") from None
    elif (words := _words(argument)) and value not in words:
        raise InputError(
            f"{argument.written} takes one of {', '.join(words)}, got {shown(value)}{did_you_mean(value, words)}"
        )


def _words(argument: Argument) -> tuple[str, ...]:
    """The words that an option takes, if it takes only some."""
    kind = _element(argument.kind)
    if kind is bool and argument.takes_value:
        return "True", "False"
    return get_args(kind) if get_origin(kind) is Literal else ()


def _element(kind: Any) -> Any:
    """The type of one value: that in a tuple, or beside None."""
    if get_origin(kind) in (Union, UnionType):
        return next(one for one in get_args(kind) if one is not NoneType)
    return get_args(kind)[0] if get_origin(kind) is tuple else kind
