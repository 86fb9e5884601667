"""How well pairs are answered: losses and accuracies on all, training and validation pairs, and their gap."""

from dataclasses import dataclass

import torch
from torch import Tensor

from grokscope.activations import Edits, Subject
from grokscope.measures.question import FORWARD, NOT_NUMBERS, Columns, Measure, Question
from grokscope.shapes import Float

__all__ = ["ENTRIES", "Scores", "averaged_scores", "scores", "scores_of"]


@dataclass(frozen=True)
class Scores:
    """Scores of each run: training rows by the labels the loss sees, all others by the true answers.

    NaN where logits are not numbers, and where there are no such rows.
    """

    loss: Float[Tensor, "*runs"]
    """Mean loss over all rows: cross-entropy in nats, or the squared error."""
    train_loss: Float[Tensor, "*runs"]
    validation_loss: Float[Tensor, "*runs"]
    accuracy: Float[Tensor, "*runs"]
    """Share of all rows answered right; where logits tie, the answer is the first of these classes."""
    train_accuracy: Float[Tensor, "*runs"]
    validation_accuracy: Float[Tensor, "*runs"]

    @property
    def generalization_gap(self) -> Float[Tensor, "*runs"]:
        """Train accuracy − validation accuracy, gap(t). Paper: §4, memorisation trajectory."""
        return self.train_accuracy - self.validation_accuracy


def scores(subject: Subject, edits: Edits | None = None) -> Scores:
    """The scores of every run, with sites edited or not.

    The paper evaluates them at every checkpoint, on the split rebuilt from its seed (§4). Losses are taken in float64
    whatever the logits are: in float32 a loss below 1e-7 is rounded to 0. `snapshot` reads the same.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> run = RunSpec(task="add_mod7")
    >>> weights = initial_state(Cohort([run])).weights
    >>> bool(scores(subject_of([run], weights)).train_accuracy < 1)
    True
    """
    return averaged_scores(subject.graded(edits), subject)


def scores_of(subject: Subject, logits: Float[Tensor, "runs inputs classes"]) -> Scores:
    """The scores of logits that are already at hand."""
    return averaged_scores(subject.score(logits, subject.scored_labels), subject)


def averaged_scores(graded: Float[Tensor, "2 runs inputs"], subject: Subject) -> Scores:
    """Means of what each row has, right (1 or 0) and loss, over all, training and validation rows."""
    masks = (torch.ones_like(subject.is_train), subject.is_train, subject.is_validation)
    means = [torch.where(mask, graded, 0).sum(dim=-1) / mask.sum(dim=-1) for mask in masks]
    return Scores(*(mean[1] for mean in means), *(mean[0] for mean in means))


def _columns(question: Question) -> Columns:
    found = scores(question.subject)
    names = ("train_accuracy", "validation_accuracy", "train_loss", "validation_loss")
    columns = {name: getattr(found, name) for name in names} | {"gap": found.generalization_gap}
    return {**columns, **_held_out_columns(question.subject)}


def _held_out_columns(subject: Subject) -> Columns:
    """Accuracy and loss of each group of rows that is held out."""
    groups = {group.name: group.rows for group in subject.task.row_groups if group.rule == "held_out"}
    if not groups:
        return {}
    graded = subject.graded()
    means = {name: graded[..., torch.tensor(rows, device=subject.device)].mean(dim=-1) for name, rows in groups.items()}
    return {f"{name}_{what}": mean[i] for i, what in enumerate(("accuracy", "loss")) for name, mean in means.items()}


ENTRIES = {
    "memorization": Measure(
        title="Accuracies, losses and the generalisation gap",
        formula="gap(t) = acc_train(t) − acc_val(t)",
        source="the paper, §4",
        cost=FORWARD,
        null="accuracy 1/classes, loss ln(classes), gap 0",
        undefined=NOT_NUMBERS,
        columns={
            "{train,validation}_{accuracy,loss}": "on the training pairs by their labels, on all others by the answers",
            "gap": "train accuracy minus validation accuracy",
            "…_{accuracy,loss}": "of each group of rows that is held out, under its name",
        },
        compute=_columns,
        headline="validation_accuracy",
        needs=frozenset({"split"}),
    ),
}
