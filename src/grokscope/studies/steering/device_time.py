"""What the runs of a part take on one H200, before anything has been timed: measured speeds, scaled by operations.

The speeds are those of the paper's model with AdamW in TF32, evaluated every 100 steps (`grokscope.studies.parts`).
"""

from collections.abc import Hashable, Iterable, Sequence
from math import ceil, inf
from typing import NamedTuple

from grokscope.jobs.stacks import MOST_SLOTS, stack_key
from grokscope.model import layout_of, matrix_shapes, padded_sizes
from grokscope.specs import RunSpec
from grokscope.studies.parts import SPEEDS, stack_speed
from grokscope.tasks import named_task
from grokscope.training import cohort_key

__all__ = ["device_seconds", "evaluation_cost", "orthogonalization", "training_cost"]

PAPER = RunSpec()
PAPER_EVERY = 100  # steps between evaluations where the speeds were measured
EVALUATION = 0.09  # of that time goes to evaluations
FLOP = 2.2e9  # of a step of the paper's model (benchmarks/RESULTS.md)
ITERATIONS = 5  # of Newton and Schulz
CHANGED_GRADIENT = 0.06  # three more passes over 1.7 MB of parameters, of 90 MB that a step moves


def device_seconds(runs: Iterable[RunSpec]) -> float:
    """Seconds of one H200 for runs in stacks of at most 512, without starting and compiling.

    Runs of one shape and about one length share a stack, which ends with the longest of them.

    >>> round(device_seconds([RunSpec().with_seed(seed) for seed in range(512)]))
    284
    """
    kinds: dict[tuple[Hashable, ...], list[RunSpec]] = {}
    for run in runs:
        kinds.setdefault(_kind(run), []).append(run)
    stacks: dict[Hashable, list[_Load]] = {}
    for own in kinds.values():
        load = _Load(own[0].training.steps, training_cost(own[0]), evaluation_cost(own[0]))
        stacks.setdefault(stack_key(own[0]), []).extend([load] * len(own))
    return sum(_stack_seconds(part) for own_loads in stacks.values() for part in _split(own_loads))


def _kind(run: RunSpec) -> tuple[Hashable, ...]:
    """What runs of this study cost alike by: neither seeds nor decay matter."""
    training = run.training
    own = (training.steps, training.batch_size, training.optimizer, training.gradient)
    return (run.task, run.train_fraction, run.architecture, run.precision, run.measurements, *own)


class _Load(NamedTuple):
    """What a run adds to its stack."""

    steps: int
    training: float
    evaluation: float


def _split(loads: Sequence[_Load]) -> list[Sequence[_Load]]:
    """As few stacks as hold all, of equal size."""
    size = ceil(len(loads) / ceil(len(loads) / MOST_SLOTS))
    return [loads[start : start + size] for start in range(0, len(loads), size)]


def _stack_seconds(loads: Sequence[_Load]) -> float:
    """Every run is evaluated on as many rows as that with the most; no step is faster than its launches."""
    cost = sum(load.training for load in loads) / len(loads) + max(load.evaluation for load in loads)
    return max(load.steps for load in loads) * max(len(loads) * cost / stack_speed(len(loads)), 1 / SPEEDS[1])


def training_cost(run: RunSpec) -> float:
    """A step without evaluations, in steps of the paper's model evaluated every 100 steps.

    >>> training_cost(RunSpec())
    0.91
    """
    found = float(_forward(run) * cohort_key(run).batch / (_forward(PAPER) * cohort_key(PAPER).batch))
    found += orthogonalization(run) / FLOP + CHANGED_GRADIENT * (run.training.gradient != "plain")
    return (1 - EVALUATION) * found


def evaluation_cost(run: RunSpec) -> float:
    """A step's share of the evaluations, in the same unit: twice as much every 50 steps as every 100.

    >>> evaluation_cost(RunSpec())
    0.09
    """
    rows = _forward(run) * named_task(run.task).rows / (_forward(PAPER) * named_task(PAPER.task).rows)
    return EVALUATION * rows * PAPER_EVERY / (run.measurements.every or inf)


def orthogonalization(run: RunSpec) -> float:
    """Operations of Muon's five iterations on all matrices: of one of r × c, r ≤ c, 2 (2 r² c + r³) in each.

    >>> from dataclasses import replace
    >>> muon = replace(RunSpec(), training=replace(RunSpec().training, optimizer="muon"))
    >>> orthogonalization(RunSpec()), round(orthogonalization(muon) / FLOP, 2)
    (0.0, 0.53)
    """
    if run.training.optimizer != "muon":
        return 0.0
    own = matrix_shapes(run.architecture, padded_sizes(named_task(run.task)))
    return sum((ITERATIONS * 2.0 * (2 * r * r * c + r**3) for r, c in map(sorted, own)), 0.0)


def _parameters(run: RunSpec) -> int:
    return layout_of(run.architecture, padded_sizes(named_task(run.task))).size


def _forward(run: RunSpec) -> int:
    """What a row multiplies: each parameter once at each position."""
    return _parameters(run) * (named_task(run.task).length if run.architecture.kind == "transformer" else 1)
