"""Measure what a step of one run of each arm costs in a stack of 16, the study's own.

`python -m grokscope.studies.accelerators.speed --out speed.json` measures it where the workers are.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from grokscope.runs.provenance import provenance
from grokscope.studies.accelerators.events import pattern
from grokscope.studies.accelerators.settings import SEEDS, SETTINGS
from grokscope.studies.run_set import Precision
from grokscope.studies.steering.seconds import Speed, save_speed
from grokscope.studies.steering.speed import seconds_per_step

__all__ = ["main", "measure_speed"]


def measure_speed(
    settings: Iterable[str], device: str, precision: Precision, *, slots: int = SEEDS, steps: int = 100
) -> Speed:
    """Seconds of a step of every arm of these settings, by `SETTING/ARM`."""
    timed = {
        pattern(name, arm): seconds_per_step(SETTINGS[name].run(arm, 0, precision), device, slots, steps)
        for name in settings
        for arm in SETTINGS[name].arms
    }
    made_with = provenance(device)
    return Speed(timed, f"{made_with['device']}, {slots} runs at once", made_with)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the speeds of all arms, and write them."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.studies.accelerators.speed", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where to write: speed.json beside the records")
    parser.add_argument("--steps", type=int, default=100, help="steps that are timed")
    given = parser.parse_args(arguments)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    precision: Precision = "tf32" if device == "cuda" else "float32"
    save_speed(measure_speed(SETTINGS, device, precision, steps=given.steps), given.out)


if __name__ == "__main__":
    main()
