"""Named runs: stored, continued, and read again."""

from grokscope.experiments.runner import Progress, Stopped, refuse_impossible, run_all, state_at
from grokscope.experiments.runs import Checkpoint, Run, Runs, open_runs
from grokscope.experiments.store import BusyError, Keep, RunFolder, Store, run_name

__all__ = [
    "BusyError",
    "Checkpoint",
    "Keep",
    "Progress",
    "Run",
    "RunFolder",
    "Runs",
    "Stopped",
    "Store",
    "open_runs",
    "refuse_impossible",
    "run_all",
    "run_name",
    "state_at",
]
