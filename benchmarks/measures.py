"""What measuring costs: in training steps of the same run on a CPU, in milliseconds a run in a stack on CUDA.

All 9,409 pairs of p = 97. Training and measuring take turns, so that a slow minute of the machine is everybody's. On
CUDA the record also says how long each kernel of a step and of an evaluation takes.
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
from grokscope.training import Cohort

STEPS = 20
KERNELS, NAME = 20, 80  # of a profile: the slowest, and characters of a name


def seconds(work: Callable[[], object], device: str) -> float:
    synchronize(torch.device(device))
    start = time.perf_counter()
    work()
    synchronize(torch.device(device))
    return time.perf_counter() - start


def kernel_times(work: Callable[[], object], parts: int) -> dict[str, float]:
    """Milliseconds of a part, kernel by kernel, the slowest first, and of all kernels together."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        work()
        torch.cuda.synchronize()
    times: dict[str, float] = {}
    for event in profile.key_averages():
        name = event.key[:NAME]
        times[name] = times.get(name, 0.0) + event.device_time_total / 1000 / parts
    slowest = sorted(times.items(), key=lambda item: -item[1])[:KERNELS]
    return {name: round(time, 4) for name, time in [("all kernels", sum(times.values())), *slowest]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--precision", default="")
    parser.add_argument("--runs", type=int, help="in the stack; 1 on a CPU and 512 on CUDA if not given")
    chosen = parser.parse_args()
    device, cpu = chosen.device, chosen.device == "cpu"
    torch.set_num_threads(1)
    precision, runs = chosen.precision or ("float32" if cpu else "tf32"), chosen.runs or (1 if cpu else 512)
    compiled = True if cpu else None  # on CUDA by kernels
    ours = Ours(device, runs, precision, compiled)
    weights, cohort = ours.state.weights, ours.cohort
    again = Cohort(cohort.specs, device)  # a reader keeps one CUDA graph: each kind of evaluation has its own
    works: dict[str, Callable[[], object]] = {
        "training step": lambda: ours.steps(STEPS),
        "FSD, rank and answer share": lambda: snapshot(weights, again, compiled, scores=False),
        "the same with accuracies, losses and norm": lambda: snapshot(weights, cohort, compiled),
    }
    for work in works.values():
        for _ in range(3):  # the second time a CUDA graph is recorded
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
    if device == "cuda":
        parts = {name: STEPS if name == "training step" else 1 for name in works}
        record["kernels"] = {name: kernel_times(work, parts[name]) for name, work in works.items()}
    save(f"measures-{device}" + (f"-{runs}" if chosen.runs else ""), record, device)


if __name__ == "__main__":
    main()
