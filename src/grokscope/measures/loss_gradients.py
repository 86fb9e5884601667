"""Gradients of the training loss of some rows, for every run of a stack, in float64."""

from dataclasses import dataclass

import torch
from torch import Tensor

from grokscope.activations import RunStack
from grokscope.model import Layout, forward, layout_of, padded_sizes, row_losses, sizes_of
from grokscope.randomness import bits
from grokscope.shapes import Bool, Float, Int

__all__ = ["Batch", "LossGradients", "drawn_training_rows"]


@dataclass(frozen=True)
class Batch:
    """Rows of the task for each run, and which of them count where runs have fewer."""

    rows: Int[Tensor, "runs size"]
    counts: Bool[Tensor, "runs size"]


@dataclass(frozen=True, eq=False)
class LossGradients:
    """The mean loss of a batch as a function of all parameters, side by side: what the runs were trained to minimise.

    Without weight decay and dropout. Parameters that are padding have no gradient.
    """

    subject: RunStack

    @property
    def layout(self) -> Layout:
        """Where each parameter stands."""
        return layout_of(self.subject.architecture, padded_sizes(self.subject.task))

    @property
    def parameters(self) -> Float[Tensor, "runs parameters"]:
        """The weights of every run."""
        return torch.cat([self.subject.weights[name].double().flatten(1) for name in self.layout.shapes], dim=1)

    def losses(self, parameters: Float[Tensor, "runs parameters"], batch: Batch) -> Float[Tensor, " runs"]:
        """The mean loss of each run's batch; NaN of one without rows."""
        subject, rows = self.subject, batch.rows
        classes = torch.full((len(subject),), subject.task.classes, device=subject.device)
        outputs = forward(
            self.layout.views(parameters),
            subject.architecture,
            self._inputs(rows),
            classes=classes,
            has_separator=sizes_of(subject.task).has_separator,
        )
        run = torch.arange(len(subject), device=subject.device)[:, None]
        found = row_losses(outputs, subject.labels[run, rows], subject.loss, classes)
        return torch.where(batch.counts, found, 0).sum(dim=1) / batch.counts.sum(dim=1)

    def __call__(self, parameters: Float[Tensor, "runs parameters"], batch: Batch) -> Float[Tensor, "runs parameters"]:
        """The gradient of each run's mean loss."""
        with torch.enable_grad():
            leaf = parameters.detach().requires_grad_()
            (found,) = torch.autograd.grad(self.losses(leaf, batch).sum(), leaf)
        return found

    def _inputs(self, rows: Tensor) -> Tensor:
        task = self.subject.task
        if task.vectors is None:
            tokens = torch.tensor(task.tokens, device=rows.device)
            return tokens[rows].transpose(1, 2)
        return torch.tensor(task.vectors, device=rows.device, dtype=torch.float64)[rows]


def drawn_training_rows(subject: RunStack, seed: int, draw: int, size: int) -> tuple[Batch, Batch]:
    """Two disjoint batches of each run's training rows: `size` rows each, or half of them where there are fewer.

    They are the first rows of a random order of the task's rows, drawn from (seed, draw): checkpoints of one run are
    asked about the same rows, and a run's batches do not depend on its neighbours.
    """
    words = bits(torch.tensor(seed), "measure", torch.tensor(draw), subject.task.rows).to(subject.device)
    order = words.argsort(stable=True)
    trained_first = (~subject.is_train[:, order]).to(torch.int8).argsort(dim=1, stable=True)
    rows = order[trained_first]
    own = (subject.is_train.sum(dim=1) // 2).clamp(max=size)
    longest = int(own.max())
    place = torch.arange(longest, device=subject.device)
    counts = place < own[:, None]
    second = (own[:, None] + place).clamp(max=subject.task.rows - 1)
    return Batch(rows[:, :longest], counts), Batch(rows.gather(1, second), counts)
