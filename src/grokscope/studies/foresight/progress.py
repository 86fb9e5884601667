"""`python -m grokscope.studies.foresight.progress [RUNS ...] [--seal SEAL.json]`: read probes, decide, and seal.

Run it after each round of probes. It is finished when every boundary cell has its own fraction. Then it writes the
seal, once: another one is rejected with what would differ.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import write_json
from grokscope.forecast.benchmark import Seal
from grokscope.jobs.worker import BAD_INPUT
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies.foresight import experiments
from grokscope.studies.foresight.bisection import next_fraction
from grokscope.studies.foresight.cells import CELLS
from grokscope.studies.foresight.experiments import BOUNDARIES, kind_runs, known_probes
from grokscope.studies.foresight.sealing import PRECISION, present_seal
from grokscope.studies.sources import every_record

__all__ = ["Ended", "ended_runs", "main", "plain_hash", "replayed_probes", "searched_runs"]

Ended = Mapping[str, bool]


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


def searched_runs(records: Iterable[RunRecord]) -> Iterator[RunSpec]:
    """The runs of the test cells on the boundary that there must be, by what the probes among the records have shown.

    >>> len({spec.task for spec in searched_runs([])}) > 3
    True
    """
    probes = replayed_probes(ended_runs(records))
    yield from kind_runs("test", "boundary", probes, PRECISION).values()


def main(arguments: Sequence[str] | None = None) -> int:
    """Update the boundaries from records, and write a seal that is not there yet; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.studies.foresight.progress", description=__doc__)
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUNS", help="packed records, or folders of runs")
    parser.add_argument("--seal", type=Path, help="where to write the seal, SEAL.json; one that is there stays")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.seal:
            present_seal().save(chosen.seal)
        _update(chosen.runs)
    except InputError as error:
        print(f"grokscope: {error}", file=sys.stderr)
        return BAD_INPUT
    if chosen.seal:
        print(f"sealed in {chosen.seal}: {Seal.load(chosen.seal).digest}")
    return 0


def _update(paths: Sequence[Path]) -> None:
    ended = ended_runs(record for path in paths for record in every_record(path))
    probes = known_probes() | replayed_probes(ended)
    write_json(
        BOUNDARIES, {name: {f"{one:g}": share for one, share in found.items()} for name, found in probes.items()}
    )
    edges = [cell for cell in CELLS.values() if cell.bracket is not None]
    decided = sum(next_fraction(probes.get(cell.name, {}), cell.bracket)[1] for cell in edges if cell.bracket)
    print(f"{decided} of {len(edges)} boundary cells have their fraction; wrote {BOUNDARIES.name}")


if __name__ == "__main__":
    sys.exit(main())
