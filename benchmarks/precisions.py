"""Whether runs grok at the same steps in every precision, by kernels as by the reference.

Trains p = 97 addition at a weight decay at which all runs grok soon, over many seeds, and stores every run's step. A
precision is equal if the 95 % interval of the ratio of geometric means to the float32 reference's lies in [0.95, 1.05].
"""

import argparse
import json
import subprocess
import sys
from dataclasses import replace
from math import exp, log
from typing import Any

import torch
from scipy.stats import ttest_ind

from benchmarks.grokking import run
from benchmarks.provenance import save
from grokscope.specs import RunSpec, Training

REFERENCE = "float32, reference"
ARMS = {REFERENCE: "float32", "float32": "float32", "tf32": "tf32", "bf16": "bf16"}
EQUAL = (0.95, 1.05)


def ratio(ours: list[int | None], reference: list[int | None]) -> dict[str, Any]:
    """The ratio of geometric means with Welch's 95 % interval, and whether that is equality; nothing if any is missing.

    >>> ratio([100, 110, 100], [100, 110, 100])["ratio"]
    1.0
    """
    a, b = ([log(step) for step in steps if step] for steps in (ours, reference))
    if len(a) < len(ours) or len(b) < len(reference):
        return {"ratio": None, "low": None, "high": None, "equal": False}
    interval = ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    found = [exp(x) for x in (sum(a) / len(a) - sum(b) / len(b), interval.low, interval.high)]
    is_equal = EQUAL[0] <= found[1] and found[2] <= EQUAL[1]
    return {**dict(zip(("ratio", "low", "high"), (round(x, 4) for x in found), strict=True)), "equal": is_equal}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seeds", type=int, default=384)
    parser.add_argument("--weight-decay", type=float, default=3.0)
    parser.add_argument("--steps", type=int, default=1700)
    parser.add_argument("--arm", help="train this arm only and print its rows")
    chosen = parser.parse_args()
    if chosen.arm:
        spec = RunSpec(precision=ARMS[chosen.arm], training=Training(steps=chosen.steps))
        spec = replace(spec, training=replace(spec.training, weight_decay=chosen.weight_decay))
        specs = [spec.with_seed(seed) for seed in range(chosen.seeds)]
        compiled = True if chosen.arm == REFERENCE else None
        print(json.dumps(run(chosen.arm, specs, chosen.steps, chosen.device, compiled)))
        return
    command = [sys.executable, "-m", "benchmarks.precisions", *sys.argv[1:], "--arm"]
    started = {arm: subprocess.Popen([*command, arm], stdout=subprocess.PIPE, text=True) for arm in ARMS}
    steps = {arm: [row["grokked"] for row in json.loads(child.communicate()[0])] for arm, child in started.items()}
    summary = {arm: {"runs": len(own), **ratio(own, steps[REFERENCE])} for arm, own in steps.items()}
    measured = {"weight_decay": chosen.weight_decay, "steps": chosen.steps, "summary": summary, "grokked": steps}
    save(f"precisions-{chosen.device}", measured, chosen.device)
    print(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
