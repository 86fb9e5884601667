"""A number that exists once: which runs, seen how often, and which function of them.

A table cell, a point of a figure, a claim and a sentence refer to a quantity; nothing else computes.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from grokscope.runs.records import RunRecord
from grokscope.stats import Estimate
from grokscope.studies.digest import code_digest
from grokscope.studies.selection import Selection
from grokscope.view.numbers import format_number

__all__ = ["Bound", "Measured", "Part", "Quantity", "Records"]


@dataclass(frozen=True)
class Bound:
    """A number of which only an upper bound is known."""

    value: float | int
    """It is at most this."""
    items: int
    """How many independent things it rests on."""

    def __str__(self) -> str:
        return f"below {format_number(self.value, signed=True)}"


Part = Estimate | Bound | float | int | str | bool | None
Records = Mapping[str, RunRecord]


@dataclass(frozen=True)
class Measured:
    """What a quantity is, computed from the runs that are there."""

    parts: Mapping[str, Part] = field(default_factory=dict)
    """Its values by name; a quantity of one value has the part `value`."""
    text: str = ""
    """The whole as a person reads it."""
    n: int = 0
    """Runs it rests on."""
    note: str = ""
    """One sentence about how it came out."""
    missing: str = ""
    """Which runs it needs that are not there; empty where it is known."""

    @classmethod
    def of(cls, value: Part, text: str = "", n: int = 1, note: str = "", **parts: Part) -> "Measured":
        """A quantity of one value, with further parts that a rule may ask for."""
        return cls({"value": value, **parts}, text, n, note)

    @classmethod
    def lacking(cls, found: int, needed: int, what: str) -> "Measured":
        """A quantity whose runs are missing.

        >>> Measured.lacking(2, 9, "addition runs").missing
        '2 of the 9 addition runs that it needs are there.'
        """
        return cls(n=found, missing=f"{found} of the {needed} {what} that it needs are there.")

    @property
    def value(self) -> Part:
        """Its only or first value."""
        return self.parts.get("value")

    @property
    def estimate(self) -> Estimate | None:
        """Its value with an interval, where it has one."""
        return self.value if isinstance(self.value, Estimate) else None

    def number(self, part: str = "value") -> float:
        """A part as a number, the centre of an estimate; NaN where there is none."""
        found = self.parts.get(part)
        found = found.value if isinstance(found, Estimate | Bound) else found
        return float("nan") if found is None or isinstance(found, str) else float(found)


Function = Callable[..., Measured]


@dataclass(frozen=True)
class Quantity:
    """Which runs, at which cadence, and which function of them."""

    name: str
    """What it is, `mean lead`; with runs and cadence it is unique."""
    runs: Selection
    """Which runs."""
    function: Function
    """From the runs by name, and the options, to what is measured."""
    cadence: int | None = None
    """Steps between the evaluations that are used; every one if not given."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the function: thresholds, seeds, columns."""
    members: Mapping[str, "Quantity"] = field(default_factory=dict)
    """Other quantities that it is made of; the function is then given their values, by name, and not the runs."""

    @property
    def key(self) -> str:
        """Its name with everything that tells it from others."""
        cadence = f", every {self.cadence} steps" if self.cadence else ""
        options = "".join(f", {name} = {value!r}" for name, value in self.options.items())
        return f"{self.name} ({self.runs.describe()}{cadence}{options})"

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """What two quantities must share to have one value; the key of many named runs only counts them."""
        members = tuple((name, member.identity) for name, member in self.members.items())
        return self.key, self.runs, self.function, members

    @property
    def data(self) -> dict[str, Any]:
        """All that decides its value, with a digest of the code."""
        return {
            "name": self.name,
            "runs": self.runs.data,
            "cadence": self.cadence,
            "function": f"{self.function.__module__}.{self.function.__qualname__}",
            "source": code_digest(self.function),
            "options": {name: repr(value) for name, value in self.options.items()},
            "members": {name: member.data for name, member in self.members.items()},
        }

    def compute(self, records: Mapping[str, Mapping[str, RunRecord]]) -> Measured:
        """Its value from the records of a study, by experiment and name."""
        chosen = self.runs.select(records)
        if self.cadence is not None:
            chosen = {name: record.seen_every(self.cadence) for name, record in chosen.items()}
        return self.function(chosen, **self.options)
