"""Test cells that are fixed before anything is fitted, and a ledger of every time that they were scored.

A seal names the test cells by the content hashes of their runs, and the forecasters by the sha256 of their parameters.
It is committed before the runs are trained; whoever changes either afterwards has another digest. Of cells whose train
fraction is only found by training them, it names all else and the bracket that the fraction is searched in.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from grokscope.errors import InputError
from grokscope.files import named, parse_json, read_given, write_atomically, write_json
from grokscope.forecast.cases import cell_key
from grokscope.specs import RunSpec

__all__ = ["Ledger", "Seal", "seal_cells"]


@dataclass(frozen=True)
class Seal:
    """What is not to be looked at before a forecaster is fixed."""

    cells: tuple[str, ...]
    """Keys of the test cells (`cell_key`)."""
    runs: str
    """sha256 over the content hashes of their runs."""
    forecasters: Mapping[str, str]
    """Name → sha256 of the parameters that were fitted before, with the thresholds of alarms."""
    searched: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Keys of cells whose train fraction is searched for (`cell_key` at one half) → between which."""

    def holds(self, spec: RunSpec) -> bool:
        """Whether a run is of a test cell.

        >>> edge = RunSpec(train_fraction=0.2)
        >>> seal = seal_cells([RunSpec("S5")], {}, [(edge, (0.1, 0.3))])
        >>> [seal.holds(one) for one in (RunSpec("S5"), edge, RunSpec(train_fraction=0.3), RunSpec("A5"))]
        [True, True, False, False]
        """
        low, high = self.searched.get(_searched_key(spec), (0.0, 0.0))
        return cell_key(spec) in self.cells or low < spec.train_fraction < high

    @property
    def digest(self) -> str:
        """sha256 of all of it.

        >>> Seal((), "", {}).digest == Seal((), "", {"ours": "1"}).digest
        False
        """
        return _sha256(json.dumps(self.to_dict(), sort_keys=True))

    def has_all(self, runs: Iterable[RunSpec], searched: Iterable[RunSpec] = ()) -> bool:
        """Whether these are the sealed runs, none left out: who leaves out some chooses the runs to be scored on.

        `searched` are those of the cells whose train fraction was searched for, by the rule of that search.

        >>> seal_cells([RunSpec()], {}).has_all([RunSpec()]), seal_cells([RunSpec()], {}).has_all([])
        (True, False)
        """
        given, expected = [*runs], [*searched]
        fixed = [spec for spec in given if cell_key(spec) in self.cells]
        others = {spec.content_hash for spec in given} - {spec.content_hash for spec in fixed}
        return _runs_digest(fixed) == self.runs and others == {spec.content_hash for spec in expected}

    def differences(self, other: "Seal") -> list[str]:
        """In what another seal differs; empty if in nothing.

        >>> seal_cells([RunSpec()], {"ours": "{}"}).differences(seal_cells([RunSpec()], {"ours": "{ }", "new": ""}))
        ['the forecaster new', 'the forecaster ours']
        """
        found = (
            ["the test cells"] if self.cells != other.cells else ["the test runs"] if self.runs != other.runs else []
        )
        found += ["the brackets that are searched"] if self.searched != other.searched else []
        names = sorted({*self.forecasters, *other.forecasters})
        return found + [
            f"the forecaster {name}" for name in names if self.forecasters.get(name) != other.forecasters.get(name)
        ]

    def to_dict(self) -> dict[str, Any]:
        """As it is stored."""
        parts = {"cells": [*self.cells], "runs": self.runs, "forecasters": dict(self.forecasters)}
        searched = {name: [*bracket] for name, bracket in self.searched.items()}
        return parts | ({"searched": searched} if searched else {})

    def save(self, path: Path) -> None:
        """Write it, with its digest; a seal that is there already is never overwritten."""
        if path.exists():
            what = ", ".join(self.differences(Seal.load(path)))
            if not what:
                return
            raise InputError(
                f"{named(path)} is a seal already and is not overwritten; in another one this would differ: {what}"
            )
        write_json(path, {**self.to_dict(), "digest": self.digest})

    @classmethod
    def load(cls, path: Path) -> "Seal":
        """From a file; one that was altered is rejected."""
        try:
            parts = parse_json(read_given(path, f"the seal {named(path)}"), f"the seal {named(path)}")
            searched = {name: (float(low), float(high)) for name, (low, high) in parts.get("searched", {}).items()}
            found = cls(tuple(parts["cells"]), parts["runs"], parts["forecasters"], searched)
        except (ValueError, AttributeError):
            raise InputError(
                f"{named(path)} is no seal: what is searched for is not a pair of train fractions"
            ) from None
        except (KeyError, TypeError) as error:
            raise InputError(f"{named(path)} is no seal: {error} is missing") from None
        if parts.get("digest") != found.digest:
            raise InputError(f"the seal {named(path)} was altered: its digest is {found.digest}")
        return found


def seal_cells(
    specs: Iterable[RunSpec],
    forecasters: Mapping[str, str],
    searched: Iterable[tuple[RunSpec, tuple[float, float]]] = (),
) -> Seal:
    """The seal of test runs and of forecasters, given as the texts of their parameters.

    `searched` are runs of the cells whose train fraction is searched for, each with its bracket.

    >>> seal = seal_cells([RunSpec(), RunSpec().with_seed(1)], {"ours": "{}"})
    >>> len(seal.cells), seal == seal_cells([RunSpec().with_seed(1), RunSpec()], {"ours": "{}"})
    (1, True)
    """
    runs = [*specs]
    cells = tuple(sorted({cell_key(spec) for spec in runs}))
    return Seal(
        cells,
        _runs_digest(runs),
        {name: _sha256(text) for name, text in sorted(forecasters.items())},
        dict(sorted((_searched_key(spec), bracket) for spec, bracket in searched)),
    )


@dataclass(frozen=True)
class Ledger:
    """Every score on sealed cells, and before it that it begins, one line of JSON each; the first counts."""

    path: Path
    """The file, committed with the results."""

    def entries(self) -> list[dict[str, Any]]:
        """All of them, in the order in which they were made."""
        if not self.path.is_file():
            return []
        lines = read_given(self.path, f"the ledger {named(self.path)}").splitlines()
        return [parse_json(line, f"a line of the ledger {named(self.path)}") for line in lines if line.strip()]

    def begin(self, seal: Seal, forecasters: Mapping[str, str]) -> None:
        """Note, by name and parameters, who is about to be shown sealed cells: also who then fails has seen them."""
        self._append([self._entry(seal, name, text) | {"begins": True} for name, text in forecasters.items()])

    def add(
        self,
        seal: Seal,
        forecaster: str,
        parameters: str,
        scores: Mapping[str, Sequence[float]],
        has_all_runs: bool,
    ) -> int:
        """Note a scoring on sealed cells, of all their runs or not.

        Returns how often this forecaster, by its name or by its parameters, was shown these cells, now included.
        """
        entry = self._entry(seal, forecaster, parameters)
        values = {name: [float(f"{value:.6g}") for value in found] for name, found in scores.items()}
        self._append([entry | {"has_all_runs": has_all_runs, "scores": values}])
        same = [
            one
            for one in self.entries()
            if one["seal"] == entry["seal"] and (one["forecaster"] == forecaster or one["sha256"] == entry["sha256"])
        ]
        begun = sum("begins" in one for one in same)
        return max(begun, len(same) - begun)

    def _entry(self, seal: Seal, forecaster: str, parameters: str) -> dict[str, Any]:
        digest = _sha256(parameters)
        is_sealed = digest in seal.forecasters.values()
        return {"seal": seal.digest, "forecaster": forecaster, "sha256": digest, "is_sealed": is_sealed}

    def _append(self, entries: Sequence[Mapping[str, Any]]) -> None:
        lines = [json.dumps(one, ensure_ascii=False) for one in (*self.entries(), *entries)]
        write_atomically(self.path, ("\n".join(lines) + "\n").encode())


def _searched_key(spec: RunSpec) -> str:
    return cell_key(replace(spec, train_fraction=0.5))


def _runs_digest(specs: Iterable[RunSpec]) -> str:
    return _sha256("\n".join(sorted({spec.content_hash for spec in specs})))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
