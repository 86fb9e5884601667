"""One contestant of the training benchmark in its own process: it gets ready, then runs a round whenever told to.

Keeping every contestant alive lets rounds interleave, so that a slow minute of the machine is everybody's, and lets
all of them compile at the same time.
"""

import argparse
import json
import sys
import time
from dataclasses import replace
from typing import Any

import torch

from benchmarks import peers

# Steps between measurements; JAX's program is whole epochs of 6, so it gets a multiple of that.
MEASURE_EVERY = {"jax": 102}


class Ours:
    """grokscope's stack, with the peers' interface."""

    def __init__(
        self, device: str, runs: int, precision: str, compiled: bool | None, cell: str = "", quick: bool = False
    ) -> None:
        from grokscope.specs import RunSpec
        from grokscope.studies.tasks.experiments import CELLS, QUICK
        from grokscope.training import Cohort, initial_state

        self.runs, self.device, self.compiled = runs, device, compiled
        run = (QUICK if quick else CELLS)[cell].run(0, "tf32") if cell else RunSpec()
        self.specs = [replace(run, precision=precision).with_seed(seed) for seed in range(runs)]
        self.cohort = Cohort(self.specs, device)
        self.state = initial_state(self.cohort)
        self.stages: list[dict[str, int]] = []
        self.note_memory()

    def note_memory(self) -> None:
        """Keep what tensors and graphs have of the device, and what they had at most since the last note.

        PyTorch also caches what it may give back at once: that is reserved, but a stack can do without it.
        """
        if self.device != "cpu":
            most = {
                "reserved_most": torch.cuda.max_memory_reserved(),
                "allocated_most": torch.cuda.max_memory_allocated(),
            }
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            now = {"reserved": torch.cuda.memory_reserved(), "allocated": torch.cuda.memory_allocated()}
            self.stages.append(most | now)
            torch.cuda.reset_peak_memory_stats()

    def memory(self) -> dict[str, Any]:
        """Bytes that PyTorch has taken of the device at most, those that were expected, and how it came to them.

        The stages are the beginning, the first 100 steps, the first evaluation, and so on. None are taken of a CPU.
        """
        from grokscope.jobs import bytes_of_stack

        self.note_memory()
        taken = max((stage["reserved_most"] for stage in self.stages), default=0)
        return {"taken": taken, "expected": bytes_of_stack(self.specs), "stages": self.stages}

    def steps(self, n: int) -> None:
        """Take n optimiser steps."""
        from grokscope.training import advance

        advance(self.state, self.cohort, n, self.compiled)

    def measure(self) -> None:
        """Accuracies, losses, norm and block-0 FSD of every run."""
        from grokscope.measures import snapshot

        snapshot(self.state.weights, self.cohort, self.compiled)

    def wait(self) -> None:
        """Return once the device has finished."""
        peers.synchronize(torch.device(self.device))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=("ours", *peers.PEERS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--reference", action="store_true", help="on CUDA: the compiled reference")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cell", default="", help="a kind of task of the study of tasks; the paper's if not given")
    parser.add_argument("--quick", action="store_true", help="a small kind, and nothing is compiled")
    parser.add_argument("--strides", type=int, default=2, help="measurements in a round, 100 steps apart")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    if chosen.name == "ours":
        # Compiled on a CPU; on CUDA by kernels, or compiled, where the bits depend on the stack.
        compiled = True if chosen.reference or chosen.device == "cpu" else None
        compiled = False if chosen.quick else compiled
        contestant = Ours(chosen.device, chosen.runs, chosen.precision, compiled, chosen.cell, chosen.quick)
    else:
        contestant = peers.build(chosen.name, chosen.device, chosen.runs)
    # Everything that a round does is done once before, so that nothing is compiled in it.
    stride = MEASURE_EVERY.get(chosen.name, 100)
    for _ in range(3):
        for work in (lambda: contestant.steps(stride), contestant.measure):
            work()
            if isinstance(contestant, Ours):
                contestant.note_memory()
    contestant.wait()
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "memory" and isinstance(contestant, Ours):
            print(json.dumps(contestant.memory()), flush=True)
            continue
        print(round_of(contestant, chosen.strides, stride, line.strip() == "measured"), flush=True)


def round_of(contestant: peers.Peer | Ours, strides: int, stride: int, measured: bool) -> float:
    """Run-steps per second of one round, with or without measuring after every stride."""
    contestant.wait()
    start = time.perf_counter()
    for _ in range(strides):
        contestant.steps(stride)
        if measured:
            contestant.measure()
    contestant.wait()
    return contestant.runs * strides * stride / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
