"""How large the logits are."""

import torch
from torch import Tensor

from grokscope.activations import Subject
from grokscope.measures.question import FORWARD, NOT_NUMBERS, Columns, Measure, Question
from grokscope.shapes import Float

__all__ = ["ENTRIES", "logit_scale"]


def logit_scale(subject: Subject) -> Float[Tensor, " runs"]:
    """Mean over all rows of ‖l‖ = √(Σ_c l_c²), the Euclidean norm of the logits, in float64.

    Logits are those that the loss sees, divided by the model's temperature: the effective logit scale of Truong (2026,
    arXiv 2606.18465), whose released code takes the same mean. They are not centred, as there.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> run = RunSpec(task="add_mod7")
    >>> bool(logit_scale(subject_of([run], initial_state(Cohort([run])).weights)) > 0)
    True
    """
    rows = [torch.linalg.vector_norm(part.double(), dim=-1) for _, part in subject.logit_parts()]
    return torch.cat(rows, dim=1).mean(dim=-1)


def _columns(question: Question) -> Columns:
    return {"logit_scale": logit_scale(question.subject)}


ENTRIES = {
    "logit_scale": Measure(
        title="Effective scale of the logits",
        formula="mean over rows of ‖l‖ = √(Σ_c l_c²), l the logits divided by the temperature",
        source="Truong 2026, arXiv 2606.18465",
        cost=FORWARD,
        null="untrained networks: √classes where logits begin with a variance of 1, less where with less",
        undefined=NOT_NUMBERS,
        columns={"logit_scale": "mean over all rows"},
        compute=_columns,
        needs=frozenset({"logits"}),
    ),
}
