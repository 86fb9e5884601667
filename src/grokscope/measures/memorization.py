"""How far a run answers what it was trained on better than what it was not."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from grokscope.activations import InputEdit, Subject
from grokscope.shapes import Float

__all__ = ["Memorization", "memorization"]


@dataclass(frozen=True)
class Memorization:
    """Accuracies and losses of each run; NaN where logits are not numbers."""

    train_accuracy: Float[Tensor, " runs"]
    """Share of the training pairs answered by the label that the loss sees."""
    validation_accuracy: Float[Tensor, " runs"]
    """Share of all other pairs answered right."""
    train_loss: Float[Tensor, " runs"]
    """Mean cross-entropy over the training pairs, of the labels the loss sees, in nats."""
    validation_loss: Float[Tensor, " runs"]
    """Mean cross-entropy over all other pairs, of the true answers."""

    @property
    def generalization_gap(self) -> Float[Tensor, " runs"]:
        """Train accuracy − validation accuracy, gap(t). Paper: §4, memorisation trajectory."""
        return self.train_accuracy - self.validation_accuracy


def memorization(subject: Subject, edits: Mapping[str, InputEdit] | None = None) -> Memorization:
    """Accuracy and loss on the pairs trained on and on all others, with any sites edited.

    The paper evaluates both at every checkpoint, on the split rebuilt from its seed (§4). Log-probabilities are taken
    in float64 whatever the logits are: in float32 a loss below 1e-7 is rounded to 0. `snapshot` reads the same.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> run = RunSpec(task="add_mod7")
    >>> drawn = initial_state(Cohort([run])).weights
    >>> bool(memorization(subject_of([run], drawn)).train_accuracy < 1)
    True
    """
    labels = torch.where(subject.is_train, subject.labels, subject.answers)
    totals = torch.zeros(6, len(subject), dtype=torch.float64, device=subject.device)
    for rows, values in subject.parts(["logits"], edits):
        masks = (subject.is_train[:, rows], ~subject.is_train[:, rows])
        totals += _scores(values["logits"], labels[:, rows], *masks)
    train, validation = totals[:3], totals[3:]
    return Memorization(
        train[0] / train[2], validation[0] / validation[2], train[1] / train[2], validation[1] / validation[2]
    )


def _scores(logits: Tensor, labels: Tensor, train: Tensor, validation: Tensor) -> Float[Tensor, "6 runs"]:
    """(right, loss, count) over the training pairs, then over the others."""
    wide = logits.double()
    loss = wide.logsumexp(dim=-1) - wide.gather(-1, labels[..., None])[..., 0]
    # Logits that are not numbers have no largest one: neither right nor wrong.
    right = (logits.argmax(dim=-1) == labels).double().where(~loss.isnan(), torch.nan)
    values = (right, loss, torch.ones_like(loss))
    return torch.stack([value.where(mask, 0).sum(dim=1) for mask in (train, validation) for value in values])
