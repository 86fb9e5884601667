"""What a plan will cost, before it is run: steps, seconds, memory, bytes on the disk.

Speeds are those that `benchmarks/results` holds for the paper's model at batch 512, scaled by parameters, rows per
step and positions: a first guess for other models and machines, and reported as one.
"""

from dataclasses import dataclass, fields

from grokscope.model import layout_of, matrix_shapes, sizes_of
from grokscope.specs import Plan, RunSpec
from grokscope.tasks import named_task
from grokscope.training import cohort_key

__all__ = ["Cost", "cost_of"]

# Run-steps per second with measuring, of one core (two gave 65.0) and of an H200 with 512 runs: benchmarks/results.
SPEED_OF_A_CORE = 65.0 / 2
SPEED_OF_A_GPU = {"float32": 13159.3, "tf32": 27028.3, "bf16": 39356.5}
PAPER = RunSpec()
BESIDE_SEEDS = [field.name for field in fields(RunSpec) if field.name != "seeds"]
LOG_ROW = 290  # bytes of one evaluation in the log
RUN_FILES = 1500  # bytes of spec, format, outcome and manifest, without the manifest's entries
ENTRY = 140  # bytes of a checkpoint in the manifest


@dataclass(frozen=True)
class Cost:
    """The sum over a plan's runs."""

    steps: int
    """Optimiser steps; a fork's own only."""
    device_seconds: float
    """Of one core, or of one accelerator, if it is as fast as the measured one."""
    bytes_stored: int
    """On the disk, at the end."""


def cost_of(plan: Plan) -> Cost:
    """What a whole plan costs; runs that differ in their seeds alone are counted once and multiplied."""
    kinds: dict[tuple[object, ...], list[RunSpec]] = {}
    for spec in plan.runs:
        kinds.setdefault(tuple(getattr(spec, name) for name in BESIDE_SEEDS), []).append(spec)
    each = [(len(members), _cost_of_one(members[0], plan)) for members in kinds.values()]
    return Cost(
        sum(count * one.steps for count, one in each),
        sum(count * one.device_seconds for count, one in each),
        sum(count * one.bytes_stored for count, one in each),
    )


def _cost_of_one(spec: RunSpec, plan: Plan) -> Cost:
    steps = spec.training.steps - (spec.fork.step if spec.fork else 0)
    speed = SPEED_OF_A_CORE if plan.device == "cpu" else SPEED_OF_A_GPU.get(spec.precision, SPEED_OF_A_GPU["float32"])
    # How much more a step costs than one of the paper's model.
    weight = _work(spec) / _work(PAPER)
    return Cost(steps, steps * weight / speed, _bytes_of(spec, plan.keep))


def _work(spec: RunSpec) -> int:
    """What a step multiplies: each parameter once for each row of the batch, and in a transformer for each position."""
    positions = named_task(spec.task).length if spec.architecture.kind == "transformer" else 1
    return _parameters(spec) * cohort_key(spec).batch * positions + _orthogonalization(spec)


def _orthogonalization(spec: RunSpec) -> int:
    """What Muon's five steps multiply, in the same unit: of a matrix 5 (2r²c + r³); a pass back costs two forward."""
    if spec.training.optimizer != "muon":
        return 0
    own = matrix_shapes(spec.architecture, sizes_of(named_task(spec.task)))
    return sum(5 * (2 * r * r * c + r**3) for r, c in map(sorted, own)) // 3


def _parameters(spec: RunSpec) -> int:
    return layout_of(spec.architecture, sizes_of(named_task(spec.task))).size


def _bytes_of(spec: RunSpec, keep: str) -> int:
    """Checkpoints and logs of one run; full states are three times as large as weights."""
    first = spec.fork.step if spec.fork else 0
    weights = _parameters(spec) * (8 if spec.precision == "float64" else 4)
    points = [step for step in spec.checkpoints.steps(spec.training.steps) if step >= first]
    ends = [] if keep == "forks" else [spec.training.steps]
    whole = {step for step in (*spec.checkpoints.at, *ends) if step >= first}
    counts = {"weights": len(points) + 3 * len(whole), "state": 3 * len(points), "forks": 3 * len(whole), "none": 0}
    evaluations = sum(1 for step in spec.evaluation_steps if step >= first)
    return counts[keep] * weights + evaluations * LOG_ROW + RUN_FILES + len(points) * ENTRY * (keep != "none")
