"""How far two gradient steps fail to commute: the commutator defect."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from grokscope.activations import RunStack
from grokscope.measures.loss_gradients import LossGradients, drawn_training_rows
from grokscope.measures.question import NOT_NUMBERS, Columns, Measure, Question
from grokscope.shapes import Float

__all__ = ["ENTRIES", "Commutator", "commutator", "commutator_defect"]

PAIRS = 5  # of batches, of which the median is taken; 9 in the source
STEP = 1e-3  # η, as in the source
ROWS = 128  # in a batch, or half of the training rows where there are fewer; 512 in the source
Gradient = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Commutator:
    """Of two batches, or of several pairs of them; NaN where a gradient is zero or not a number."""

    defect: Float[Tensor, "*pairs runs"]
    """‖θ_AB − θ_BA‖ / (‖η g_A‖ ‖η g_B‖)."""
    gradient_cosine: Float[Tensor, "*pairs runs"]
    """cos(g_A, g_B)."""


def commutator(
    parameters: Float[Tensor, "runs parameters"], first: Gradient, second: Gradient, step: float = STEP
) -> Commutator:
    """Commutator defect of two plain gradient steps of size η, from the gradients g_A and g_B of two batches' losses.

    With θ_AB = θ_A − η g_B(θ_A), θ_A = θ − η g_A(θ), and θ_BA alike,

        θ_AB − θ_BA = η [g_A(θ_B) − g_A(θ)] − η [g_B(θ_A) − g_B(θ)] = η² (H_B g_A − H_A g_B) + O(η³),

    and D = ‖θ_AB − θ_BA‖ / (‖η g_A‖ ‖η g_B‖), which no longer depends on η where it is small. Of quadratic losses the
    O(η³) is zero. The first form is computed: differences of gradients keep digits that differences of θ would lose.

    >>> theta = torch.tensor([[1.0, 1.0]])
    >>> narrow, wide = torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([[1.0, 1.0], [1.0, 1.0]])
    >>> found = commutator(theta, lambda w: w @ narrow, lambda w: w @ wide)  # H_B g_A − H_A g_B = (−2, 2)
    >>> found.defect, found.gradient_cosine
    (tensor([0.5000]), tensor([0.7071]))
    """
    at_first, at_second = first(parameters), second(parameters)
    after_first, after_second = parameters - step * at_first, parameters - step * at_second
    bracket = (first(after_second) - at_first) - (second(after_first) - at_second)
    lengths = at_first.norm(dim=-1) * at_second.norm(dim=-1)
    cosine = (at_first * at_second).sum(dim=-1) / lengths
    return Commutator(bracket.norm(dim=-1) / (step * lengths), cosine)


def commutator_defect(
    subject: RunStack, seed: int = 0, pairs: int = PAIRS, rows: int = ROWS, step: float = STEP
) -> Commutator:
    """The commutator of pairs of disjoint batches of each run's training rows, by the loss that it was trained with.

    Labels are those that the loss sees; there is no weight decay. Computed in float64 whatever the weights are.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import Architecture, RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> run = RunSpec("add_mod5", architecture=small)
    >>> commutator_defect(subject_of([run], initial_state(Cohort([run])).weights), pairs=2).defect.shape
    torch.Size([2, 1])
    """
    gradients = LossGradients(subject)
    parameters, found = gradients.parameters, []
    for pair in range(pairs):
        a, b = drawn_training_rows(subject, seed, pair, rows)
        found.append(commutator(parameters, partial(gradients, batch=a), partial(gradients, batch=b), step))
    return Commutator(torch.stack([one.defect for one in found]), torch.stack([one.gradient_cosine for one in found]))


def _columns(question: Question) -> Columns:
    found = commutator_defect(question.stack, question.seed)
    return {
        "commutator_defect": found.defect.median(dim=0).values,
        "gradient_cosine": found.gradient_cosine.median(dim=0).values,
    }


ENTRIES = {
    "commutator": Measure(
        title="Commutator defect: how far gradient steps on two batches fail to commute",
        formula="D = ‖θ_AB − θ_BA‖ / (‖η g_A‖ ‖η g_B‖), η = 0.001: median over 5 pairs of batches of 128 rows",
        source="Xu 2026 (arXiv:2602.16746), there of 9 pairs of batches of 512 rows, which may overlap",
        cost="20 gradients of batches of 128 rows, in float64",
        null="0 where H_B g_A = H_A g_B; the source sees it grow, less, in runs that never grok, too",
        undefined=NOT_NUMBERS + ", a gradient is zero, or there are fewer than two training rows",
        columns={
            "commutator_defect": "D, the median over pairs of batches",
            "gradient_cosine": "cosine of the two batches' gradients, the median over pairs",
        },
        compute=_columns,
        needs=frozenset({"weights", "split"}),
    ),
}
