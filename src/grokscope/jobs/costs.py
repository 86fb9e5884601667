"""What a plan will cost, before it is run: steps, seconds, memory, bytes on the disk.

Speeds are those that `benchmarks/results` holds for the paper's model at batch 512, scaled by parameters and pairs per
step: a first guess for other models and machines, and said to be one.
"""

from dataclasses import dataclass, fields

from grokscope.model import layout_of
from grokscope.specs import Plan, RunSpec
from grokscope.tasks import named_task
from grokscope.training import cohort_key

__all__ = ["Cost", "cost_of"]

# Run-steps per second with measuring, of one core (two gave 48.7) and of an H200 with 512 runs: benchmarks/results.
SPEED_OF_A_CORE = 48.7 / 2
SPEED_OF_A_GPU = {"float32": 11228.1, "tf32": 21580.6, "bf16": 30423.8}
PAPER = RunSpec()
BESIDE_SEEDS = [field.name for field in fields(RunSpec) if field.name != "seeds"]
LOG_ROW = 290  # bytes of one look in the log
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

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.steps + other.steps,
            self.device_seconds + other.device_seconds,
            self.bytes_stored + other.bytes_stored,
        )


def cost_of(plan: Plan) -> Cost:
    """What a whole plan costs; runs that differ in their seeds alone are counted once and multiplied."""
    kinds: dict[tuple[object, ...], list[RunSpec]] = {}
    for spec in plan.runs:
        kinds.setdefault(tuple(getattr(spec, name) for name in BESIDE_SEEDS), []).append(spec)
    total = Cost(0, 0.0, 0)
    for members in kinds.values():
        one, count = _cost_of_one(members[0], plan), len(members)
        total += Cost(one.steps * count, one.device_seconds * count, one.bytes_stored * count)
    return total


def _cost_of_one(spec: RunSpec, plan: Plan) -> Cost:
    steps = spec.training.steps - (spec.fork.step if spec.fork else 0)
    speed = SPEED_OF_A_CORE if plan.device == "cpu" else SPEED_OF_A_GPU.get(spec.precision, SPEED_OF_A_GPU["float32"])
    return Cost(steps, steps * _weight(spec) / speed, _bytes_of(spec, plan.keep))


def _weight(spec: RunSpec) -> float:
    """How much more a step costs than one of the paper's model."""
    return (_parameters(spec) * cohort_key(spec).batch) / (_parameters(PAPER) * cohort_key(PAPER).batch)


def _parameters(spec: RunSpec) -> int:
    return layout_of(spec.architecture, named_task(spec.task).symbols).size


def _bytes_of(spec: RunSpec, keep: str) -> int:
    """Checkpoints and logs of one run; full states are three times as large as weights."""
    first = spec.fork.step if spec.fork else 0
    weights = _parameters(spec) * (8 if spec.precision == "float64" else 4)
    points = [step for step in spec.checkpoints.steps(spec.training.steps) if step >= first]
    whole = {step for step in spec.checkpoints.at if step >= first} | (
        {spec.training.steps} if keep != "forks" else set()
    )
    files = {"weights": len(points) + 3 * len(whole), "state": 3 * len(points), "forks": 3 * len(whole), "none": 0}[
        keep
    ]
    looks = sum(1 for step in spec.evaluation_steps if step >= first)
    return files * weights + looks * LOG_ROW + RUN_FILES + len(points) * ENTRY * (keep != "none")
