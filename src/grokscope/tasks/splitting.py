"""Which pairs are trained on, and which labels the loss sees: pure functions of a seed."""

from dataclasses import dataclass

import numpy as np
import torch

from grokscope.errors import require
from grokscope.randomness import Stream, permutation
from grokscope.shapes import Bool, Int
from grokscope.specs.spec import WORD_LIMIT
from grokscope.tasks.task import Task, train_size

__all__ = ["Split", "shuffled_labels", "split", "train_size"]


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of a task's inputs, in the order in which they were drawn."""

    train: Int[np.ndarray, " train"]
    """⌊fraction · inputs⌋ rows."""
    validation: Int[np.ndarray, " validation"]
    """All others."""

    @property
    def mask(self) -> Bool[np.ndarray, " inputs"]:
        """Whether each pair is trained on, in the order of the task's inputs.

        >>> from grokscope.tasks.operations import named_task
        >>> split(named_task("add_mod7"), 0.5, seed=0).mask.sum()
        np.int64(24)
        """
        is_train = np.zeros(len(self.train) + len(self.validation), dtype=bool)
        is_train[self.train] = True
        return is_train


def split(task: Task, train_fraction: float, seed: int) -> Split:
    """The training share of all pairs, drawn without replacement. Paper: §3, "split deterministically by seed".

    >>> from grokscope.tasks.operations import named_task
    >>> split(named_task("add_mod97"), 0.3, seed=42).train.size
    2822
    """
    size = train_size(task, train_fraction)
    order = _drawn_order("split", seed, len(task.inputs))
    return Split(order[:size], order[size:])


def shuffled_labels(task: Task, seed: int) -> Int[np.ndarray, " inputs"]:
    """The answers, permuted over all pairs: as frequent as before, and with nothing to generalise.

    >>> from grokscope.tasks import named_task
    >>> task = named_task("add_mod5")
    >>> sorted(shuffled_labels(task, seed=0)) == sorted(task.answers), (shuffled_labels(task, 0) == task.answers).all()
    (True, np.False_)
    """
    return task.answers[_drawn_order("labels", seed, len(task.answers))]


def _drawn_order(stream: Stream, seed: int, count: int) -> np.ndarray:
    require(0 <= seed < WORD_LIMIT, f"the seed of the {stream} must lie in [0, 2^63)", seed)
    order: np.ndarray = permutation(torch.tensor(seed), stream, torch.tensor(0), count).numpy()
    return order
