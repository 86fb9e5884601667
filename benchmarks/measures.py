"""What measuring costs: in training steps of the same run on a CPU, in milliseconds a run in a stack on CUDA.

All 9,409 pairs of p = 97. Training and measuring take turns, so that a slow minute of the machine is everybody's.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from benchmarks.contestant import Ours
from benchmarks.peers import synchronize
from benchmarks.provenance import save
from grokscope.measures import snapshot

STEPS = 20


def seconds(work: Callable[[], object], device: str) -> float:
    synchronize(torch.device(device))
    start = time.perf_counter()
    work()
    synchronize(torch.device(device))
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--precision", default="")
    chosen = parser.parse_args()
    device, cpu = chosen.device, chosen.device == "cpu"
    torch.set_num_threads(1)
    precision, runs = chosen.precision or ("float32" if cpu else "tf32"), 1 if cpu else 256
    ours = Ours(device, runs, precision)
    weights, cohort = ours.state.weights, ours.cohort
    works = {
        "training step": lambda: ours.steps(STEPS),
        "FSD, rank and answer share": lambda: snapshot(weights, cohort, compiled=True, scores=False),
        "the same with accuracies, losses and norm": lambda: snapshot(weights, cohort, compiled=True),
    }
    for work in works.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(chosen.rounds):
        for name, work in works.items():
            times[name].append(seconds(work, device) / (STEPS if name == "training step" else 1))
    medians = {name: statistics.median(values) for name, values in times.items()}
    step = medians["training step"]
    rows = [
        {"what": name, "ms_per_run": round(1e3 * value / runs, 4), "training_steps": round(value / step, 2)}
        for name, value in medians.items()
    ]
    for row in rows:
        print(f"{row['what']:>45} {row['ms_per_run']:>10,.3f} ms a run {row['training_steps']:>7} steps")
    record = {"rows": rows, "rounds": chosen.rounds, "runs": runs, "precision": precision}
    save(f"measures-{device}", record, device)


if __name__ == "__main__":
    main()
