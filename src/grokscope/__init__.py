"""See grokking coming, prove why it happens, and steer it.

Importing this needs torch, numpy and safetensors only; everything else is loaded where it is used.
"""

from grokscope.errors import InputError
from grokscope.specs import RunSpec
from grokscope.tasks import Group, Task, named_group, named_task
from grokscope.version import __version__

__all__ = ["Group", "InputError", "RunSpec", "Task", "__version__", "named_group", "named_task"]
