"""Test runs are trained once the forecasters, with their thresholds, are sealed and the seal is committed."""

import os
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import named
from grokscope.forecast.benchmark import FALSE_ALARMS, Seal, seal_cells
from grokscope.forecast.hazard import HazardForecaster
from grokscope.forecast.load import FITTED, TIER_FILES, fitted_tiers
from grokscope.specs import RunSpec
from grokscope.studies.foresight import experiments
from grokscope.studies.foresight.cells import CELLS
from grokscope.studies.run_set import Precision

__all__ = ["PRECISION", "is_test_run", "present_seal", "require_seal"]

PRECISION: Precision = "tf32"  # of the test runs


def present_seal() -> Seal:
    """The seal of the test cells and of the shipped forecasters, whatever probes have shown by now.

    >>> {"tier-0", "tier-5"} <= {*present_seal().forecasters}
    True
    """
    texts = {f"tier-{tier}": (FITTED / TIER_FILES[tier]).read_text(encoding="utf-8") for tier in fitted_tiers()}
    for name, text in texts.items():
        if {*HazardForecaster.from_json(text, name).alarms} != {*FALSE_ALARMS}:
            raise InputError(f"{name} has no thresholds of alarms; `python -m grokscope.forecast.refitting` fits them")
    return _seal(texts)


def is_test_run(spec: RunSpec) -> bool:
    """Whether a run, at whatever precision, is of a test cell.

    >>> is_test_run(CELLS["S5-quick"].run(3)), is_test_run(CELLS["add_mod97-w2-f0.4"].run(3)), is_test_run(RunSpec())
    (True, False, False)
    """
    return _cells(tuple(CELLS)).holds(replace(spec, precision=PRECISION))


def require_seal(specs: Iterable[RunSpec], path: Path | None) -> dict[str, str]:
    """Reject test runs without a committed seal of what is shipped; what is packed with them: its digest.

    >>> require_seal([RunSpec()], None)
    {}
    """
    if not any(map(is_test_run, specs)):
        return {}
    if path is None:
        raise InputError("test runs are trained after the forecasters are sealed; --seal names the committed seal")
    seal = Seal.load(path)
    if what := ", ".join(seal.differences(present_seal())):
        raise InputError(
            f"{named(path)} is not the seal of the shipped forecasters and the planned test cells; what differs: {what}"
        )
    if not _is_committed(path):
        raise InputError(f"{named(path)} is not committed as it is; test runs are trained after it is")
    return {"seal": seal.digest}


def _is_committed(path: Path) -> bool:
    """By the history here; a copy without one is believed where it says which commit it is of."""
    command = ["git", "-C", str(path.resolve().parent)]
    try:
        inside = subprocess.run([*command, "rev-parse"], capture_output=True, check=False, timeout=10)
        if inside.returncode:
            return bool(os.environ.get("GROKSCOPE_COMMIT"))
        shown = [*command, "show", f"HEAD:./{path.resolve().name}"]
        found = subprocess.run(shown, capture_output=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return bool(os.environ.get("GROKSCOPE_COMMIT"))
    return found.returncode == 0 and found.stdout == path.read_bytes()


@lru_cache(maxsize=8)
def _cells(names: tuple[str, ...]) -> Seal:
    return _seal({})


def _seal(texts: dict[str, str]) -> Seal:
    test = [cell for cell in CELLS.values() if cell.split == "test"]
    searched = [(_sealed(cell.spec), cell.bracket) for cell in test if cell.bracket is not None]
    runs = [_sealed(cell.run(seed)) for cell in test if not cell.bracket for seed in range(experiments.SEEDS)]
    return seal_cells(runs, texts, searched)


def _sealed(spec: RunSpec) -> RunSpec:
    return replace(spec, precision=PRECISION)
