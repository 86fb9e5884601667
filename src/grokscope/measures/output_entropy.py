"""How undecided the predicted distribution over classes is."""

import torch
from torch import Tensor

from grokscope.activations import Subject
from grokscope.measures.question import FORWARD, NOT_NUMBERS, Columns, Measure, Question
from grokscope.shapes import Float

__all__ = ["ENTRIES", "output_entropy"]


def output_entropy(logits: Float[Tensor, "*runs classes"]) -> Float[Tensor, "*runs"]:
    """H = −Σ_c p_c ln p_c of p = softmax(logits), in nats and float64; in [0, ln(classes)].

    >>> output_entropy(torch.tensor([[0.0, 0.0], [100.0, 0.0]]))
    tensor([6.9315e-01, 3.7201e-42], dtype=torch.float64)
    """
    return torch.special.entr(logits.double().softmax(dim=-1)).sum(dim=-1)


def _row_entropies(subject: Subject) -> Float[Tensor, "runs inputs"]:
    return torch.cat([output_entropy(part) for _, part in subject.logit_parts()], dim=1)


def _columns(question: Question) -> Columns:
    """Of all rows, and of training and validation rows where these are known."""
    subject = question.subject
    entropies = _row_entropies(subject)
    masks = {"output_entropy": torch.ones_like(subject.is_train)}
    if question.has("split"):
        masks |= {"output_entropy_train": subject.is_train, "output_entropy_validation": subject.is_validation}
    return {name: torch.where(mask, entropies, 0).sum(dim=-1) / mask.sum(dim=-1) for name, mask in masks.items()}


ENTRIES = {
    "output_entropy": Measure(
        title="Entropy of the predicted distribution over classes",
        formula="mean over rows of H = −Σ_c p_c ln p_c, p = softmax(logits), in nats",
        source="standard; Pereyra et al. 2017 penalise it",
        cost=FORWARD,
        null="ln(classes) where nothing is preferred; untrained networks are near it",
        undefined=NOT_NUMBERS + "; where the loss is the squared error, outputs are no logits, and p no forecast",
        columns={
            "output_entropy": "mean over all rows",
            "output_entropy_{train,validation}": "over training rows, and over validation rows",
        },
        compute=_columns,
        headline="output_entropy_validation",
        needs=frozenset({"logits", "classes"}),
    ),
}
