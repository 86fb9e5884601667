"""What every measure reads: one interface, answered by a stack of runs, a checkpoint or somebody else's model."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from grokscope.activations.conditioned import ConditionedMeans, Conditioning
from grokscope.errors import require
from grokscope.model import pair_scores
from grokscope.shapes import Bool, Float, Int
from grokscope.tasks import Task

__all__ = ["NEEDS", "Edits", "InputEdit", "Need", "Subject"]

InputEdit = Callable[[Tensor, slice], Tensor]
"""What replaces a site's value [runs, positions, inputs, …], given also which rows of `task.inputs` these are."""
Edits = Mapping[str, InputEdit]
Need = Literal["basis", "means", "activations", "logits", "edits", "weights", "split", "time"]
NEEDS: dict[Need, str] = {
    "basis": "a basis of modes",
    "means": "conditioned means of a site",
    "activations": "activations of all pairs",
    "logits": "logits of all pairs",
    "edits": "edited passes",
    "weights": "weights by name",
    "split": "the training pairs",
    "time": "seconds at each evaluation",
}
"""What a measure can ask of a subject, in words."""


@dataclass(frozen=True, eq=False)
class Subject(ABC):
    """Models of one task, each with the pairs it is read on. Reading never changes them."""

    task: Task
    """What all of them learn."""
    is_train: Bool[Tensor, "runs inputs"]
    """Pairs trained on, in the order of `task.inputs`; all of them where that is not known."""
    labels: Int[Tensor, "runs inputs"]
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
    def means(self, site: str, by: Conditioning = "answer") -> ConditionedMeans:
        """A[s, j] = mean{act_j(a, b) : a ∘ b = s} of a site at the read position."""

    @abstractmethod
    def read(self, site: str, edits: Edits | None = None) -> Float[Tensor, "runs inputs *rest"]:
        """A site's value at the read position for every pair, in the order of `task.inputs`."""

    @abstractmethod
    def logit_parts(self, edits: Edits | None = None) -> Iterator[tuple[slice, Float[Tensor, "runs rows classes"]]]:
        """Logits of some rows of `task.inputs` after others, padded classes cut off."""

    @property
    def device(self) -> torch.device:
        """Where it is computed."""
        return self.is_train.device

    @property
    def answers(self) -> Int[Tensor, " inputs"]:
        """The true answer of every pair."""
        return torch.tensor(self.task.answers, device=self.device)

    @property
    def scored_labels(self) -> Int[Tensor, "runs inputs"]:
        """What each pair is scored by: training pairs by the labels the loss sees, all others by the true answers."""
        return torch.where(self.is_train, self.labels, self.answers)

    def logits(self, edits: Edits | None = None) -> Float[Tensor, "runs inputs classes"]:
        """Logits of every pair."""
        return torch.cat([part for _, part in self.logit_parts(edits)], dim=1)

    def graded(self, edits: Edits | None = None) -> Float[Tensor, "2 runs inputs"]:
        """Whether each pair is answered right, and its loss in float64; logits need not be in memory all at once."""
        labels, parts = self.scored_labels, self.logit_parts(edits)
        return torch.cat([torch.stack(pair_scores(part.double(), labels[:, rows])) for rows, part in parts], dim=-1)

    def require_numbers(self, what: str, is_number: Bool[Tensor, "*any"]) -> None:
        """Reject a single run whose values are not numbers; in a stack they are NaN and leave the others alone."""
        require(
            len(self) != 1 or bool(is_number.all()),
            f"{self.names[0]} has {what} that are not numbers: nothing can be read there",
        )
