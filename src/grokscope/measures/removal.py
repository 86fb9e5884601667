"""What is left of a run without the dominant mode of the site that FSD reads."""

import torch

from grokscope.measures.question import FORWARD, MOSTLY_CONSTANT, Columns, Measure, Question
from grokscope.measures.restricted import filtered_loss
from grokscope.measures.spectrum import mostly_varies

__all__ = ["ENTRIES"]


def _columns(question: Question) -> Columns:
    found = filtered_loss(question.stack, question.site, 1, "remove", basis=question.basis, by=question.by)
    names = ("accuracy", "train_accuracy", "validation_accuracy", "loss")
    has_mode = mostly_varies(question.spectrum().power)
    return {f"without_mode_{name}": getattr(found.scores, name).where(has_mode, torch.nan) for name in names}


ENTRIES = {
    "removal": Measure(
        title="What is left without the dominant mode of block 0",
        formula="accuracy with mode k* of A[s, j] subtracted from every neuron that FSD reads",
        source="docs/paper-audit.md §4: the causal test of a causal precursor",
        cost=FORWARD + " with the edit, and block 0 once",
        null="the accuracy without the edit (memorization)",
        undefined=MOSTLY_CONSTANT,
        columns={"without_mode_{accuracy,train_accuracy,validation_accuracy,loss}": "scores after the removal"},
        compute=_columns,
        needs=frozenset({"basis", "edits"}),
    ),
}
