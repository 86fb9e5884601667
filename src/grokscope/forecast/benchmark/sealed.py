"""Test cells that are fixed before anything is fitted, and a ledger of every time that they were scored.

A seal names the test cells by the content hashes of their runs, and the forecasters by the sha256 of their parameters.
It is committed before the runs are trained; whoever changes either afterwards has another digest.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
    """Name → sha256 of the parameters that were fitted before."""

    @property
    def digest(self) -> str:
        """sha256 of all of it.

        >>> Seal((), "", {}).digest == Seal((), "", {"ours": "1"}).digest
        False
        """
        return _sha256(json.dumps(self.to_dict(), sort_keys=True))

    def has_all(self, runs: Iterable[RunSpec]) -> bool:
        """Whether these are the sealed runs, none left out: who leaves out some chooses the runs to be scored on.

        >>> seal_cells([RunSpec()], {}).has_all([RunSpec()]), seal_cells([RunSpec()], {}).has_all([])
        (True, False)
        """
        return _runs_digest(runs) == self.runs

    def to_dict(self) -> dict[str, Any]:
        """As it is stored."""
        return {"cells": [*self.cells], "runs": self.runs, "forecasters": dict(self.forecasters)}

    def save(self, path: Path) -> None:
        """Write it, with its digest."""
        write_json(path, {**self.to_dict(), "digest": self.digest})

    @classmethod
    def load(cls, path: Path) -> "Seal":
        """From a file; one that was altered is rejected."""
        try:
            parts = parse_json(read_given(path, f"the seal {named(path)}"), f"the seal {named(path)}")
            found = cls(tuple(parts["cells"]), parts["runs"], parts["forecasters"])
        except (KeyError, TypeError) as error:
            raise InputError(f"{named(path)} is no seal: {error} is missing") from None
        if parts.get("digest") != found.digest:
            raise InputError(f"the seal {named(path)} was altered: its digest is {found.digest}")
        return found


def seal_cells(specs: Iterable[RunSpec], forecasters: Mapping[str, str]) -> Seal:
    """The seal of test runs and of forecasters, given as the texts of their parameters.

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
    )


@dataclass(frozen=True)
class Ledger:
    """Every score on sealed cells, one line of JSON each; the first of a forecaster is the one that counts."""

    path: Path
    """The file, committed with the results."""

    def entries(self) -> list[dict[str, Any]]:
        """All of them, in the order in which they were made."""
        if not self.path.is_file():
            return []
        lines = read_given(self.path, f"the ledger {named(self.path)}").splitlines()
        return [parse_json(line, f"a line of the ledger {named(self.path)}") for line in lines if line.strip()]

    def add(
        self,
        seal: Seal,
        forecaster: str,
        parameters: str,
        scores: Mapping[str, Sequence[float]],
        runs: Iterable[RunSpec] = (),
    ) -> int:
        """Note a scoring on these runs of the sealed cells.

        Returns how often this forecaster, by its name or by its parameters, was scored on these cells, now included.
        """
        former = self.entries()
        digest = _sha256(parameters)
        entry = {
            "seal": seal.digest,
            "forecaster": forecaster,
            "sha256": digest,
            "is_sealed": seal.forecasters.get(forecaster) == digest,
            "has_all_runs": seal.has_all(runs),
            "scores": {name: [float(f"{value:.6g}") for value in values] for name, values in scores.items()},
        }
        lines = [json.dumps(one, ensure_ascii=False) for one in (*former, entry)]
        write_atomically(self.path, ("\n".join(lines) + "\n").encode())
        same = [one for one in former if one["forecaster"] == forecaster or one["sha256"] == digest]
        return sum(one["seal"] == seal.digest for one in same) + 1


def _runs_digest(specs: Iterable[RunSpec]) -> str:
    return _sha256("\n".join(sorted({spec.content_hash for spec in specs})))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
