"""What is learnt, as rows: operations, groups and their irreps, and everything else that knows its own answers."""

from typing import TYPE_CHECKING

from grokscope.lazy import exports
from grokscope.tasks.characters import CharacterTable, character_table
from grokscope.tasks.families import FAMILIES, named_group
from grokscope.tasks.group import MAX_ORDER, Group
from grokscope.tasks.modes import Mode, Modes, fourier_modes, group_modes
from grokscope.tasks.names import KINDS, group_of, named_task, pinned_task_name
from grokscope.tasks.operations import OPERATIONS
from grokscope.tasks.pairs import all_pairs, pair_task
from grokscope.tasks.requirements import reject_unsuited
from grokscope.tasks.row_groups import RowGroup
from grokscope.tasks.task import Basis, Condition, PairTable, Task, train_size
from grokscope.tasks.young import orthogonal_form, partitions

if TYPE_CHECKING:  # these load torch; a task's name can be checked without it
    from grokscope.tasks.splitting import HELD_OUT, PADDING, TRAIN, VALIDATION, Split, shuffled_labels, split
else:
    __getattr__, __dir__ = exports(
        __name__, {"splitting": ["HELD_OUT", "PADDING", "TRAIN", "VALIDATION", "Split", "shuffled_labels", "split"]}
    )

__all__ = [
    "FAMILIES",
    "HELD_OUT",
    "KINDS",
    "MAX_ORDER",
    "OPERATIONS",
    "PADDING",
    "TRAIN",
    "VALIDATION",
    "Basis",
    "CharacterTable",
    "Condition",
    "Group",
    "Mode",
    "Modes",
    "PairTable",
    "RowGroup",
    "Split",
    "Task",
    "all_pairs",
    "character_table",
    "fourier_modes",
    "group_modes",
    "group_of",
    "named_group",
    "named_task",
    "orthogonal_form",
    "pair_task",
    "partitions",
    "pinned_task_name",
    "reject_unsuited",
    "shuffled_labels",
    "split",
    "train_size",
]
