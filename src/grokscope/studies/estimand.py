"""What a claim is about: a number of every run (or parent, or seed), and how the paper drew and summed it.

An estimand names its runs, its cadence, what is read of one unit, how many units the paper had in each stratum, and the
numbers that are made of a set of drawn units. The paper's own units give one value, all of ours another, and sets of
the paper's size drawn from all of ours say how often the paper's design would have shown what it reports.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from grokscope.runs.records import RunRecord
from grokscope.studies.digest import code_digest
from grokscope.studies.quantity import Records
from grokscope.studies.reduction import Reduction, Values, reduce_all
from grokscope.studies.selection import Selection

__all__ = ["Derive", "Estimand", "Sample", "Stratum", "Unit", "unit_of"]

Unit = Literal["run", "parent", "seed"]
Derive = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True)
class Stratum:
    """Units that are drawn independently of others: the seeds of one task, say."""

    name: str
    """What it is called."""
    runs: Selection
    """All its runs."""
    drawn: int | None = None
    """How many units the paper had; None for as many as there are, where a claim is about many seeds."""
    reported: tuple[str, ...] = ()
    """The paper's own units, where it names them."""

    @property
    def data(self) -> dict[str, Any]:
        """As plain values."""
        return {"name": self.name, "runs": self.runs.data, "drawn": self.drawn, "reported": list(self.reported)}


@dataclass(frozen=True)
class Sample:
    """What was read of every unit of an estimand."""

    units: Mapping[str, tuple[str, ...]]
    """Stratum → the names of its units."""
    values: Values
    """Stratum → column → a number of each unit, in that order."""
    unmeasured: int = 0
    """Units of which the records do not have what is read; they are left out."""

    @property
    def n(self) -> int:
        """Units in all."""
        return sum(map(len, self.units.values()))

    def only(self, wanted: Mapping[str, tuple[str, ...]]) -> "Sample | None":
        """The named units, in this order; None where one is not there."""
        if any(name not in self.units[stratum] for stratum, names in wanted.items() for name in names):
            return None
        places = {stratum: [self.units[stratum].index(name) for name in names] for stratum, names in wanted.items()}
        values = {
            stratum: {column: found[rows] for column, found in self.values[stratum].items()}
            for stratum, rows in places.items()
        }
        return Sample(wanted, values)


@dataclass(frozen=True)
class Estimand:
    """Which units, what is read of one, and what is made of a set of them."""

    name: str
    """What it is, `leads of FSD`."""
    strata: tuple[Stratum, ...]
    """Which units, and how many of them the paper had."""
    read: Callable[..., Mapping[str, float]]
    """Of one unit: a number by column, NaN where it is not defined; nothing where it was not measured. It is given the
    record of a run, or of a parent or a seed its runs by configuration (`x3` is a fork at λ = 3)."""
    parts: Mapping[str, Reduction]
    """Numbers of a set of units, by name; a rule refers to them."""
    text: str
    """The value as a person reads it: a template of the parts, `{positive:.0f} of {n:.0f}`."""
    effect: tuple[str | tuple[str, ...], str]
    """The part, or parts, shown over all our units with their intervals, and their format, `+,.0f` or `.0%`."""
    unit: Unit = "run"
    """What is drawn: runs, parents with all their forks, or seeds with all their configurations."""
    cadence: int | None = None
    """Steps between the evaluations that are used; every one if not given."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `read`."""
    derive: Derive | None = None
    """Further parts, from the others."""

    @property
    def key(self) -> str:
        """Its name with everything that tells it from others."""
        runs = "; ".join(dict.fromkeys(one.runs.describe() for one in self.strata))
        cadence = f", every {self.cadence} steps" if self.cadence else ""
        options = "".join(f", {name} = {value!r}" for name, value in self.options.items())
        return f"{self.name} ({runs}{cadence}{options})"

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """What two estimands share that read the same of the same units."""
        options = tuple((name, repr(value)) for name, value in self.options.items())
        return self.strata, self.read, self.unit, self.cadence, options

    @property
    def data(self) -> dict[str, Any]:
        """All that decides its values, with digests of the code."""
        return {
            "name": self.name,
            "strata": [one.data for one in self.strata],
            "unit": self.unit,
            "cadence": self.cadence,
            "read": code_digest(self.read),
            "options": {name: repr(value) for name, value in self.options.items()},
            "parts": {name: asdict(part) for name, part in self.parts.items()},
            "derive": None if self.derive is None else code_digest(self.derive),
        }

    @property
    def effects(self) -> tuple[str, ...]:
        """The parts that are shown over all units."""
        return (self.effect[0],) if isinstance(self.effect[0], str) else self.effect[0]

    def describe(self) -> str:
        """Which units, and how many of them the paper had, in words."""
        places = [f"{_drawn(one)} of {one.name}" for one in self.strata]
        if len({(one.drawn) for one in self.strata}) == 1 and len(places) > 1:
            names = ", ".join(one.name for one in self.strata)
            places = [f"{_drawn(self.strata[0])} of each of {names}"]
        cadence = f", evaluations every {self.cadence} steps" if self.cadence else ""
        return f"{self.name}; design: {', '.join(places)} ({self.unit}s{cadence})"

    def sample(self, records: Mapping[str, Records]) -> Sample:
        """What is read of every unit that is there."""
        units: dict[str, tuple[str, ...]] = {}
        values: dict[str, Mapping[str, Any]] = {}
        unmeasured = 0
        for stratum in self.strata:
            rows = {name: self._read(runs) for name, runs in self._units(stratum.runs.select(records)).items()}
            known = {name: row for name, row in rows.items() if row}
            unmeasured += len(rows) - len(known)
            units[stratum.name] = tuple(known)
            columns = next(iter(known.values()), {})
            values[stratum.name] = {
                column: np.array([row[column] for row in known.values()], dtype=np.float64) for column in columns
            }
        return Sample(units, values, unmeasured)

    def _units(self, runs: Records) -> dict[str, dict[str, RunRecord]]:
        found: dict[str, dict[str, RunRecord]] = {}
        for name, record in runs.items():
            unit, own = unit_of(name, self.unit)
            seen = record if self.cadence is None else record.seen_every(self.cadence)
            found.setdefault(unit, {})[own] = seen
        return found

    def _read(self, runs: Mapping[str, RunRecord]) -> Mapping[str, float]:
        return self.read(next(iter(runs.values())) if self.unit == "run" else runs, **self.options)

    def columns(self, wanted: Collection[str]) -> set[str]:
        """What of each unit these parts are made of."""
        parts = self.parts.values() if self.derive is not None else (self.parts.get(name) for name in wanted)
        return {column for part in parts if part is not None for column in (part.column, part.other)}

    def compute(self, values: Values, wanted: Collection[str] = ()) -> dict[str, Any]:
        """Its parts from drawn units, or only the wanted ones; leading axes are designs."""
        is_whole = not wanted or self.derive is not None
        found = reduce_all({name: part for name, part in self.parts.items() if is_whole or name in wanted}, values)
        with np.errstate(invalid="ignore", divide="ignore"):
            return found | (dict(self.derive(found)) if self.derive else {})


def _drawn(stratum: Stratum) -> str:
    return "all" if stratum.drawn is None else f"{stratum.drawn:,}"


def unit_of(name: str, unit: Unit) -> tuple[str, str]:
    """The unit that a run belongs to, and what the run is called in it.

    >>> unit_of("add_mod97_s42_x3", "parent"), unit_of("fsd_x3_s42", "seed"), unit_of("add_mod97_s42", "parent")
    (('add_mod97_s42', 'x3'), ('s42', 'fsd_x3'), ('add_mod97_s42', 'parent'))
    """
    if unit == "run":
        return name, name
    if unit == "seed":
        configuration, _, seed = name.rpartition("_s")
        return f"s{seed}", configuration
    parent, found, decay = name.rpartition("_x")
    return (parent, f"x{decay}") if found else (name, "parent")
