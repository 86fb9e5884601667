"""Rules as data: what a quantity must be for a claim to count as reproduced.

A condition is a small frozen object; its sentence, its verdict and its part of the digest come from the same fields.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import pairwise
from math import isnan
from operator import eq, ge, gt, le, lt
from typing import Any, Literal

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.stats import Estimate
from grokscope.studies.quantity import Measured
from grokscope.view.numbers import format_number

__all__ = [
    "Condition",
    "Rule",
    "Verdict",
    "above",
    "all_of",
    "any_of",
    "at_least",
    "at_most",
    "below",
    "between",
    "contains",
    "equals",
    "every",
    "falling",
    "more_than",
    "within",
]

End = Literal["value", "low", "high"]
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {">": gt, "≥": ge, "<": lt, "≤": le, "=": eq}
APART = " with intervals that do not overlap"
ENDS = {"value": "", "low": "lower end of ", "high": "upper end of "}


class Verdict(StrEnum):
    """What became of a claim; each value is what a person reads."""

    REPRODUCED = "reproduced"
    """Its rule is met."""
    PARTLY = "partly"
    """The weaker half of its rule is met."""
    NOT = "not reproduced"
    """It is not."""
    INCONSISTENT = "paper inconsistent"
    """The paper says two things of which one at most can hold."""
    NOT_TESTABLE = "not testable as written"
    """What is said cannot come out false, or names nothing that can be measured."""
    TOO_FEW = "too few runs"
    """The runs its rule asks for are not there."""


@dataclass(frozen=True)
class Condition:
    """A statement about the parts of a quantity that holds or does not; NaN and missing parts satisfy nothing."""

    kind: Literal["compare", "share", "within", "contains", "falling", "all", "any", "every"]
    """How it is decided."""
    part: str = "value"
    """Which part it is about."""
    operator: str = ""
    """Of a comparison."""
    bound: float | int = 0.0
    """What is compared with; of a share, the share of `of`; of `within`, the tolerance."""
    end: End = "value"
    """Whether the value or an end of its interval is compared."""
    of: str | float | int = ""
    """Another part (of a share), or the number that the part must be near to, or the upper bound."""
    parts: tuple[str, ...] = ()
    """The parts of a sequence."""
    conditions: tuple["Condition", ...] = ()
    """What is joined."""

    def holds(self, measured: Measured) -> bool:
        """Whether the quantity satisfies it."""
        return _HOLDS[self.kind](self, measured)

    @property
    def named_parts(self) -> set[str]:
        """The parts that a quantity must have for it to be decided; `n` is the number of runs."""
        if self.kind in ("all", "any"):
            return {part for one in self.conditions for part in one.named_parts}
        if self.kind == "every":
            return {*self.parts} | (self.conditions[0].named_parts - {"value"})
        found = {*self.parts} if self.kind == "falling" else {self.part}
        return (found | {str(self.of)} if self.kind == "share" else found) - {"n"}

    def describe(self) -> str:
        """The condition as a person reads it."""
        return _SENTENCES[self.kind](self)


def above(bound: float | int, part: str = "value", end: End = "value") -> Condition:
    """A part, or an end of its interval, is above a number.

    >>> above(0, "mean lead", "low").describe()
    'lower end of mean lead > 0'
    """
    return Condition("compare", part, ">", bound, end)


def at_least(bound: float | int, part: str = "value", end: End = "value") -> Condition:
    """A part is at least a number.

    >>> at_least(0.8).holds(Measured.of(0.8))
    True
    """
    return Condition("compare", part, "≥", bound, end)


def below(bound: float | int, part: str = "value", end: End = "value") -> Condition:
    """A part is below a number.

    >>> below(0.8).holds(Measured.of(0.8))
    False
    """
    return Condition("compare", part, "<", bound, end)


def at_most(bound: float | int, part: str = "value", end: End = "value") -> Condition:
    """A part is at most a number.

    >>> at_most(0.8).holds(Measured.of(0.9))
    False
    """
    return Condition("compare", part, "≤", bound, end)


def equals(bound: float | int, part: str = "value") -> Condition:
    """A part is exactly a number.

    >>> equals(0).holds(Measured.of(0))
    True
    """
    return Condition("compare", part, "=", bound)


def between(low: float | int, high: float | int, part: str = "value") -> Condition:
    """A part lies in a closed interval.

    >>> between(0.8, 1.2).holds(Measured.of(1.0))
    True
    """
    return all_of(at_least(low, part), at_most(high, part))


def within(tolerance: float, of: float | int, part: str = "value") -> Condition:
    """A part is within a share of a reported number.

    >>> within(0.2, of=1722).holds(Measured.of(1500)), within(0.2, of=1722).describe()
    (True, 'the value is within 20 % of 1,722')
    """
    return Condition("within", part, bound=tolerance, of=of)


def contains(bound: float | int, part: str = "value") -> Condition:
    """A part's interval contains a number.

    >>> contains(1).holds(Measured.of(Estimate(1.1, 0.9, 1.3, 16)))
    True
    """
    return Condition("contains", part, bound=bound)


def more_than(share: float | int, part: str, of: str = "n", operator: str = ">") -> Condition:
    """A count is more than a share of another; `n` is the number of runs.

    >>> more_than(1 / 2, "grokked").describe(), more_than(1, "positive", operator="=").describe()
    ('grokked > 0.5 × n', 'positive = n')
    """
    return Condition("share", part, operator, share, of=of)


def every(condition: Condition, *parts: str) -> Condition:
    """A condition on one part that all of these parts satisfy.

    >>> every(at_least(0), "a", "b").holds(Measured({"a": 1, "b": -1}))
    False
    """
    return Condition("every", parts=parts, conditions=(condition,))


def falling(*parts: str, apart: bool = False) -> Condition:
    """Each of these parts is smaller than the one before it; `apart`, with intervals that do not overlap.

    >>> falling("p = 53", "p = 97", apart=True).describe()
    'p = 53 > p = 97 with intervals that do not overlap'
    """
    return Condition("falling", parts=parts, end="low" if apart else "value")


def all_of(*conditions: Condition) -> Condition:
    """All conditions hold.

    >>> all_of(at_least(0), below(1)).holds(Measured.of(2))
    False
    """
    return Condition("all", conditions=conditions)


def any_of(*conditions: Condition) -> Condition:
    """At least one condition holds.

    >>> any_of(below(0), at_least(1)).holds(Measured.of(2))
    True
    """
    return Condition("any", conditions=conditions)


@dataclass(frozen=True)
class Rule:
    """Which conditions give which verdict, or why none can."""

    reproduced: Condition | None = None
    """What must hold; None where no run can decide."""
    partly: Condition | None = None
    """The weaker half."""
    contradiction: str = ""
    """Why the paper contradicts itself here, whatever runs give."""
    untestable: str = ""
    """Why nothing that can be measured would make it false."""

    def judge(self, measured: Measured) -> Verdict:
        """The verdict on a quantity."""
        if self.contradiction:
            return Verdict.INCONSISTENT
        if self.untestable:
            return Verdict.NOT_TESTABLE
        if measured.missing:
            return Verdict.TOO_FEW
        self._check_parts(measured)
        if self.reproduced is not None and self.reproduced.holds(measured):
            return Verdict.REPRODUCED
        return Verdict.PARTLY if self.partly is not None and self.partly.holds(measured) else Verdict.NOT

    def _check_parts(self, measured: Measured) -> None:
        """Reject a part that the quantity does not have; one without any part is undefined, and satisfies nothing."""
        named = {part for one in (self.reproduced, self.partly) if one is not None for part in one.named_parts}
        if measured.parts and (unknown := sorted(named - measured.parts.keys())):
            raise InputError(
                f"the rule names the part {shown(unknown[0])}, which the quantity does not have"
                f"{did_you_mean(unknown[0], measured.parts)}"
            )

    def describe(self) -> str:
        """The rule as a person reads it."""
        if self.reproduced is None:
            return f"No verdict: {self.contradiction or self.untestable}"
        partly = f"; partly if {self.partly.describe()}" if self.partly else ""
        return f"Reproduced if {self.reproduced.describe()}{partly}; else not reproduced."

    @property
    def data(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)


def _end(measured: Measured, part: str, end: End) -> float:
    found = measured.parts.get(part)
    if part == "n" and found is None:
        return float(measured.n)
    if isinstance(found, Estimate):
        return float(getattr(found, end))
    return measured.number(part) if end == "value" else float("nan")


def _compare(one: Condition, measured: Measured) -> bool:
    """Whether a part stands so to a number, or to a share of another part."""
    value, whole = _end(measured, one.part, one.end), _end(measured, str(one.of), "value") if one.of else 1
    return not isnan(value) and OPERATORS[one.operator](value, one.bound * whole)


def _within(one: Condition, measured: Measured) -> bool:
    target = float(one.of)
    return abs(_end(measured, one.part, "value") - target) <= one.bound * abs(target)


def _contains(one: Condition, measured: Measured) -> bool:
    return _end(measured, one.part, "low") <= one.bound <= _end(measured, one.part, "high")


def _falling(one: Condition, measured: Measured) -> bool:
    other: End = "high" if one.end == "low" else "value"
    return all(_end(measured, a, one.end) > _end(measured, b, other) for a, b in pairwise(one.parts))


def _every(one: Condition, measured: Measured) -> bool:
    return all(
        one.conditions[0].holds(replace(measured, parts={**measured.parts, "value": measured.parts.get(part)}))
        for part in one.parts
    )


_HOLDS: dict[str, Callable[[Condition, Measured], bool]] = {
    "compare": _compare,
    "share": _compare,
    "within": _within,
    "contains": _contains,
    "falling": _falling,
    "every": _every,
    "all": lambda one, measured: all(part.holds(measured) for part in one.conditions),
    "any": lambda one, measured: any(part.holds(measured) for part in one.conditions),
}


def _part(name: str) -> str:
    return "the value" if name == "value" else name


def _bound(value: float | int) -> str:
    return f"{value:g}".replace("-", "−") if abs(value) < 1000 else format_number(value)


_SENTENCES: dict[str, Callable[[Condition], str]] = {
    "compare": lambda one: f"{ENDS[one.end]}{_part(one.part)} {one.operator} {_bound(one.bound)}",
    "share": lambda one: f"{one.part} {one.operator} {'' if one.bound == 1 else f'{one.bound:.3g} × '}{one.of}",
    "within": lambda one: f"{_part(one.part)} is within {100 * one.bound:g} % of {_bound(float(one.of))}",
    "contains": lambda one: f"the interval of {_part(one.part)} contains {_bound(one.bound)}",
    "falling": lambda one: " > ".join(one.parts) + APART * (one.end == "low"),
    "every": lambda one: f"{one.conditions[0].describe()} for each of {', '.join(one.parts)}",
    "all": lambda one: " and ".join(part.describe() for part in one.conditions),
    "any": lambda one: "(" + " or ".join(part.describe() for part in one.conditions) + ")",
}
