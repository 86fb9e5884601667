"""Named runs: stored, continued, and read again."""

from typing import TYPE_CHECKING

from grokscope.experiments.locks import BusyError
from grokscope.experiments.plans import remember, remembered
from grokscope.experiments.run_folder import Keep, RunFolder, run_name
from grokscope.experiments.runs import Run, Runs, open_runs
from grokscope.experiments.store import Store
from grokscope.experiments.stores import is_remote, open_store, pull
from grokscope.lazy import exports

if TYPE_CHECKING:  # those that load torch; the others are all that listing runs takes
    from grokscope.experiments.checkpoints import Checkpoint
    from grokscope.experiments.devices import bytes_per_run, is_available, slots_in, slots_that_fit
    from grokscope.experiments.measuring import Measuring, Reading, measured
    from grokscope.experiments.refusals import refuse_impossible
    from grokscope.experiments.runner import Stopped, generations, run_all
    from grokscope.experiments.stack import Notice, Progress
    from grokscope.experiments.states import state_at
else:
    __getattr__, __dir__ = exports(
        __name__,
        {
            "checkpoints": ["Checkpoint"],
            "devices": ["bytes_per_run", "is_available", "slots_in", "slots_that_fit"],
            "measuring": ["Measuring", "Reading", "measured"],
            "refusals": ["refuse_impossible"],
            "runner": ["Stopped", "generations", "run_all"],
            "stack": ["Notice", "Progress"],
            "states": ["state_at"],
        },
    )

__all__ = [
    "BusyError",
    "Checkpoint",
    "Keep",
    "Measuring",
    "Notice",
    "Progress",
    "Reading",
    "Run",
    "RunFolder",
    "Runs",
    "Stopped",
    "Store",
    "bytes_per_run",
    "generations",
    "is_available",
    "is_remote",
    "measured",
    "open_runs",
    "open_store",
    "pull",
    "refuse_impossible",
    "remember",
    "remembered",
    "run_all",
    "run_name",
    "slots_in",
    "slots_that_fit",
    "state_at",
]
