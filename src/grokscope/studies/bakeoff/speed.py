"""What a step of one run costs in a full stack, measured and kept beside the runs of a bake-off.

`python -m grokscope.studies.bakeoff.speed --spec plan.json --out speed.json` measures it where the workers are, with the
core packages only.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from grokscope.errors import InputError
from grokscope.files import named, write_atomically
from grokscope.jobs.capacity import slots_that_fit
from grokscope.runs.plans import read_plan
from grokscope.runs.provenance import provenance
from grokscope.specs import Plan, RunSpec
from grokscope.studies.bakeoff.configurations import ARMS
from grokscope.training import Cohort, advance, cohort_key, initial_state

__all__ = ["Speed", "main", "measured_speed", "read_speed", "save_speed"]


@dataclass(frozen=True)
class Speed:
    """Seconds by arm, and where they were measured."""

    seconds_per_step: dict[str, float]
    """Seconds of one optimiser step of one run in a full stack, by arm; looks are not counted."""
    place: str
    """The device, and how many runs shared it."""
    made_with: dict[str, str] = field(default_factory=dict)
    """Commit, device and versions."""


def measured_speed(plan: Plan, *, slots: int | None = None, steps: int = 300, compiled: bool | None = None) -> Speed:
    """Time the plan's first run in every arm, with as many seeds beside it as fit on the plan's device.

    Arms differ in what is done to gradients; those that do the same to them are timed once.
    """
    run = plan.runs[0]
    fitting = 1 if plan.device == "cpu" else slots_that_fit(cohort_key(ARMS["Grokfast"].of(run)), plan.device)
    count = slots or fitting
    found: dict[str, float] = {}
    for name, arm in ARMS.items():
        alike = next((known for known in found if ARMS[known].gradient == arm.gradient), None)
        found[name] = found[alike] if alike else _timed(arm.of(run), plan.device, count, steps, compiled)
    made_with = provenance(plan.device)
    return Speed(found, f"{made_with['device']}, {count} runs at once, {run.precision}", made_with)


def _timed(run: RunSpec, device: str, slots: int, steps: int, compiled: bool | None) -> float:
    cohort = Cohort([run.with_seed(seed) for seed in range(slots)], device)
    state, taken = initial_state(cohort), 0.0
    for _ in range(2):  # the first time it compiles
        began = time.perf_counter()
        advance(state, cohort, steps, compiled)
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        taken = time.perf_counter() - began
    return taken / (steps * slots)


def save_speed(speed: Speed, path: Path) -> None:
    """Write a speed as JSON."""
    write_atomically(path, (json.dumps(vars(speed), indent=1) + "\n").encode())


def read_speed(path: Path) -> Speed | None:
    """The speed in a file that `save_speed` wrote; None if there is no such file."""
    try:
        found = json.loads(path.read_bytes())
        seconds = {str(arm): float(x) for arm, x in found["seconds_per_step"].items()}
        return Speed(seconds, str(found["place"]), dict(found.get("made_with", {})))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the speed in {named(path)} cannot be read: {error}") from None


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the speed of a plan's arms, and write it."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.studies.bakeoff.speed", description=__doc__)
    parser.add_argument(
        "--spec", type=Path, required=True, help="the plan, as `grokscope reproduce bakeoff --plan-only` writes it"
    )
    parser.add_argument("--out", type=Path, required=True, help="where to write")
    chosen = parser.parse_args(arguments)
    save_speed(measured_speed(read_plan(chosen.spec)), chosen.out)


if __name__ == "__main__":
    main()
