"""`python -m grokscope.studies.foresight.progress RUNS ...`: read probes, decide the next fractions, write the seal.

Run it after each round of probes. It is finished when every boundary cell has its own fraction.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from grokscope.files import write_json
from grokscope.forecast.benchmark import Seal, seal_cells
from grokscope.forecast.load import FITTED, TIER_FILES, fitted_tiers
from grokscope.runs.record_files import records_at
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies.foresight.bisection import next_fraction
from grokscope.studies.foresight.cells import CELLS
from grokscope.studies.foresight.experiments import BOUNDARIES, known_probes, planned_runs

__all__ = ["main", "present_seal", "probed_shares"]


def probed_shares(records: Iterable[RunRecord]) -> dict[str, dict[float, float]]:
    """Cell → train fraction → share of its finished runs that grokked.

    >>> probed_shares([])
    {}
    """
    cells = {_same(cell.spec): cell.name for cell in CELLS.values() if cell.bracket is not None}
    counts: dict[str, dict[float, list[bool]]] = {}
    for record in records:
        name = cells.get(_same(record.spec))
        if name is not None and record.outcome.is_finished:
            grokked = record.outcome.grokked is not None
            counts.setdefault(name, {}).setdefault(record.spec.train_fraction, []).append(grokked)
    return {
        name: {fraction: sum(some) / len(some) for fraction, some in found.items()} for name, found in counts.items()
    }


def present_seal() -> Seal:
    """The seal of the test runs that are planned by now and of the shipped forecasters.

    >>> len(present_seal().forecasters)
    4
    """
    texts = {f"tier-{tier}": (FITTED / TIER_FILES[tier]).read_text(encoding="utf-8") for tier in fitted_tiers()}
    return seal_cells(planned_runs("test").values(), texts)


def _same(spec: RunSpec) -> str:
    """The same for runs of a boundary cell at any fraction, seed and precision."""
    parts = spec.with_seed(0).to_dict()
    return str(
        sorted((name, str(value)) for name, value in parts.items() if name not in ("train_fraction", "precision"))
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Update the boundaries from records and write the seal; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.studies.foresight.progress", description=__doc__)
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUNS", help="packed records, or folders of runs")
    parser.add_argument("--seal", type=Path, required=True, help="the file of the seal, SEAL.json")
    chosen = parser.parse_args(arguments)
    probes = known_probes()
    for name, found in probed_shares(record for path in chosen.runs for record in records_at(path)).items():
        probes[name] = probes.get(name, {}) | found
    write_json(
        BOUNDARIES, {name: {f"{one:g}": share for one, share in found.items()} for name, found in probes.items()}
    )
    present_seal().save(chosen.seal)
    edges = [cell for cell in CELLS.values() if cell.bracket is not None]
    decided = sum(next_fraction(probes.get(cell.name, {}), cell.bracket)[1] for cell in edges if cell.bracket)
    print(f"{decided} of {len(edges)} boundary cells have their fraction; wrote {BOUNDARIES.name} and {chosen.seal}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
