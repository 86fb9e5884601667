"""Train, fork and measure grokking, and compare what you measure with its null.

Using this needs torch, numpy and safetensors only, and importing it not even these; everything is loaded where it is
used.
"""

from typing import TYPE_CHECKING

from grokscope.errors import InputError
from grokscope.lazy import exports
from grokscope.runs import Run, Runs
from grokscope.specs import RunSpec
from grokscope.version import __version__
from grokscope.view.collection import Collection, open_collection
from grokscope.view.opened import OpenedRun, OpenedRuns, open_folder

if TYPE_CHECKING:
    from grokscope.attach import Monitor, Steering, WeightDecayController
    from grokscope.tasks import Group, Task, named_group, named_task
else:
    __getattr__, __dir__ = exports(
        __name__,
        {
            "attach": ["Monitor", "Steering", "WeightDecayController"],
            "tasks": ["Group", "Task", "named_group", "named_task"],
        },
    )

# `runs = grokscope.open(DIR)`, as one opens a data set.
open = open_folder
# `grokscope.collection(NAME)`, the Parquet tables of a study's records.
collection = open_collection

__all__ = [
    "Collection",
    "Group",
    "InputError",
    "Monitor",
    "OpenedRun",
    "OpenedRuns",
    "Run",
    "RunSpec",
    "Runs",
    "Steering",
    "Task",
    "WeightDecayController",
    "__version__",
    "collection",
    "named_group",
    "named_task",
    "open",
]
