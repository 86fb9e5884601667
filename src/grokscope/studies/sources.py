"""Where evidence lies: a folder of runs, packed records, or a folder of these."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict, get_args

from grokscope.errors import InputError
from grokscope.files import named
from grokscope.runs.packing import unpack_records
from grokscope.runs.records import RunRecord
from grokscope.runs.runs import open_runs
from grokscope.runs.store import Store
from grokscope.studies.catalogue import Precision
from grokscope.studies.evidence import Evidence, evidence_of
from grokscope.studies.reproduction import records_in

__all__ = ["PACKED", "Scope", "evidence_at", "records_at", "scope_of"]

PACKED = "*.records.gz"
NAMED_SEEDS = {42, 123}  # far from the others, which are counted from 0
MOST_PRINTED = 6  # seeds of a study that are printed, and so are not counted
FEW_SEEDS = 256


class Scope(TypedDict):
    """A version of the catalogue."""

    n_seeds: int | None
    """To how many seeds every configuration is widened."""
    precision: Precision
    """The arithmetic of all runs."""
    quick: bool
    """Whether it is the reduced one."""


def records_at(path: Path) -> list[RunRecord]:
    """The records of a packed file; of a folder's packed files together; or of the runs stored in a folder."""
    if path.is_file():
        found = unpack_records(path)
    else:
        open_runs(path)  # refuses what is no folder, and names the nearest
        files = sorted(path.glob(PACKED))
        found = [record for file in files for record in unpack_records(file)] if files else records_in(Store(path))
    if not found:
        raise InputError(f"{named(path)} holds no finished runs and no records ({PACKED})")
    return list({record.spec.content_hash: record for record in found}.values())


def evidence_at(path: Path) -> Evidence:
    """The catalogue's studies with the records that lie there: as many seeds as there are, in their usual precision."""
    records = records_at(path)
    return evidence_of(records, **scope_of(records))


def scope_of(records: Sequence[RunRecord]) -> Scope:
    """Which version of the catalogue records belong to: how many seeds, which precision, quick or not."""
    known = [record.spec.precision for record in records if record.spec.precision in get_args(Precision)]
    precision = Counter(known).most_common(1)[0][0] if known else "float32"
    seeds = {seed for record in records for seed in (record.spec.seeds.split, record.spec.seeds.data_order)}
    # Seeds are counted from 0; one that is far beyond how many there are is somebody's own.
    counted = [seed for seed in seeds - NAMED_SEEDS if seed < max(FEW_SEEDS, 4 * len(seeds))]
    n_seeds = max(counted, default=0) + MOST_PRINTED
    placed = {
        quick: sum(map(len, evidence_of(records, n_seeds, precision, quick).records.values()))
        for quick in (False, True)
    }
    return {"n_seeds": n_seeds, "precision": precision, "quick": placed[True] > placed[False]}
