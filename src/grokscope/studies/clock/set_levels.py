"""`python -m grokscope.studies.clock.set_levels --from part-01.records.gz`: the levels of forks, from their parents."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from math import isfinite
from pathlib import Path
from statistics import median

from grokscope.errors import InputError
from grokscope.files import write_json
from grokscope.jobs.worker import BAD_INPUT
from grokscope.runs.records import RunRecord
from grokscope.studies.clock.levels import LEVELS, known_levels
from grokscope.studies.clock.norms import norm_at_grokking_of
from grokscope.studies.sources import every_record

__all__ = ["main", "measured_norms"]


def measured_norms(records: Iterable[RunRecord]) -> dict[str, dict[str, float]]:
    """Model → seed → the norm of its parent when it had grokked, to four digits.

    >>> measured_norms([])
    {}
    """
    found: dict[str, dict[str, float]] = {}
    for record in records:
        for member in record.made_for:
            if (member.study, member.experiment) == ("clock", "parents") and isfinite(
                norm := norm_at_grokking_of(record)
            ):
                seed = str(record.spec.seeds.initialization)
                found.setdefault(member.name.partition("-")[0], {})[seed] = float(f"{norm:.4g}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the norms of the parents in these places; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.studies.clock.set_levels", description=__doc__)
    parser.add_argument("--from", dest="sources", type=Path, nargs="+", required=True, help="runs or packed records")
    parser.add_argument("--out", type=Path, default=LEVELS, help="the file to write; the study reads its own")
    given = parser.parse_args(arguments)
    try:
        measured = measured_norms(record for path in given.sources for record in every_record(path))
        if not measured:
            raise InputError("no parent of the clock study has grokked there: no level was written")
    except InputError as error:
        print(f"grokscope: {error}", file=sys.stderr)
        return BAD_INPUT
    levels = {
        model: {"assumed": known["assumed"]} | ({"measured": measured[model]} if model in measured else {})
        for model, known in known_levels().items()
    }
    write_json(given.out, levels)
    for model, known in levels.items():
        norms = measured.get(model, {})
        if norms:
            print(f"{model}: {len(norms)} parents, median {median(norms.values()):.4g}")
        else:
            print(f"{model}: no parent has grokked, and its forks take the assumed norm, {known['assumed']:g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
