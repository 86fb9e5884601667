"""See grokking coming, prove why it happens, and steer it.

Importing this needs torch, numpy and safetensors only; everything else is loaded where it is used.
"""

from grokscope.attach import Monitor, WeightDecayController
from grokscope.errors import InputError
from grokscope.experiments import Run, Runs, open_runs
from grokscope.specs import RunSpec
from grokscope.tasks import Group, Task, named_group, named_task
from grokscope.version import __version__

# `runs = grokscope.open(DIR)`, as one opens a data set.
open = open_runs

__all__ = [
    "Group",
    "InputError",
    "Monitor",
    "Run",
    "RunSpec",
    "Runs",
    "Task",
    "WeightDecayController",
    "__version__",
    "named_group",
    "named_task",
    "open",
]
