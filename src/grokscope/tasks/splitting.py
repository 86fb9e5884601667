"""Which rows are trained on, and which labels the loss sees: pure functions of a seed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from grokscope.errors import require
from grokscope.randomness import Stream, permutation
from grokscope.shapes import Bool, Float, Int
from grokscope.specs.spec import WORD_LIMIT
from grokscope.tasks.row_groups import DRAWN
from grokscope.tasks.task import Task, drawn_size, train_size

__all__ = ["HELD_OUT", "PADDING", "TRAIN", "VALIDATION", "Split", "shuffled_labels", "split", "train_size"]

PADDING, TRAIN, VALIDATION, HELD_OUT = -1, 0, 1, 2
"""What a row counts as: HELD_OUT + i is the i-th group that is reported apart."""


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of a task, in the order in which they were drawn."""

    train: Int[np.ndarray, " train"]
    """⌊fraction · rows⌋ of each group that is drawn from, then the rows that are always trained on."""
    validation: Int[np.ndarray, " validation"]
    """The others that are drawn from, then the rows that always validate."""
    held_out: Mapping[str, Int[np.ndarray, " members"]] = field(default_factory=dict)
    """Rows that are never trained on and reported apart, by the name of their group."""

    @property
    def mask(self) -> Bool[np.ndarray, " rows"]:
        """Whether each row is trained on, in the order of the task's rows.

        >>> from grokscope.tasks.names import named_task
        >>> split(named_task("add_mod7"), 0.5, seed=0).mask.sum()
        np.int64(24)
        """
        mask: np.ndarray = self.kinds == TRAIN
        return mask

    @property
    def kinds(self) -> Int[np.ndarray, " rows"]:
        """What each row counts as: TRAIN, VALIDATION, or HELD_OUT + i for the i-th group that is reported apart."""
        parts = [self.train, self.validation, *self.held_out.values()]
        kinds = np.empty(sum(map(len, parts)), dtype=np.int64)
        for kind, rows in enumerate(parts):
            kinds[rows] = kind
        return kinds


def split(task: Task, train_fraction: float, seed: int) -> Split:
    """The training share of all rows, drawn without replacement. Paper: §3, "split deterministically by seed".

    >>> from grokscope.tasks.names import named_task
    >>> split(named_task("add_mod97"), 0.3, seed=42).train.size
    2822
    """
    train_size(task, train_fraction)  # rejects what leaves nothing
    train, validation = [], []
    for number, group in enumerate(group for group in task.row_groups if group.rule == DRAWN):
        rows = group.rows[_drawn_order("split", seed, len(group.rows), number)]
        size = drawn_size(group, train_fraction)
        train.append(rows[:size])
        validation.append(rows[size:])
    train += [group.rows for group in task.row_groups if group.rule == "train"]
    validation += [group.rows for group in task.row_groups if group.rule == "validation"]
    held_out = {group.name: group.rows for group in task.row_groups if group.rule == "held_out"}
    return Split(np.concatenate(train), np.concatenate(validation), held_out)


def shuffled_labels(task: Task, seed: int) -> Int[np.ndarray, " rows"] | Float[np.ndarray, "rows outputs"]:
    """The answers, permuted over all rows: as frequent as before, and with nothing to generalise.

    >>> from grokscope.tasks import named_task
    >>> task = named_task("add_mod5")
    >>> sorted(shuffled_labels(task, seed=0)) == sorted(task.answers), (shuffled_labels(task, 0) == task.answers).all()
    (True, np.False_)
    """
    return task.answers[_drawn_order("labels", seed, task.rows)]


def _drawn_order(stream: Stream, seed: int, count: int, number: int = 0) -> np.ndarray:
    require(0 <= seed < WORD_LIMIT, f"the seed of the {stream} must lie in [0, 2^63)", seed)
    order: np.ndarray = permutation(torch.tensor(seed), stream, torch.tensor(number), count).numpy()
    return order
