"""The Z_n control of §7: frequencies of the answers' index, whatever the group is."""

import numpy as np
import torch
from torch import Tensor

from grokscope.measures.question import BLOCK_0, MOSTLY_CONSTANT, UNTRAINED, Columns, Measure, Question
from grokscope.measures.spectrum import spectrum
from grokscope.measures.synchronization import fsd
from grokscope.randomness import permutation
from grokscope.specs.spec import WORD_LIMIT
from grokscope.tasks import Basis, Task
from grokscope.tasks.modes import fourier_modes

__all__ = ["ENTRIES", "control_basis"]


def control_basis(task: Task, relabelling: int | None = None) -> Basis:
    """Frequencies over the answers' index, whatever the operation's own group.

    The order of the elements matters and the paper does not state it: lexicographic if `relabelling` is None, else a
    random order from that seed.

    >>> from grokscope.tasks import named_task
    >>> control_basis(named_task("S5")).name, len(control_basis(named_task("S5")).modes)
    ('additive', 60)
    """
    order = np.arange(task.symbols)
    if relabelling is not None:
        order = permutation(torch.tensor(relabelling), "labels", torch.tensor(0), task.symbols).numpy()
    return Basis("additive", order, fourier_modes(task.symbols))


def _columns(question: Question) -> Columns:
    """FSD of the same means over frequencies of the answers' index, in lexicographic and in random orders."""
    read, task = question.means(), question.subject.task

    def in_order(relabelling: int | None) -> Tensor:
        return fsd(spectrum(read.means, control_basis(task, relabelling), read.mean_square).density).fsd

    seeds = [(question.seed + i) % WORD_LIMIT for i in range(question.reading.control_relabellings)]
    random = torch.stack([in_order(seed) for seed in seeds])
    return {"control_fsd": in_order(None), "control_mean": random.mean(dim=0), "control_max": random.amax(dim=0)}


ENTRIES = {
    "control": Measure(
        title="The Z_n control: FSD over frequencies of the answers' index",
        formula="FSD of A[s, j] with s in lexicographic order, or in random orders, whatever the group is",
        source="the paper, §7 and Table 11",
        cost=BLOCK_0,
        null=UNTRAINED,
        undefined=MOSTLY_CONSTANT,
        columns={
            "control_fsd": "elements in lexicographic order; for addition it is FSD itself",
            "control_mean": "mean over random orders (ReadingSpec.control_relabellings)",
            "control_max": "the largest of them",
        },
        compute=_columns,
        needs=frozenset({"means", "pairs"}),
    ),
}
