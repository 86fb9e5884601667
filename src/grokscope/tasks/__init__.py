"""Operations, groups and their irreps: everything that knows a prime or a permutation."""

from typing import TYPE_CHECKING

from grokscope.lazy import exports
from grokscope.tasks.characters import CharacterTable, character_table
from grokscope.tasks.families import FAMILIES, named_group
from grokscope.tasks.group import MAX_ORDER, Group
from grokscope.tasks.modes import Mode, Modes, fourier_modes, group_modes
from grokscope.tasks.operations import OPERATIONS, group_of, named_task, pinned_task_name
from grokscope.tasks.task import Basis, Task, train_size
from grokscope.tasks.young import orthogonal_form, partitions

if TYPE_CHECKING:  # these load torch; a task's name can be checked without it
    from grokscope.tasks.splitting import Split, shuffled_labels, split
else:
    __getattr__, __dir__ = exports(__name__, {"splitting": ["Split", "shuffled_labels", "split"]})

__all__ = [
    "FAMILIES",
    "MAX_ORDER",
    "OPERATIONS",
    "Basis",
    "CharacterTable",
    "Group",
    "Mode",
    "Modes",
    "Split",
    "Task",
    "character_table",
    "fourier_modes",
    "group_modes",
    "group_of",
    "named_group",
    "named_task",
    "orthogonal_form",
    "partitions",
    "pinned_task_name",
    "shuffled_labels",
    "split",
    "train_size",
]
