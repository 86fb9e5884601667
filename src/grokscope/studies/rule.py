"""Rules as data: what a design must show, and which share of designs gives which verdict.

A condition is a small frozen object; its sentence, its truth and its part of the digest come from the same fields. It
is decided for one design or for many at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import pairwise
from operator import eq, ge, gt, le, lt
from typing import Any, Literal

import numpy as np

from grokscope.errors import InputError, did_you_mean, require, shown
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
    "equals",
    "every",
    "falling",
    "more_than",
    "within",
]

Parts = Mapping[str, Any]  # a number, or one for each of many designs
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {">": gt, "≥": ge, "<": lt, "≤": le, "=": eq}
ENOUGH = 16  # units in every stratum: fewer cannot refute a claim, nor reproduce one that could still be refuted


class Verdict(StrEnum):
    """What became of a claim; each value is what a person reads."""

    REPRODUCED = "reproduced"
    """The paper's design would often have shown it."""
    UNLIKELY = "unlikely"
    """Sometimes."""
    REFUTED = "refuted"
    """Hardly ever."""
    NOT_TESTABLE = "not testable"
    """No run decides it, or the runs that would are not there."""


@dataclass(frozen=True)
class Condition:
    """A statement about numbers that holds or does not; NaN satisfies nothing."""

    kind: Literal["compare", "share", "within", "falling", "all", "any", "every"]
    """How it is decided."""
    part: str = "value"
    """Which number it is about."""
    operator: str = ""
    """Of a comparison."""
    bound: float | int = 0.0
    """What is compared with; of a share, the share of `of`; of `within`, the tolerance."""
    of: str | float | int = ""
    """Another part (of a share), or the number that the part must be near to."""
    parts: tuple[str, ...] = ()
    """The parts of a sequence."""
    conditions: tuple["Condition", ...] = ()
    """What is joined."""

    def holds(self, parts: Parts) -> Any:
        """Whether numbers satisfy it: one truth, or one for each design.

        >>> above(0).holds({"value": np.array([1.0, -1.0, np.nan])})
        array([ True, False, False])
        """
        if unknown := sorted(self.named_parts - parts.keys()):
            raise InputError(
                f"the rule names the part {shown(unknown[0])}, which is not there{did_you_mean(unknown[0], parts)}"
            )
        return _HOLDS[self.kind](self, parts)

    def could_hold(self, parts: Parts) -> bool:
        """Whether it holds, or might if the numbers that are NaN were known.

        >>> all_of(above(0, "slope"), above(0.9, "fit")).could_hold({"slope": 2.0, "fit": np.nan})
        True
        >>> all_of(above(0, "slope"), above(0.9, "fit")).could_hold({"slope": -2.0, "fit": np.nan})
        False
        """
        if self.kind in ("all", "any"):
            return (all if self.kind == "all" else any)(one.could_hold(parts) for one in self.conditions)
        return bool(self.holds(parts)) or any(np.isnan(parts[part]) for part in self.named_parts)

    @property
    def named_parts(self) -> set[str]:
        """The numbers that it is about."""
        if self.kind in ("all", "any"):
            return {part for one in self.conditions for part in one.named_parts}
        if self.kind == "every":
            return {*self.parts} | (self.conditions[0].named_parts - {"value"})
        found = {*self.parts} if self.kind == "falling" else {self.part}
        return found | {str(self.of)} if self.kind == "share" else found

    def describe(self) -> str:
        """The condition as a person reads it."""
        return _SENTENCES[self.kind](self)


def above(bound: float | int, part: str = "value") -> Condition:
    """A part is above a number.

    >>> above(0, "mean lead").describe()
    'mean lead > 0'
    """
    return Condition("compare", part, ">", bound)


def at_least(bound: float | int, part: str = "value") -> Condition:
    """A part is at least a number.

    >>> bool(at_least(0.8).holds({"value": 0.8}))
    True
    """
    return Condition("compare", part, "≥", bound)


def below(bound: float | int, part: str = "value") -> Condition:
    """A part is below a number.

    >>> bool(below(0.8).holds({"value": 0.8}))
    False
    """
    return Condition("compare", part, "<", bound)


def at_most(bound: float | int, part: str = "value") -> Condition:
    """A part is at most a number.

    >>> bool(at_most(0.8).holds({"value": 0.9}))
    False
    """
    return Condition("compare", part, "≤", bound)


def equals(bound: float | int, part: str = "value") -> Condition:
    """A part is exactly a number.

    >>> bool(equals(0).holds({"value": 0}))
    True
    """
    return Condition("compare", part, "=", bound)


def between(low: float | int, high: float | int, part: str = "value") -> Condition:
    """A part lies in a closed interval.

    >>> bool(between(0.8, 1.2).holds({"value": 1.0}))
    True
    """
    return all_of(at_least(low, part), at_most(high, part))


def within(tolerance: float, of: float | int, part: str = "value") -> Condition:
    """A part is within a share of a reported number.

    >>> bool(within(0.2, of=1722).holds({"value": 1500})), within(0.2, of=1722).describe()
    (True, 'the value is within 20 % of 1,722')
    """
    return Condition("within", part, bound=tolerance, of=of)


def more_than(share: float | int, part: str, of: str = "n", operator: str = ">") -> Condition:
    """A count is more than a share of another; `n` is the number of drawn units.

    >>> more_than(1 / 2, "grokked").describe(), more_than(1, "positive", operator="=").describe()
    ('grokked > 0.5 × n', 'positive = n')
    """
    return Condition("share", part, operator, share, of=of)


def every(condition: Condition, *parts: str) -> Condition:
    """A condition on one part that all of these parts satisfy.

    >>> bool(every(at_least(0), "a", "b").holds({"a": 1, "b": -1}))
    False
    """
    return Condition("every", parts=parts, conditions=(condition,))


def falling(*parts: str) -> Condition:
    """Each of these parts is smaller than the one before it.

    >>> falling("p = 53", "p = 97").describe()
    'p = 53 > p = 97'
    """
    return Condition("falling", parts=parts)


def all_of(*conditions: Condition) -> Condition:
    """All conditions hold.

    >>> bool(all_of(at_least(0), below(1)).holds({"value": 2}))
    False
    """
    return Condition("all", conditions=conditions)


def any_of(*conditions: Condition) -> Condition:
    """At least one condition holds.

    >>> bool(any_of(below(0), at_least(1)).holds({"value": 2}))
    True
    """
    return Condition("any", conditions=conditions)


@dataclass(frozen=True)
class Rule:
    """What a design must show, and which shares of designs give which verdict; or why no run can decide."""

    shown: Condition | None = None
    """What a design must show."""
    reproduced: float | int = 0.2
    """From this share of designs on it is reproduced."""
    refuted: float | int = 0.01
    """Below this share it is refuted, if there are enough units; between the two it is unlikely."""
    untestable: str = ""
    """Why nothing that can be measured would make it false."""

    def __post_init__(self) -> None:
        """Reject shares that are none, or that are not in order."""
        require(
            0 < self.refuted < self.reproduced <= 1,
            "shares of a rule must be in order, 0 < refuted < reproduced ≤ 1",
            (self.refuted, self.reproduced),
        )

    @classmethod
    def of_many(cls, shown: Condition) -> "Rule":
        """The rule of a claim about many seeds, of which no design is reported: most bootstraps over them show it.

        >>> Rule.of_many(above(0)).reproduced
        0.5
        """
        return cls(shown, reproduced=0.5)

    def judge(self, share: float | int, fewest: int, low: float | int = 1.0) -> Verdict:
        """The verdict on a share of designs; `fewest` is the number of units in the smallest stratum.

        Few units are in between where one of the ends is possible still: they refute nothing, and reproduce nothing
        while the lower end of the share's interval, `low`, is a share that many units would call refuted.

        >>> rule = Rule(above(0))
        >>> [str(rule.judge(share, 32)) for share in (0.5, 0.05, 0.0)]
        ['reproduced', 'unlikely', 'refuted']
        >>> str(rule.judge(0.0, 3)), str(rule.judge(1 / 3, 3, low=0.008)), str(rule.judge(1 / 3, 32, low=0.008))
        ('unlikely', 'unlikely', 'reproduced')
        """
        is_few = fewest < ENOUGH
        if share >= self.reproduced:
            return Verdict.UNLIKELY if is_few and low < self.refuted else Verdict.REPRODUCED
        return Verdict.REFUTED if share < self.refuted and not is_few else Verdict.UNLIKELY

    def describe(self) -> str:
        """The rule as a person reads it."""
        if self.shown is None:
            return f"Not testable: {self.untestable}"
        return (
            f"A design shows it if {self.shown.describe()}. Reproduced if at least {100 * self.reproduced:g} % of "
            f"resampled designs show it, refuted if fewer than {100 * self.refuted:g} %, else unlikely."
        )

    @property
    def data(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self) | {"enough": ENOUGH}


def _compare(one: Condition, parts: Parts) -> Any:
    """Whether a part stands so to a number, or to a share of another part."""
    whole = parts[str(one.of)] if one.of else 1
    return OPERATORS[one.operator](parts[one.part], one.bound * whole)


def _within(one: Condition, parts: Parts) -> Any:
    target = float(one.of)
    return abs(parts[one.part] - target) <= one.bound * abs(target)


def _falling(one: Condition, parts: Parts) -> Any:
    return _all(parts[before] > parts[after] for before, after in pairwise(one.parts))


def _every(one: Condition, parts: Parts) -> Any:
    return _all(one.conditions[0].holds({**parts, "value": parts[part]}) for part in one.parts)


def _all(truths: Any) -> Any:
    return np.logical_and.reduce(np.broadcast_arrays(*truths))


_HOLDS: dict[str, Callable[[Condition, Parts], Any]] = {
    "compare": _compare,
    "share": _compare,
    "within": _within,
    "falling": _falling,
    "every": _every,
    "all": lambda one, parts: _all(part.holds(parts) for part in one.conditions),
    "any": lambda one, parts: np.logical_or.reduce(np.broadcast_arrays(*(c.holds(parts) for c in one.conditions))),
}


def _part(name: str) -> str:
    return "the value" if name == "value" else name


def _bound(value: float | int) -> str:
    return f"{value:g}".replace("-", "−") if abs(value) < 1000 else format_number(value)


_SENTENCES: dict[str, Callable[[Condition], str]] = {
    "compare": lambda one: f"{_part(one.part)} {one.operator} {_bound(one.bound)}",
    "share": lambda one: f"{one.part} {one.operator} {'' if one.bound == 1 else f'{one.bound:.3g} × '}{one.of}",
    "within": lambda one: f"{_part(one.part)} is within {100 * one.bound:g} % of {_bound(float(one.of))}",
    "falling": lambda one: " > ".join(one.parts),
    "every": lambda one: f"{one.conditions[0].describe()} for each of {', '.join(one.parts)}",
    "all": lambda one: " and ".join(part.describe() for part in one.conditions),
    "any": lambda one: "(" + " or ".join(part.describe() for part in one.conditions) + ")",
}
