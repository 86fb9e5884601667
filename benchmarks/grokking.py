"""Whether faster precisions grok at the same steps, and the paper's default run behaves as it is printed to.

Trains p = 97 addition in float32, TF32 and bfloat16 over many seeds, and the variants that fix what the paper left
open, and stores every run's events and norms. A precision is equal if the 90 % interval of the ratio of its median
grok step to float32's lies within ±10 %.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from benchmarks.provenance import save
from grokscope.measures import snapshot
from grokscope.specs import Architecture, Initialization, RunSpec, Training
from grokscope.timeline import first_step
from grokscope.training import Cohort, advance, initial_state

EVERY = 100
NORM_STEPS = (500, 1000, 2500)


def run(
    title: str, specs: list[RunSpec], steps: int, device: str, compiled: bool | None = None
) -> list[dict[str, Any]]:
    """Events and norms of every run."""
    start = time.perf_counter()
    cohort = Cohort(specs, device)
    state = initial_state(cohort)
    taken, seen = [0], [snapshot(state.weights, cohort, compiled)]
    for step in range(EVERY, steps + 1, EVERY):
        advance(state, cohort, EVERY, compiled)
        taken.append(step)
        seen.append(snapshot(state.weights, cohort, compiled))
    print(f"{title}: {len(specs)} runs × {steps} steps in {time.perf_counter() - start:.0f} s", file=sys.stderr)
    rows = []
    for slot, spec in enumerate(specs):
        columns = {
            name: [one.row(slot)[name] for one in seen] for name in ("train_accuracy", "validation_accuracy", "fsd")
        }
        rows.append(
            {
                "arm": title,
                "seed": spec.seeds.split,
                "memorized": first_step(taken, columns["train_accuracy"], 0.99),
                "grokked": first_step(taken, columns["validation_accuracy"], 0.95),
                "synchronized": first_step(taken, columns["fsd"], 0.80),
                **{f"norm_{s}": round(seen[taken.index(s)].row(slot)["norm"], 3) for s in NORM_STEPS if s in taken},
            }
        )
    return rows


def ratio_of_medians(ours: list[float], reference: list[float], draws: int = 10_000) -> dict[str, float]:
    """The ratio of medians with its 90 % percentile-bootstrap interval; a run that never grokked counts as infinite."""
    generator = np.random.default_rng(0)
    a, b = np.array(ours), np.array(reference)
    medians = [np.median(generator.choice(x, (draws, x.size)), axis=1) for x in (a, b)]
    low, high = np.quantile(medians[0] / medians[1], [0.05, 0.95])
    return {
        "ratio": round(float(np.median(a) / np.median(b)), 4),
        "low": round(float(low), 4),
        "high": round(float(high), 4),
    }


def arms(seeds: int, steps: int, variant_seeds: int) -> dict[str, list[RunSpec]]:
    base = RunSpec(training=Training(steps=steps))
    found = {p: [replace(base, precision=p).with_seed(s) for s in range(seeds)] for p in ("float32", "tf32", "bf16")}
    variants = {
        "beta2 0.98": replace(base, training=replace(base.training, beta2=0.98)),
        "embedding std 0.02": replace(base, initialization=Initialization(embedding_std=0.02)),
        "sampling with replacement": replace(base, training=replace(base.training, sampling="replacement")),
    }
    variants["causal"] = replace(base, architecture=Architecture(causal=True))
    found.update({name: [spec.with_seed(s) for s in range(variant_seeds)] for name, spec in variants.items()})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seeds", type=int, default=128)
    parser.add_argument("--variant-seeds", type=int, default=16)
    parser.add_argument("--steps", type=int, default=7000)
    parser.add_argument("--arm", help="train this arm only and print its rows")
    chosen = parser.parse_args()
    plan = arms(chosen.seeds, chosen.steps, chosen.variant_seeds)
    if chosen.arm:
        print(json.dumps(run(chosen.arm, plan[chosen.arm], chosen.steps, chosen.device)))
        return
    # Each arm in its own process: they compile at the same time and share the device.
    command = [sys.executable, "-m", "benchmarks.grokking", *sys.argv[1:], "--arm"]
    started = {arm: subprocess.Popen([*command, arm], stdout=subprocess.PIPE, text=True) for arm in plan}
    rows = [row for child in started.values() for row in json.loads(child.communicate()[0] or "[]")]
    summary = summarize(rows)
    save(f"grokking-{chosen.device}", {"steps": chosen.steps, "summary": summary, "runs": rows}, chosen.device)
    print(json.dumps(summary, indent=1))


def summarize(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Per arm: medians and ranges, and for the precisions the ratio to float32."""
    by_arm: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_arm.setdefault(row["arm"], []).append(row)
    times = {arm: [r["grokked"] if r["grokked"] else np.inf for r in found] for arm, found in by_arm.items()}
    summary: dict[str, Any] = {}
    for arm, found in by_arm.items():
        summary[arm] = {"runs": len(found), "grokked_runs": sum(r["grokked"] is not None for r in found)}
        for name in ("memorized", "grokked", *(f"norm_{s}" for s in NORM_STEPS)):
            values = [r[name] for r in found if r.get(name) is not None]
            if values:
                summary[arm][name] = {"min": min(values), "median": float(np.median(values)), "max": max(values)}
        if arm in ("tf32", "bf16"):
            summary[arm]["median_grok_ratio"] = ratio_of_medians(times[arm], times["float32"])
    return summary


if __name__ == "__main__":
    main()
