"""`python -m grokscope.forecast.refitting FILE ...`: fit the shipped forecasters again to packed records.

Parameters, and the thresholds of alarms, are fitted and stored together.

The files are lines of JSON after a first line that names their format, compressed; see `grokscope.runs.packing`. Only
specs and evaluations are read. The same files give the same parameters on one machine. Test runs are rejected.
"""

import argparse
import gzip
import json
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

from grokscope.errors import InputError
from grokscope.files import make_folder, named
from grokscope.forecast.benchmark.alarms import IN_A_ROW, alarm_questions
from grokscope.forecast.benchmark.asking import HORIZON
from grokscope.forecast.benchmark.baselines import BASELINES, unlogged_signals
from grokscope.forecast.benchmark.folds import FOLDS
from grokscope.forecast.benchmark.thresholds import fit_thresholds
from grokscope.forecast.cases import Case, usable_cases
from grokscope.forecast.hazard import HazardForecaster, fit_hazard
from grokscope.forecast.load import FITTED, TIER_FILES
from grokscope.specs import RunSpec

__all__ = ["main", "packed_cases"]

EVERY = 400


def packed_cases(path: Path) -> list[Case]:
    """The usable cases in a packed file of records.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "none.gz").write_bytes(gzip.compress(b'{"format": "grokscope records 2"}'))
    ...     packed_cases(Path(folder, "none.gz"))
    []
    """
    return usable_cases([*_runs(path)])


def _runs(path: Path) -> Iterator[tuple[RunSpec, Mapping[str, Sequence[float | int]]]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            if json.loads(next(lines)).get("split") == "test":
                raise InputError(f"{named(path)} holds test runs; nothing is fitted to them")
            for line in lines:
                parts: dict[str, Any] = json.loads(line)
                if any(str(one.get("experiment")).startswith("test-") for one in parts.get("made_for", ())):
                    raise InputError(f"{named(path)} holds test runs; nothing is fitted to them")
                logged = parts.get("evaluations") or parts["log"]
                columns = {name: [nan if one is None else one for one in values] for name, values in logged.items()}
                yield RunSpec.from_dict(parts["spec"]), columns
    except InputError:
        raise
    except (OSError, EOFError, zlib.error, ValueError, KeyError, AttributeError, StopIteration) as error:
        raise InputError(f"the records {named(path)} cannot be read: {error}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit every tier and write its parameters; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.forecast.refitting", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="packed records, FILE.records.gz")
    parser.add_argument("--out", type=Path, default=FITTED, help="the folder of the parameters; the shipped ones")
    chosen = parser.parse_args(arguments)
    try:
        make_folder(chosen.out)
        _fit(chosen.files, chosen.out)
    except InputError as error:
        print(f"grokscope: {error}", file=sys.stderr)
        return 2
    return 0


def _fit(files: Sequence[Path], out: Path) -> None:
    cases = [case for file in files for case in packed_cases(file)]
    sources = [file.name for file in files]
    for tier, name in TIER_FILES.items():
        if lacking := unlogged_signals(f"hazard-{tier}", cases):
            print(f"tier {tier} is not fitted: no run has {', '.join(lacking)}")
            continue
        signals = BASELINES[f"hazard-{tier}"].signals
        fitted = _fitted(cases, tier, signals, sources)
        (out / name).write_text(fitted.to_json(), encoding="utf-8")
        print(f"wrote {out / name}: {fitted.provenance['runs']} runs in {fitted.provenance['cells']} cells")


def _fitted(cases: Sequence[Case], tier: int, signals: Sequence[str], sources: Sequence[str]) -> HazardForecaster:
    """Parameters of all runs, and thresholds of the same fit to the others of each fifth of the cells."""

    def fit(some: Sequence[Case]) -> HazardForecaster:
        return fit_hazard(some, tier, signals, f"hazard model of tier {tier}", every=EVERY, sources=sources)

    alarms, whole = fit_thresholds(fit, cases), fit(cases)
    of = {
        "fitted to": f"forecasts of each of {FOLDS} parts of the cells by parameters of the others",
        "horizon": HORIZON,
        "in a row": IN_A_ROW,
        "grokked": sum(case.grokked is not None for case in cases),
        "not grokked": sum(case.grokked is None and bool(alarm_questions(case)) for case in cases),
    }
    return replace(whole, alarms=alarms, provenance={**whole.provenance, "alarms": of})


if __name__ == "__main__":
    sys.exit(main())
