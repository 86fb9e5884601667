"""Kinds of tasks whose names are a word with numbers: parsed in one way, so that every name has one form."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from grokscope.errors import InputError, require, shown
from grokscope.tasks.task import Task

__all__ = ["Kind", "Number", "Numbers"]

Numbers = dict[str, int | float]
DIGITS = r"(?:0|[1-9][0-9]{0,8})"
DECIMAL = r"(?:0|[1-9][0-9]{0,4})(?:\.[0-9]{1,6})?"


@dataclass(frozen=True)
class Number:
    """A number in a task's name, after the letters that say what it is."""

    letters: str
    """`n` of `parity_n40_k3`."""
    least: int | float
    most: int | float
    default: int | float | None = None
    """What it is where the name leaves it out; None where it must be there. NaN: something else decides."""
    is_whole: bool = True
    """Whether it is a whole number."""

    @property
    def pattern(self) -> str:
        """What the name has of it."""
        part = f"{'_' * bool(self.letters)}{self.letters}({DIGITS if self.is_whole else DECIMAL})"
        return part if self.default is None else f"(?:{part})?"


@dataclass(frozen=True)
class Kind:
    """Tasks with one word in their names, and numbers after it in one order."""

    word: str
    """How the name begins."""
    numbers: tuple[Number, ...]
    """What follows, in the order of the name."""
    build: Callable[[str, Numbers], Task]
    """The task of a name and its numbers."""
    example: str
    """A name, as `grokscope tasks` lists it."""
    title: str
    """What is learnt, for a person."""
    flags: tuple[str, ...] = ()
    """Words that may follow the numbers; as a number each is 1 or 0."""
    _pattern: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        flags = "".join(f"(_{flag})?" for flag in self.flags)
        pattern = re.compile(self.word + "".join(number.pattern for number in self.numbers) + flags)
        object.__setattr__(self, "_pattern", pattern)

    @property
    def shape(self) -> str:
        """Its example with 1 for every number: what a mistyped name is compared with."""
        return re.sub(r"[0-9]+(?:\.[0-9]+)?", "1", self.example)

    def task(self, name: str) -> Task | None:
        """The task, if the name is one of this kind."""
        match = self._pattern.fullmatch(name)
        if match is None:
            return None
        found: Numbers = {}
        for number, text in zip(self.numbers, match.groups(), strict=False):
            if text is None:
                assert number.default is not None
                found[number.letters] = number.default
                continue
            value = float(text) if not number.is_whole else int(text)
            if not number.least <= value <= number.most:
                which, ends = number.letters or "the number", f"{number.least:,g} and {number.most:,g}"
                raise InputError(f"{which} of {shown(name)} must lie between {ends}, got {text}")
            # 0.50 and 0.5 would be two names of one task.
            written = f"{value:g}" if not number.is_whole else text
            require(text == written, f"{shown(name)} is written with {number.letters}{written}, and not with {text}")
            require(value != number.default, f"{number.letters}{text} is the default and is left out of a name", name)
            found[number.letters] = value
        chosen = match.groups()[len(self.numbers) :]
        return self.build(
            name, found | {flag: int(text is not None) for flag, text in zip(self.flags, chosen, strict=True)}
        )
