"""Stored runs: written, listed, and read again."""

from typing import TYPE_CHECKING

from grokscope.lazy import exports
from grokscope.runs.locks import BusyError
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.plans import keep_plan, kept_plans
from grokscope.runs.records import RunRecord
from grokscope.runs.run_folder import Keep, RunFolder, run_name
from grokscope.runs.runs import DamagedRunWarning, Run, Runs, open_runs
from grokscope.runs.store import Store
from grokscope.runs.stores import is_remote, open_store, pull

if TYPE_CHECKING:  # those that load torch; the others are all that listing runs takes
    from grokscope.runs.checkpoints import Checkpoint
    from grokscope.runs.measuring import Measuring, Reading, measure_checkpoints
else:
    __getattr__, __dir__ = exports(
        __name__, {"checkpoints": ["Checkpoint"], "measuring": ["Measuring", "Reading", "measure_checkpoints"]}
    )

__all__ = [
    "BusyError",
    "Checkpoint",
    "DamagedRunWarning",
    "Keep",
    "Measuring",
    "Reading",
    "Run",
    "RunFolder",
    "RunOutcome",
    "RunRecord",
    "Runs",
    "Store",
    "is_remote",
    "keep_plan",
    "kept_plans",
    "measure_checkpoints",
    "open_runs",
    "open_store",
    "pull",
    "run_name",
]
