"""Named runs: stored, continued, and read again."""

from grokscope.experiments.devices import is_available, slots_that_fit
from grokscope.experiments.measuring import Measuring, Reading, measured
from grokscope.experiments.refusals import refuse_impossible
from grokscope.experiments.runner import Stopped, run_all
from grokscope.experiments.runs import Checkpoint, Run, Runs, open_runs
from grokscope.experiments.stack import Progress
from grokscope.experiments.states import state_at
from grokscope.experiments.store import BusyError, Keep, RunFolder, Store, run_name

__all__ = [
    "BusyError",
    "Checkpoint",
    "Keep",
    "Measuring",
    "Progress",
    "Reading",
    "Run",
    "RunFolder",
    "Runs",
    "Stopped",
    "Store",
    "is_available",
    "measured",
    "open_runs",
    "refuse_impossible",
    "run_all",
    "run_name",
    "slots_that_fit",
    "state_at",
]
