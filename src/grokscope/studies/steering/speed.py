"""Measure what a step of one run costs in a full stack, with each update on.

`python -m grokscope.studies.steering.speed --out speed.json` measures it where the workers are.
"""

import argparse
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from grokscope.jobs import slots_that_fit
from grokscope.runs.provenance import provenance
from grokscope.specs import RunSpec
from grokscope.studies.steering.experiments import CELLS
from grokscope.studies.steering.seconds import Speed, save_speed, update_of
from grokscope.training import Cohort, advance, initial_state

__all__ = ["main", "measure_speed", "timed_runs"]

UPDATES = (("adamw", "plain"), ("muon", "plain"), ("adamw", "grokfast"), ("adamw", "orthogonal"))


def timed_runs(precision: str = "tf32") -> dict[str, RunSpec]:
    """One run of each update on each kind of stack that the study trains.

    >>> len(timed_runs()) > 4
    True
    """
    found: dict[str, RunSpec] = {}
    for cell in CELLS.values():
        for optimizer, gradient in UPDATES:
            run = cell.run(0, precision)  # type: ignore[arg-type]
            one = replace(run, training=replace(run.training, optimizer=optimizer, gradient=gradient))  # type: ignore[arg-type]
            found.setdefault(update_of(one), one)
    return found


def measure_speed(
    runs: Iterable[RunSpec], device: str, *, slots: int | None = None, steps: int = 100, compiled: bool | None = None
) -> Speed:
    """Time each of these runs with as many other seeds as fit on the device."""
    timed, count = dict[str, float](), 1
    for run in runs:
        count = slots or (1 if device == "cpu" else slots_that_fit([run], device))
        timed[update_of(run)] = seconds_per_step(run, device, count, steps, compiled)
    made_with = provenance(device)
    return Speed(timed, f"{made_with['device']}, up to {count} runs at once", made_with)


def seconds_per_step(run: RunSpec, device: str, slots: int, steps: int, compiled: bool | None = None) -> float:
    """Seconds of one step of one run, in a stack of so many seeds of it."""
    cohort = Cohort([run.with_seed(seed) for seed in range(slots)], device)
    state, taken = initial_state(cohort), 0.0
    for _ in range(2):  # the first time graphs are captured
        began = time.perf_counter()
        advance(state, cohort, steps, compiled)
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        taken = time.perf_counter() - began
    return taken / (steps * slots)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the speeds of all updates and cells, and write them."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.studies.steering.speed", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where to write: speed.json beside the records")
    parser.add_argument("--slots", type=int, help="runs at once; as many as fit if not given")
    parser.add_argument("--steps", type=int, default=100, help="steps that are timed")
    given = parser.parse_args(arguments)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    save_speed(measure_speed(timed_runs().values(), device, slots=given.slots, steps=given.steps), given.out)


if __name__ == "__main__":
    main()
