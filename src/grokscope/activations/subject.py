"""What every measure reads: one interface, answered by a stack of runs, a checkpoint or somebody else's model."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from grokscope.activations.conditioned import ConditionedMeans, Conditioning
from grokscope.errors import require
from grokscope.model import Loss, row_scores
from grokscope.shapes import Bool, Float, Int
from grokscope.tasks import Task

__all__ = ["NEEDS", "OF_TASKS", "Edits", "InputEdit", "Need", "Subject", "lacking_needs"]

InputEdit = Callable[[Tensor, slice], Tensor]
"""What replaces a site's value [runs, positions, inputs, …], given also which rows of the task these are."""
Edits = Mapping[str, InputEdit]
Need = Literal[
    "basis",
    "answers",
    "pairs",
    "classes",
    "means",
    "activations",
    "logits",
    "edits",
    "weights",
    "split",
    "time",
    "trajectory",
]
NEEDS: dict[Need, str] = {
    "basis": "a basis to read activations in",
    "answers": "a basis of its answers",
    "pairs": "a table of pairs",
    "classes": "classes as answers",
    "means": "conditioned means of a site",
    "activations": "activations of all rows",
    "logits": "logits of all rows",
    "edits": "edited passes",
    "weights": "weights by name",
    "split": "the training rows",
    "time": "seconds at each evaluation",
    "trajectory": "a stored run's earlier checkpoints",
}
"""What a measure can ask of a subject, in words."""
OF_TASKS: tuple[Need, ...] = ("basis", "answers", "pairs", "classes", "means")
"""What it is the task that lacks it; means are by answers, which real ones have not."""


def lacking_needs(task: Task) -> frozenset[Need]:
    """What a measure may need and this task does not have.

    >>> from grokscope.tasks import named_task
    >>> lacking_needs(named_task("add_mod7"))
    frozenset()
    """
    has: dict[Need, bool] = {
        "basis": bool(task.bases),
        "answers": bool(task.bases) and task.basis().condition != "input",
        "pairs": task.pairs is not None,
        "classes": not task.is_real,
        "means": bool(task.bases) or not task.is_real,
    }
    return frozenset(need for need, holds in has.items() if not holds)


@dataclass(frozen=True, eq=False)
class Subject(ABC):
    """Models of one task, each with the rows it is read on. Reading never changes them."""

    task: Task
    """What all of them learn."""
    is_train: Bool[Tensor, "runs inputs"]
    """Rows trained on, in the order of the task; all of them where that is not known."""
    labels: Int[Tensor, "runs inputs"] | Float[Tensor, "runs inputs outputs"]
    """What the loss sees: the answers, or shuffled ones."""
    names: tuple[str, ...]
    """What to call each in a sentence."""

    def __len__(self) -> int:
        return len(self.names)

    @property
    @abstractmethod
    def offers(self) -> frozenset[Need]:
        """What it can be asked for."""

    @property
    @abstractmethod
    def hidden_sites(self) -> tuple[str, str]:
        """The first hidden activations, where FSD is read, and the last, of which key modes are taken."""

    @abstractmethod
    def means(self, site: str, by: Conditioning = "") -> ConditionedMeans:
        """A[s, j] = mean{act_j(a, b) : a ∘ b = s} of a site at the read position."""

    @abstractmethod
    def read(self, site: str, edits: Edits | None = None) -> Float[Tensor, "runs inputs *rest"]:
        """A site's value at the read position for every row, in the order of the task."""

    def read_parts(self, site: str) -> Iterator[tuple[slice, Float[Tensor, "runs rows *rest"]]]:
        """The same, some rows of the task after others: a site of all rows need not be in memory at once."""
        yield slice(0, self.task.rows), self.read(site)

    @abstractmethod
    def logit_parts(self, edits: Edits | None = None) -> Iterator[tuple[slice, Float[Tensor, "runs rows classes"]]]:
        """Logits of some rows of the task after others, padded classes cut off."""

    @property
    def device(self) -> torch.device:
        """Where it is computed."""
        return self.is_train.device

    @property
    def loss(self) -> Loss:
        """What it was trained to minimise."""
        return "cross_entropy"

    @property
    def is_validation(self) -> Bool[Tensor, "runs inputs"]:
        """Rows that are neither trained on nor held out."""
        return ~self.is_train & ~torch.tensor(self.task.is_held_out, device=self.device)

    @property
    def answers(self) -> Int[Tensor, " inputs"] | Float[Tensor, "inputs outputs"]:
        """The true answer of every row, real ones in float64."""
        return torch.tensor(self.task.answers, device=self.device)

    @property
    def scored_labels(self) -> Int[Tensor, "runs inputs"] | Float[Tensor, "runs inputs outputs"]:
        """What each row is scored by: training rows by the labels the loss sees, all others by the true answers."""
        is_train = self.is_train[..., None] if self.task.is_real else self.is_train
        return torch.where(is_train, self.labels, self.answers)

    def logits(self, edits: Edits | None = None) -> Float[Tensor, "runs inputs classes"]:
        """Logits, or real outputs, of every row."""
        return torch.cat([part for _, part in self.logit_parts(edits)], dim=1)

    def graded(self, edits: Edits | None = None) -> Float[Tensor, "2 runs inputs"]:
        """Whether each row is answered right, and its loss in float64; logits need not be in memory all at once."""
        labels, parts = self.scored_labels, self.logit_parts(edits)
        return torch.cat([self.score(part, labels[:, rows]) for rows, part in parts], dim=-1)

    def score(self, logits: Tensor, labels: Tensor) -> Float[Tensor, "2 runs rows"]:
        """Whether rows are answered right, and their losses, by logits or real outputs."""
        return torch.stack(row_scores(logits.double(), labels, self.loss, tolerance=self.task.success_error))

    def require_numbers(self, what: str, is_number: Bool[Tensor, "*any"]) -> None:
        """Reject a single run whose values are not numbers; in a stack they are NaN and leave the others alone."""
        require(
            len(self) != 1 or bool(is_number.all()),
            f"{self.names[0]} has {what} that are not numbers: nothing can be read there",
        )
