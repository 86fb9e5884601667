"""`python -m grokscope.studies.foresight.progress RUNS ...`: read probes, decide the next fractions, write the seal.

Run it after each round of probes. It is finished when every boundary cell has its own fraction.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from grokscope.files import write_json
from grokscope.forecast.benchmark import Seal, seal_cells
from grokscope.forecast.load import FITTED, TIER_FILES, fitted_tiers
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies.foresight import experiments
from grokscope.studies.foresight.bisection import next_fraction
from grokscope.studies.foresight.cells import CELLS
from grokscope.studies.foresight.experiments import BOUNDARIES, kind_runs, known_probes
from grokscope.studies.run_set import Precision
from grokscope.studies.sources import every_record

__all__ = ["Ended", "ended_runs", "main", "plain_hash", "present_seal", "replayed_probes", "searched_runs"]

Ended = Mapping[str, bool]
PRECISION: Precision = "tf32"  # of the test runs


def ended_runs(records: Iterable[RunRecord]) -> dict[str, bool]:
    """Run, at whatever precision → whether it grokked, of those that have ended.

    >>> ended_runs([])
    {}
    """
    return {
        plain_hash(record.spec): record.outcome.grokked is not None for record in records if record.outcome.is_finished
    }


def plain_hash(spec: RunSpec) -> str:
    """The same for a run at any precision.

    >>> plain_hash(RunSpec()) == plain_hash(replace(RunSpec(), precision="tf32"))
    True
    """
    return replace(spec, precision="float32").content_hash


def replayed_probes(ended: Ended) -> dict[str, dict[float, float]]:
    """Cell → train fraction → share of the seeds of that probe that grokked, as the bisection came to it.

    Only probes that the rule asked for are counted, by their own seeds, once all of these have ended. So neither other
    runs of the same settings nor the further seeds of a cell that was decided can move it.

    >>> replayed_probes({})
    {}
    """
    found: dict[str, dict[float, float]] = {}
    for cell in CELLS.values():
        if cell.bracket is None:
            continue
        probes: dict[float, float] = {}
        while True:
            fraction, is_own = next_fraction(probes, cell.bracket)
            runs = [plain_hash(cell.run(seed, fraction)) for seed in range(experiments.PROBES)]
            if is_own or not all(run in ended for run in runs):
                break
            probes[fraction] = sum(ended[run] for run in runs) / len(runs)
        if probes:
            found[cell.name] = probes
    return found


def present_seal() -> Seal:
    """The seal of the test cells and of the shipped forecasters, whatever probes have shown by now.

    >>> {"tier-0", "tier-5"} <= {*present_seal().forecasters}
    True
    """
    texts = {f"tier-{tier}": (FITTED / TIER_FILES[tier]).read_text(encoding="utf-8") for tier in fitted_tiers()}
    test = [cell for cell in CELLS.values() if cell.split == "test"]
    searched = [(_sealed(cell.spec), cell.bracket) for cell in test if cell.bracket is not None]
    runs = [_sealed(cell.run(seed)) for cell in test if not cell.bracket for seed in range(experiments.SEEDS)]
    return seal_cells(runs, texts, searched)


def _sealed(spec: RunSpec) -> RunSpec:
    return replace(spec, precision=PRECISION)


def searched_runs(records: Iterable[RunRecord]) -> Iterator[RunSpec]:
    """The runs of the test cells on the boundary that there must be, by what the probes among the records have shown.

    >>> len({spec.task for spec in searched_runs([])}) > 3
    True
    """
    probes = replayed_probes(ended_runs(records))
    yield from kind_runs("test", "boundary", probes, PRECISION).values()


def main(arguments: Sequence[str] | None = None) -> int:
    """Update the boundaries from records and write the seal; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.studies.foresight.progress", description=__doc__)
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUNS", help="packed records, or folders of runs")
    parser.add_argument("--seal", type=Path, required=True, help="the file of the seal, SEAL.json")
    chosen = parser.parse_args(arguments)
    ended = ended_runs(record for path in chosen.runs for record in every_record(path))
    probes = known_probes() | replayed_probes(ended)
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
