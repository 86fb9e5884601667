"""Where runs are trained, and which of them together."""

from typing import TYPE_CHECKING

from grokscope.lazy import exports

if TYPE_CHECKING:  # all of them load torch
    from grokscope.jobs.memory import bytes_of_stack
    from grokscope.jobs.preparation import find_damaged, prepare_plan, reject_impossible
    from grokscope.jobs.runner import run_all
    from grokscope.jobs.stacks import slots_in, slots_that_fit, stack_key
    from grokscope.jobs.states import state_at
    from grokscope.jobs.training_stack import Notice, Progress, Stopped
else:
    __getattr__, __dir__ = exports(
        __name__,
        {
            "memory": ["bytes_of_stack"],
            "preparation": ["find_damaged", "prepare_plan", "reject_impossible"],
            "runner": ["run_all"],
            "stacks": ["slots_in", "slots_that_fit", "stack_key"],
            "states": ["state_at"],
            "training_stack": ["Notice", "Progress", "Stopped"],
        },
    )

__all__ = [
    "Notice",
    "Progress",
    "Stopped",
    "bytes_of_stack",
    "find_damaged",
    "prepare_plan",
    "reject_impossible",
    "run_all",
    "slots_in",
    "slots_that_fit",
    "stack_key",
    "state_at",
]
