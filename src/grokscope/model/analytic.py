"""A quadratic network that solves modular addition exactly, with weights that are written down and not trained.

Gromov, "Grokking modular arithmetic", 2023 (arXiv:2301.02679): a hidden layer of squares, each neuron with a cosine of
one frequency for a and one for b, and a cosine of the same frequency for every class. There phases are drawn, and what
is unwanted cancels on average over many neurons; here they are equally spaced, and it cancels exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi

import torch
from torch import Tensor

from grokscope.errors import InputError, require
from grokscope.model.layout import layout_of, padded_sizes
from grokscope.shapes import Float, Int
from grokscope.specs import Architecture
from grokscope.tasks import Task

__all__ = ["FEWEST_NEURONS", "AnalyticNetwork", "analytic_network"]

FEWEST_NEURONS = 6  # of a frequency: with fewer, no equally spaced phases cancel all waves of `_UNWANTED`
# What must cancel, as (i, j) of e^{i(iφ + jψ)}: products of the five waves of h with the class's own, and with 1.
_UNWANTED = ((1, 1), (1, -1), (3, 1), (1, 3), (2, 0), (0, 2), (2, 2))


@dataclass(frozen=True, eq=False)
class AnalyticNetwork:
    """A network that is known exactly, and what there is to know of each neuron."""

    architecture: Architecture
    """One hidden layer of squares, without biases."""
    weights: Float[Tensor, "1 parameters"]
    """One run's flat parameters in float64, as `subject_of` and checkpoints take them."""
    frequencies: Int[Tensor, " neurons"]
    """k of each neuron."""
    phases: Float[Tensor, "2 neurons"]
    """φ, with a, and ψ, with b; the class has φ + ψ."""


def analytic_network(task: Task, neurons: int | Sequence[int] = FEWEST_NEURONS) -> AnalyticNetwork:
    """The quadratic network on addition modulo an odd n with `neurons` of each frequency k = 1 … K, K = (n − 1)/2.

    With θ = 2πk/n, neuron j of the M = M_k neurons of frequency k and N neurons in all::

        h_j = (cos(θa + φ_j) + cos(θb + ψ_j))²
            = 1 + cos(θ(a + b) + φ_j + ψ_j) + cos(θ(a − b) + φ_j − ψ_j) + ½cos(2θa + 2φ_j) + ½cos(2θb + 2ψ_j),
        f_c = Σ_j h_j (4/(nM) cos(θc + φ_j + ψ_j) + 1/(nN)).

    The separator's row is 0. Phases are φ_j = 2πj/M and ψ_j = 2πvj/M with the least v for which no e^{i(xφ + yψ)} of
    `_UNWANTED` is constant over j: then all of them sum to 0 over the M neurons. There is such a v for every M ≥ 6. Of
    the products with the class's cosine ½cos(θ(a + b − c)) is left, and of h itself the 1::

        f_c = 1/n + (2/n) Σ_{k : M_k > 0} cos 2πk(a + b − c)/n.

    What follows is exact; L of the K frequencies have neurons.

    - *Loss*: δ(c, a + b) is the same sum over all K frequencies, and each has mean square 2/n² over the classes, so the
      mean squared error is 2(K − L)/n²: 0, its minimum, where no frequency is left out. Accuracy is 1 unless these
      frequencies and n have a common divisor, which a prime n has not: then several classes tie.
    - *Means*: over the n pairs with a + b = s all waves of h_j but the first sum to 0, which leaves
      A_j(s) = 1 + cos(θs + φ_j + ψ_j): one frequency, hence rank 1, and the formula that FourierKAN finds.
    - *FSD*: par(k) = M_k/N, so FSD = (max_k M_k/N − 1/K)/(1 − 1/K): 0 where all M_k are equal, 1 where one has all.
    - *Answer share*: the variance ½ of A_j over ½ + ½ + ⅛ + ⅛ of h_j, 2/5.
    - *Restricted and excluded losses*: with r of the L frequencies removed, from the outputs or from the neurons, the
      loss is 2(K − L + r)/n²; where the constant goes with them, 1/n² more.
    - *Norms*: ‖W_in‖² = nN and ‖W_U‖² = Σ_k 8/(n M_k) + 1/(nN).

    >>> from grokscope.activations import subject_of
    >>> from grokscope.measures import Question, measure
    >>> from grokscope.specs import RunSpec, Training
    >>> from grokscope.tasks import named_task
    >>> network = analytic_network(named_task("add_mod7"), neurons=[6, 6, 12])
    >>> run = RunSpec("add_mod7", architecture=network.architecture, training=Training(loss="mse"))
    >>> (row,) = measure(Question(subject_of([run], network.weights)), ["memorization", "fsd", "rank"])
    >>> {name: round(row[name], 9) for name in ("validation_accuracy", "validation_loss", "fsd", "rank_one_share")}
    {'validation_accuracy': 1.0, 'validation_loss': 0.0, 'fsd': 0.25, 'rank_one_share': 1.0}
    """
    n, counts = _modulus(task), _neuron_counts(task, neurons)
    parts = [(k, place, count) for k, count in enumerate(counts, start=1) for place in range(count)]
    frequency, place, count = torch.tensor(parts).T
    second = torch.tensor([_second_phase(many) for _, _, many in parts])
    # Reduced as whole numbers first: cos of a large angle loses digits.
    phases = 2 * pi * torch.stack([place, second * place % count]).double() / count
    turns = 2 * pi * (torch.arange(n)[:, None] * frequency % n).double() / n
    architecture = Architecture(kind="mlp", layers=1, mlp_width=len(parts), biases=False, activation="square")
    layout = layout_of(architecture, padded_sizes(task))
    flat = torch.zeros(1, layout.size, dtype=torch.float64)
    weights = layout.views(flat)
    for position, phase in enumerate(phases):
        weights["layers.0.W_in"][0, position, :n] = (turns + phase).cos()
    heights = 4 / (n * count.double())
    waves = heights * (turns + phases.sum(dim=0)).cos() + 1 / (n * len(parts))
    weights["unembed.W_U"][0, :, :n] = waves.T
    return AnalyticNetwork(architecture, flat, frequency, phases)


def _modulus(task: Task) -> int:
    """N of addition modulo an odd n."""
    if task.pairs is None or task.sums is None or (task.sums != task.answers).any() or task.symbols % 2 == 0:
        raise InputError(f"the analytic network adds modulo an odd number, as add_mod97 does, got {task.name}")
    return task.symbols


def _neuron_counts(task: Task, neurons: int | Sequence[int]) -> list[int]:
    """M_k of every frequency."""
    frequencies = task.symbols // 2
    counts = [neurons] * frequencies if isinstance(neurons, int) else list(neurons)
    problem = f"{task.name} has {frequencies} frequencies, and neurons must be one number for each, or one for all"
    require(len(counts) == frequencies, problem, len(counts))
    for count in counts:
        require(count == 0 or count >= FEWEST_NEURONS, f"a frequency has 0 or at least {FEWEST_NEURONS} neurons", count)
    require(any(counts), "at least one frequency must have neurons", counts)
    return counts


def _second_phase(count: int) -> int:
    """The least v with which ψ_j = v φ_j leaves no unwanted wave constant over the neurons.

    >>> [_second_phase(count) for count in (6, 7, 8, 9, 100)]
    [4, 3, 2, 2, 2]
    """
    return next(v for v in range(count) if all((x + y * v) % count for x, y in _UNWANTED))
