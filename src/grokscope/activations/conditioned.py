"""The mean activation of every neuron over the rows with one answer, with one sum a + b, or with one input."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from grokscope.errors import InputError, require, shown
from grokscope.shapes import Bool, Float, Int
from grokscope.tasks import Basis, Condition, Task
from grokscope.tasks.modes import fourier_modes

__all__ = [
    "ConditionedMeans",
    "Conditioning",
    "RunningMeans",
    "answer_sums",
    "condition_of",
    "conditioning_basis",
    "means_of",
]

Conditioning = Literal["", "answer", "sum", "input"]
"""`answer`: the rows with each answer; `sum`: with each (a + b) mod n, the paper's reading of multiplication; `input`:
with each setting of the bits; empty: what the task's own basis is read on, of a pair table the answer."""


@dataclass(frozen=True)
class ConditionedMeans:
    """A[s, j] of a site, and how much of the site it is."""

    means: Float[Tensor, "*runs answers neurons"]
    """A[s, j], in float64."""
    counts: Int[Tensor, " answers"]
    """Rows with each answer; an answer without any has mean 0."""
    answer_share: Float[Tensor, "*runs"]
    """Variance of A over variance of the activation, all neurons together: how small the thing is that is read."""
    mean_square: Float[Tensor, "*runs neurons"]
    """Mean of x² of each neuron over all rows: the size beside which a variation of A may be rounding."""
    finite: Bool[Tensor, "*runs"]
    """Whether every activation was a number."""


def condition_of(task: Task, by: Conditioning = "") -> Condition:
    """What activations are averaged over: of every row its answer, its sum a + b, or its input.

    >>> from grokscope.tasks import named_task
    >>> condition_of(named_task("mult_mod5"), by="sum").values[:6].tolist()  # of (0, 0) to (0, 4), and (1, 0)
    [0, 1, 2, 3, 4, 1]
    """
    return task.condition(by)


def conditioning_basis(task: Task, by: Conditioning = "", name: str = "") -> Basis:
    """The basis in which conditioned means are read: the task's faithful one by default, of sums that of Z_n.

    >>> from grokscope.tasks import named_task
    >>> conditioning_basis(named_task("mult_mod5")).name, conditioning_basis(named_task("mult_mod5"), by="sum").name
    ('multiplicative', 'additive')
    """
    if by == "sum":
        condition_of(task, by)
        require(name in ("", "additive"), "sums are read in the additive basis only", name)
        return Basis("additive", np.arange(task.symbols), fourier_modes(task.symbols), "sum")
    basis = task.basis(name)
    if by not in ("", basis.condition):
        raise InputError(f"{task.name} is read by {basis.condition} in its {basis.name} basis, got {shown(by)}")
    return basis


def answer_sums(
    activation: Float[Tensor, "runs inputs neurons"], answers: Int[Tensor, "runs inputs"], size: int
) -> Float[Tensor, "runs answers neurons"]:
    """Σ of each neuron over the pairs with each answer; Eq. 2 divides it by their number.

    Pairs with a negative answer are left out (padding).

    >>> answer_sums(torch.tensor([[[1.0], [2.0], [4.0]]]), torch.tensor([[0, 1, 0]]), size=2)
    tensor([[[5.],
             [2.]]])
    """
    if activation.device.type != "cpu":  # one product with 0 and 1: no atomics, always the same order
        chosen = torch.arange(size, device=answers.device)[:, None] == answers[:, None]
        return torch.bmm(chosen.to(activation.dtype), activation)
    runs, _, neurons = activation.shape
    # One spare row for what is left out.
    place = torch.where(answers >= 0, answers, size) + torch.arange(runs)[:, None] * (size + 1)
    sums = activation.new_zeros(runs * (size + 1), neurons)
    sums.index_add_(0, place.flatten(), activation.reshape(-1, neurons))
    return sums.view(runs, size + 1, neurons)[:, :size]


def means_of(
    activation: Float[Tensor, "runs inputs *shape"], condition: Int[Tensor, " inputs"], size: int
) -> ConditionedMeans:
    """Conditioned means of activations that are already at hand, [runs, inputs, …] with the rest taken as neurons.

    >>> means_of(torch.tensor([[[1.0], [2.0], [4.0]]]), torch.tensor([0, 1, 0]), size=2).means
    tensor([[[2.5000],
             [2.0000]]], dtype=torch.float64)
    """
    total = RunningMeans(size, condition)
    total.add(activation, slice(0, activation.shape[1]))
    return total.means()


class RunningMeans:
    """Σ x for each condition and Σ x, Σ x² overall, chunk by chunk: no more than a chunk is in memory."""

    def __init__(self, size: int, condition: Int[Tensor, " inputs"]) -> None:
        self.size, self.condition = size, condition
        self.sums: Tensor | None = None

    def add(self, value: Tensor, rows: slice) -> None:
        """Add activations [runs, inputs, …] of these rows."""
        home = value.cpu() if value.device.type == "mps" else value  # mps has no float64
        flat = home.flatten(2).double()
        answers = self.condition[rows].to(flat.device).expand(len(flat), -1)
        if self.sums is None:
            # Variances are taken around one activation of each neuron: around 0 they would cancel.
            self.origin = flat[:, :1]
            self.sums = flat.new_zeros(len(flat), self.size, flat.shape[-1])
            self.squares = flat.new_zeros(len(flat), flat.shape[-1])
        centred = flat - self.origin
        self.sums += answer_sums(centred, answers, self.size)
        self.squares += centred.square().sum(dim=1)

    def means(self) -> ConditionedMeans:
        """The means of everything added."""
        assert self.sums is not None
        counts = torch.bincount(self.condition.to(self.sums.device), minlength=self.size)
        inputs = len(self.condition)
        away = self.sums / counts.clamp(min=1)[:, None]
        mean = self.sums.sum(dim=1, keepdim=True) / inputs
        within = self.squares / inputs - mean[:, 0].square()
        between = ((away - mean).square() * counts[:, None]).sum(dim=1) / inputs
        share = between.sum(dim=-1) / within.sum(dim=-1)  # NaN where nothing varies at all
        finite = self.squares.isfinite().all(dim=-1)
        present = (counts > 0)[:, None]
        means = torch.where(present, away + self.origin, 0)
        mean_square = within + (mean + self.origin)[:, 0].square()
        return ConditionedMeans(means, counts, share, mean_square, finite)
