"""Where runs are trained, and which of them together."""

from typing import TYPE_CHECKING

from grokscope.lazy import exports

if TYPE_CHECKING:  # all of them load torch
    from grokscope.jobs.capacity import bytes_per_run, slots_in, slots_that_fit
    from grokscope.jobs.checks import refuse_impossible
    from grokscope.jobs.runner import Stopped, generations, run_all
    from grokscope.jobs.stack import Notice, Progress
    from grokscope.jobs.states import state_at
else:
    __getattr__, __dir__ = exports(
        __name__,
        {
            "capacity": ["bytes_per_run", "slots_in", "slots_that_fit"],
            "checks": ["refuse_impossible"],
            "runner": ["Stopped", "generations", "run_all"],
            "stack": ["Notice", "Progress"],
            "states": ["state_at"],
        },
    )

__all__ = [
    "Notice",
    "Progress",
    "Stopped",
    "bytes_per_run",
    "generations",
    "refuse_impossible",
    "run_all",
    "slots_in",
    "slots_that_fit",
    "state_at",
]
