"""Whether runs grok at the same steps in every precision, by kernels as by the reference.

Trains p = 97 addition at a weight decay at which all runs grok soon, over many seeds, and stores every run's step. A
precision is equal if the 95 % interval of the ratio of geometric means to the float32 reference's lies in [0.95, 1.05].
A run that has not grokked at the end is trained again, alone and longer: with kernels it is the same run. Until that is
done its step is unknown, and the interval is that of every step up to LONGEST times the budget.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from math import exp, log
from typing import Any

import torch
from scipy.stats import ttest_ind

from benchmarks.grokking import run
from benchmarks.provenance import RESULTS, save
from grokscope.specs import RunSpec, Training

REFERENCE = "float32, reference"
ARMS = {REFERENCE: "float32", "float32": "float32", "tf32": "tf32", "bf16": "bf16"}
EQUAL = (0.95, 1.05)
LONGEST = 8  # times as long as at first


def ratio(ours: list[int | None], reference: list[int | None], budget: int) -> dict[str, Any]:
    """The ratio of geometric means with Welch's 95 % interval, and whether that is equality.

    The interval covers every step that a run which has not grokked may have, from the budget to LONGEST times it. Only
    of the reference may none be missing.

    >>> ratio([100, 110, 100], [100, 110, 100], 200)["ratio"]
    1.0
    >>> ratio([100, None], [100, 200], 200)["not_grokked"]
    1
    """
    ends = [_interval(ours, reference, step) for step in (budget, LONGEST * budget)]
    low, high = min(end[1] for end in ends), max(end[2] for end in ends)
    found = {"ratio": ends[0][0], "low": low, "high": high}
    is_equal = EQUAL[0] <= low and high <= EQUAL[1]
    return {name: round(value, 4) for name, value in found.items()} | {
        "equal": is_equal,
        "not_grokked": ours.count(None),
    }


def _interval(ours: list[int | None], reference: list[int | None], missing: int) -> tuple[float, float, float]:
    """Ratio and interval if every run that has not grokked did so at this step."""
    if None in reference:
        raise SystemExit("runs of the reference have not grokked; train it for more --steps")
    a, b = ([log(step or missing) for step in steps] for steps in (ours, reference))
    interval = ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    return exp(sum(a) / len(a) - sum(b) / len(b)), exp(interval.low), exp(interval.high)


def runs_of(arm: str, seeds: Sequence[int], chosen: argparse.Namespace, steps: int) -> list[int | None]:
    """Each run's first step with a validation accuracy of 0.95."""
    spec = RunSpec(precision=ARMS[arm], training=Training(steps=steps, weight_decay=chosen.weight_decay))
    specs = [spec.with_seed(seed) for seed in seeds]
    return [row["grokked"] for row in run(arm, specs, steps, chosen.device, True if arm == REFERENCE else None)]


def completed(arm: str, steps: list[int | None], chosen: argparse.Namespace) -> list[int | None]:
    """The same with those runs that had not grokked trained longer; bits of the reference would change in a stack."""
    found, longer = list(steps), chosen.steps
    while arm != REFERENCE and None in found and longer < LONGEST * chosen.steps:
        longer *= 2
        missing = [seed for seed, step in enumerate(found) if step is None]
        for seed, step in zip(missing, runs_of(arm, missing, chosen, longer), strict=True):
            found[seed] = step
    return found


def summary(measured: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every arm against the reference."""
    steps = measured["grokked"]
    return {arm: {"runs": len(own), **ratio(own, steps[REFERENCE], measured["steps"])} for arm, own in steps.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seeds", type=int, default=384)
    parser.add_argument("--weight-decay", type=float, default=3.0)
    parser.add_argument("--steps", type=int, default=1700)
    parser.add_argument("--arm", help="train this arm only and print its steps")
    parser.add_argument("--complete", action="store_true", help="train on only what the stored record lacks")
    chosen = parser.parse_args()
    if chosen.arm:
        print(json.dumps(runs_of(chosen.arm, range(chosen.seeds), chosen, chosen.steps)))
        return
    name = f"precisions-{chosen.device}"
    if chosen.complete:
        steps = json.loads((RESULTS / f"{name}.json").read_text())["measured"]["grokked"]
    else:
        command = [sys.executable, "-m", "benchmarks.precisions", *sys.argv[1:], "--arm"]
        started = {arm: subprocess.Popen([*command, arm], stdout=subprocess.PIPE, text=True) for arm in ARMS}
        steps = {arm: json.loads(child.communicate()[0]) for arm, child in started.items()}
    steps = {arm: completed(arm, own, chosen) for arm, own in steps.items()}
    measured = {"weight_decay": chosen.weight_decay, "steps": chosen.steps, "grokked": steps}
    save(name, measured | {"summary": summary(measured)}, chosen.device)
    print(json.dumps(summary(measured), indent=1))


if __name__ == "__main__":
    main()
