"""Which runs of a study a quantity is computed from."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

from grokscope.errors import InputError
from grokscope.runs.records import RunRecord

__all__ = ["Selection", "configuration"]


@dataclass(frozen=True)
class Selection:
    """Runs of one or more experiments, narrowed by name, configuration, task, weight decay or kind."""

    experiments: tuple[str, ...]
    """The experiments they belong to; a run that is in several counts once, under its first name."""
    names: tuple[str, ...] = ()
    """Exactly these runs, in this order; all if empty."""
    configuration: str = ""
    """A pattern of the names without their seeds, `fsd_x*`, or several, `fixed|fsd_x3`."""
    task: str = ""
    """A pattern of the task, `add_*`."""
    weight_decays: tuple[float, ...] = ()
    """Only these λ."""
    forks: bool | None = None
    """Forks only, or none; both if not given."""

    def select(self, records: Mapping[str, Mapping[str, RunRecord]]) -> dict[str, RunRecord]:
        """Those of the runs that are there, by name."""
        found: dict[str, RunRecord] = {}
        seen: dict[str, str] = {}  # content hash → the run's first name
        for experiment in self.experiments:
            for name, record in records.get(experiment, {}).items():
                run = record.spec.content_hash
                if not self._has(name, record) or seen.setdefault(run, name) != name:
                    continue
                if found.setdefault(name, record).spec.content_hash != run:
                    raise InputError(f"{found[name].name} and {record.name} are both called {name}")
        return {name: found[name] for name in self.names if name in found} if self.names else found

    def _has(self, name: str, record: RunRecord) -> bool:
        spec = record.spec
        return (
            (not self.names or name in self.names)
            and any(fnmatchcase(configuration(name), one or "*") for one in self.configuration.split("|"))
            and (not self.task or fnmatchcase(spec.task, self.task))
            and (not self.weight_decays or spec.training.weight_decay in self.weight_decays)
            and (self.forks is None or self.forks == (spec.fork is not None))
        )

    @property
    def data(self) -> dict[str, Any]:
        """Its fields that narrow anything, as plain values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value not in ((), "", None)}

    def describe(self) -> str:
        """Which runs, in words.

        >>> Selection(("base",), ("add_mod97_s42",)).describe()
        'add_mod97_s42'
        >>> Selection(("fork",), weight_decays=(1.0, 2.0)).describe()
        'runs of fork with λ = 1, 2'
        """
        if self.names:
            kinds = ", ".join(dict.fromkeys(map(configuration, self.names)))
            return ", ".join(self.names) if len(self.names) < 4 else f"the {len(self.names)} reported runs of {kinds}"
        kind = {None: "runs", True: "forks", False: "runs without forks"}[self.forks]
        decays = ", ".join(f"{decay:g}" for decay in self.weight_decays)
        narrowed = {
            f"configuration {self.configuration.replace('|', ' or ')}": self.configuration,
            f"task {self.task}": self.task,
            f"with λ = {decays}": decays,
        }
        parts = [f"{kind} of {' and '.join(self.experiments)}", *(words for words, by in narrowed.items() if by)]
        return " ".join(parts) if len(parts) < 3 else ", ".join(parts)


def configuration(name: str) -> str:
    """A run's name without its seed, data order or draw.

    >>> configuration("fsd_x3_s42"), configuration("add_mod53_d7_x2"), configuration("add_mod97_s42_order3")
    ('fsd_x3', 'add_mod53_x2', 'add_mod97')
    """
    return "_".join([part for part in name.split("_") if not _is_seed(part)])


def _is_seed(part: str) -> bool:
    return any(part.startswith(letters) and part[len(letters) :].isdigit() for letters in ("s", "d", "order"))
