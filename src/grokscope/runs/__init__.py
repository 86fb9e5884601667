"""Stored runs: written, listed, and read again."""

from typing import TYPE_CHECKING

from grokscope.lazy import exports
from grokscope.runs.locks import BusyError
from grokscope.runs.plans import remember, remembered
from grokscope.runs.run_folder import Keep, RunFolder, run_name
from grokscope.runs.runs import Run, Runs, open_runs
from grokscope.runs.store import Store
from grokscope.runs.stores import is_remote, open_store, pull

if TYPE_CHECKING:  # those that load torch; the others are all that listing runs takes
    from grokscope.runs.checkpoints import Checkpoint
    from grokscope.runs.measuring import Measuring, Reading, measured
else:
    __getattr__, __dir__ = exports(
        __name__, {"checkpoints": ["Checkpoint"], "measuring": ["Measuring", "Reading", "measured"]}
    )

__all__ = [
    "BusyError",
    "Checkpoint",
    "Keep",
    "Measuring",
    "Reading",
    "Run",
    "RunFolder",
    "Runs",
    "Store",
    "is_remote",
    "measured",
    "open_runs",
    "open_store",
    "pull",
    "remember",
    "remembered",
    "run_name",
]
