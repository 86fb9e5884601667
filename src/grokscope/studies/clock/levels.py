"""The norms at which parents grok, which the levels of their forks are multiples of.

`python -m grokscope.studies.clock.levels --from runs/clock` reads the parents and writes `levels.json`; commit it
before the forks are trained. Until then a level is a multiple of what was assumed: the norms that are reported of the
MLP and of attention without LayerNorm (54.6 and 36.9), what the released code has of attention with all LayerNorms at
p = 71 (18.3, of its groups together), and guesses for the other two.
"""

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any

from grokscope.errors import InputError
from grokscope.files import write_json
from grokscope.runs.record_files import records_at
from grokscope.runs.records import RunRecord
from grokscope.studies.clock.cells import MODELS
from grokscope.studies.clock.norms import norm_at_grokking_of

__all__ = ["LEVELS", "main", "measured_norms", "norm_at_grokking"]

LEVELS = Path(__file__).with_name("levels.json")
"""Model → the assumed norm, and by seed the measured ones."""


@cache
def _known() -> Mapping[str, Mapping[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(LEVELS.read_text(encoding="utf-8"))
    return found


def norm_at_grokking(model: str, seed: int) -> float:
    """‖W‖ at which a parent groks: its own, else the median of those that are known, else the assumed one.

    >>> norm_at_grokking("mlp", 0) > 0
    True
    """
    known = _known()[model]
    measured: Mapping[str, float] = known.get("measured", {})
    return float(measured.get(str(seed), median(measured.values()) if measured else known["assumed"]))


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the norms of the parents in these places."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.studies.clock.levels", description=__doc__)
    parser.add_argument("--from", dest="sources", type=Path, nargs="+", required=True, help="runs or packed records")
    parser.add_argument("--out", type=Path, default=LEVELS, help="the file to write; the study reads its own")
    given = parser.parse_args(arguments)
    measured = measured_norms(record for path in given.sources for record in records_at(path))
    if missing := [model for model in MODELS if model not in measured]:
        raise InputError(f"no parent of {', '.join(missing)} has grokked there: no level was written")
    assumed = {model: known["assumed"] for model, known in _known().items()}
    write_json(given.out, {name: {"assumed": norm, "measured": measured[name]} for name, norm in assumed.items()})
    print(
        "\n".join(
            f"{name}: {len(norms)} parents, median {median(norms.values()):.4g}" for name, norms in measured.items()
        )
    )


if __name__ == "__main__":
    main()
