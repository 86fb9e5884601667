"""Measure what a step of one run costs in a full stack.

`python -m grokscope.studies.bakeoff.speed --spec plan.json --out speed.json` measures it where the workers are.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from grokscope.jobs import slots_that_fit
from grokscope.runs.plans import read_plan
from grokscope.runs.provenance import provenance
from grokscope.specs import Plan, RunSpec
from grokscope.studies.bakeoff.configurations import CONFIGURATIONS
from grokscope.studies.bakeoff.seconds import FILE, Speed, save_speed
from grokscope.training import Cohort, advance, initial_state

__all__ = ["main", "measure_speed"]


def measure_speed(plan: Plan, *, slots: int | None = None, steps: int = 300, compiled: bool | None = None) -> Speed:
    """Time the plan's first run in every configuration, with as many other seeds as fit on the plan's device.

    Configurations differ in what is done to gradients; those that do the same to them are timed once.
    """
    run = plan.runs[0]
    fitting = 1 if plan.device == "cpu" else slots_that_fit([CONFIGURATIONS["Grokfast"].apply(run)], plan.device)
    count = slots or fitting
    timed: dict[str, float] = {}
    for configuration in CONFIGURATIONS.values():
        if configuration.gradient not in timed:
            seconds = _seconds_per_step(configuration.apply(run), plan.device, count, steps, compiled)
            timed[configuration.gradient] = seconds
    found = {name: timed[configuration.gradient] for name, configuration in CONFIGURATIONS.items()}
    made_with = provenance(plan.device)
    return Speed(found, f"{made_with['device']}, {count} runs at once, {run.precision}", made_with)


def _seconds_per_step(run: RunSpec, device: str, slots: int, steps: int, compiled: bool | None) -> float:
    cohort = Cohort([run.with_seed(seed) for seed in range(slots)], device)
    state, taken = initial_state(cohort), 0.0
    for _ in range(2):  # the first time it compiles
        began = time.perf_counter()
        advance(state, cohort, steps, compiled)
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        taken = time.perf_counter() - began
    return taken / (steps * slots)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the speed of a plan's configurations, and write it."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.studies.bakeoff.speed", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="the plan of a bake-off, as JSON")
    parser.add_argument("--out", type=Path, required=True, help=f"where to write; tables read {FILE} with the records")
    chosen = parser.parse_args(arguments)
    save_speed(measure_speed(read_plan(chosen.spec)), chosen.out)


if __name__ == "__main__":
    main()
