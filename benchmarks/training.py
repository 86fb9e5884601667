"""Training throughput of the whole machine against peers run live, in interleaved rounds; ratios to naive eager.

Every contestant trains the paper's p = 97 model at batch 512 and, in the measured rounds, reads train and validation
accuracy and loss, total norm and block-0 FSD over all 9,409 pairs every 100 steps.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch

from benchmarks.peers import available
from benchmarks.provenance import save

NAIVE = "naive eager"


@dataclass
class Entry:
    """A line of the table: one or more processes that run at the same time."""

    title: str
    words: list[str]
    processes: int = 1
    strides: int = 2
    wave: int = 0
    children: list["subprocess.Popen[str]"] = field(default_factory=list)
    complaints: Any = None
    rates: dict[str, list[float]] = field(default_factory=lambda: {"training": [], "measured": []})
    failed: str = ""

    def start(self, device: str, threads: int) -> None:
        """Start the processes; they compile while others start."""
        command = [sys.executable, "-m", "benchmarks.contestant", *self.words, "--device", device]
        command += ["--threads", str(threads), "--strides", str(self.strides)]
        quiet = {"OMP_NUM_THREADS": str(threads), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        environment = {**os.environ, **quiet, "TORCHINDUCTOR_COMPILE_THREADS": "2"}
        for _ in range(self.processes):
            # Not a pipe: one that nobody reads would fill up and block.
            self.complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.complaints}
            self.children.append(subprocess.Popen(command, text=True, env=environment, **pipes))

    def wait_until_ready(self) -> None:
        """Return once every process can run a round, or has failed."""
        for child in self.children:
            assert child.stdout is not None
            if child.stdout.readline().strip() != "ready":
                self.complaints.seek(0)
                lines = [line for line in self.complaints.read().splitlines() if "Error" in line]
                self.failed = (lines or ["no word"])[-1][:200]

    def round(self, kind: str) -> None:
        """One round of all processes at the same time."""
        for child in self.children:
            assert child.stdin is not None
            print(kind, file=child.stdin, flush=True)
        total = 0.0
        for child in self.children:
            assert child.stdout is not None
            total += float(child.stdout.readline())
        self.rates[kind].append(total)

    def stop(self) -> None:
        """End the processes, and close what they were asked and answered through."""
        for child in self.children:
            child.kill()
            with child:  # waits for it
                pass
        if self.complaints is not None:
            self.complaints.close()

    def row(self, naive: dict[str, float]) -> dict[str, Any]:
        """Median rates, and their ratios to the naive ones."""
        medians = {kind: statistics.median(rates) for kind, rates in self.rates.items() if rates}
        ratios = {f"{kind}_ratio": round(rate / naive[kind], 2) for kind, rate in medians.items()}
        return {"title": self.title, **{kind: round(rate, 1) for kind, rate in medians.items()}, **ratios}


AnyEntry = TypeVar("AnyEntry", bound=Entry)


def entries(device: str, slots: list[int]) -> list[Entry]:
    """Who takes part. On an accelerator they come in waves, so that its memory holds all of a wave."""
    if device == "cpu":
        cores = len(os.sched_getaffinity(0))
        each = f"{cores} × 1 thread"
        found = [
            Entry(NAIVE, ["naive"], strides=1),  # a plain script: one process, a thread for each core
            Entry(f"{NAIVE}, {each}", ["naive"], cores, strides=1),
            Entry(f"compiled, fused AdamW, {each}", ["compiled"], cores, strides=1),
            Entry("vmap of the module, 8 runs", ["vmap", "--runs", "8"], strides=1),
            Entry(f"grokscope float32, {each}", ["ours"], cores, strides=1),
            Entry(f"grokscope bf16, {each}", ["ours", "--precision", "bf16"], cores, strides=1),
        ]
        return found + ([Entry("JAX, scan", ["jax"], strides=1)] if "jax" in available(device) else [])
    found = [
        Entry(NAIVE, ["naive"]),
        Entry("compiled, fused AdamW", ["compiled"]),
        Entry("compiled with CUDA graphs", ["compiled_graphs"]),
        Entry("vmap of the module, 64 runs", ["vmap", "--runs", "64"]),
    ]
    if "jax" in available(device):
        jax = "JAX jit + vmap + scan"
        found += [Entry(f"{jax}, {e} runs", ["jax", "--runs", str(e)], wave=int(e > 64)) for e in (1, 64, 256)]
    for precision, sizes in (("tf32", slots), ("float32", slots[-1:]), ("bf16", [slots[0], slots[-1]])):
        for e in sizes:
            words = ["ours", "--runs", str(e), "--precision", precision]
            found.append(Entry(f"grokscope {precision}, {e} runs", words))
            if precision == "tf32":  # what equal bits in every stack cost
                title = f"grokscope {precision}, {e} runs, compiled reference"
                found.append(Entry(title, [*words, "--reference"], wave=int(e > 64)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--strides", type=int, default=2, help="hundreds of steps in a round")
    parser.add_argument("--slots", type=int, nargs="*", default=[1, 8, 64, 512])
    parser.add_argument("--settle", type=float, default=1.0, help="seconds of rest before the first round")
    parser.add_argument("--after", type=Path, help="the first round waits for this file: others still use the device")
    parser.add_argument("--only", default="", help="a regular expression that titles must match; naive always runs")
    parser.add_argument("--name", default="training", help="results go to NAME-DEVICE.json")
    chosen = parser.parse_args()
    wanted = re.compile(f"{NAIVE}|{chosen.only}" if chosen.only else "")
    table = [entry for entry in entries(chosen.device, chosen.slots) if wanted.search(entry.title)]
    for entry in table:
        entry.strides = min(entry.strides, chosen.strides)
    for wave in sorted({entry.wave for entry in table}):
        own = [entry for entry in table if entry.wave == wave]
        race(own, chosen.device, chosen.rounds, chosen.settle, chosen.after)
        report(chosen.device, [entry for entry in table if entry.wave <= wave], chosen.name)


def race(
    wave: Sequence[AnyEntry],
    device: str,
    rounds: int,
    settle: float,
    after: Path | None,
    at_end: Callable[[AnyEntry], None] | None = None,
) -> None:
    """Start a wave, run interleaved rounds, end it."""
    cores = len(os.sched_getaffinity(0))
    for entry in wave:
        entry.start(device, cores if entry.processes == 1 else 1)
        if device == "cpu":  # compiling all at once would only thrash; an accelerator's host has cores to spare
            entry.wait_until_ready()
    for entry in wave if device != "cpu" else ():
        entry.wait_until_ready()
    print(f"{len(wave)} contestants are ready", flush=True)
    while after is not None and not after.exists():
        time.sleep(0.2)
    time.sleep(settle)
    for number in range(rounds):
        for entry in wave:
            for kind in ("training", "measured") if not entry.failed else ():
                entry.round(kind)
        print(f"round {number + 1} of {rounds} done", flush=True)
    for entry in wave:
        if at_end is not None and not entry.failed:
            at_end(entry)
        entry.stop()


def report(device: str, table: list[Entry], name: str) -> None:
    naive = {kind: statistics.median(rates) for kind, rates in table[0].rates.items()}
    rows = [entry.row(naive) for entry in table if not entry.failed]
    print(f"{'run-steps/s':>44} {'training':>10} {'ratio':>7} {'measured':>10} {'ratio':>7}")
    for row in rows:
        numbers = (
            f"{row['training']:>10,.0f} {row['training_ratio']:>7} {row['measured']:>10,.0f} {row['measured_ratio']:>7}"
        )
        print(f"{row['title']:>44} {numbers}")
    failed = {entry.title: entry.failed for entry in table if entry.failed}
    print(*(f"failed: {title}: {why}" for title, why in failed.items()), sep="\n")
    limits = ceilings() if device == "cuda" else {}
    print(*(f"{what}: {value:,.1f}" for what, value in limits.items()), sep="\n")
    record = {"rows": rows, "failed": failed, "rounds": len(table[0].rates["training"]), "ceilings": limits}
    save(f"{name}-{device}", record, device)


def ceilings() -> dict[str, float]:
    """What the device can do at most: copy bandwidth, batched matrix products at the MLP's shape, and the TF32 floor.

    A step needs about 2.2 GFLOP of matrix products and 90 MB of traffic when elementwise work is fused; the longer of
    the two times is the floor.
    """

    def seconds(work: Callable[[], object]) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for repeat in range(23):
            if repeat == 3:
                start.record()
            work()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 20 / 1000

    source = torch.randn(2**30, device="cuda")
    target = torch.empty_like(source)
    found = {"copy TB/s": 8 * 2**30 / seconds(lambda: target.copy_(source)) / 1e12}
    x, w = torch.randn(64, 1536, 128, device="cuda"), torch.randn(64, 128, 512, device="cuda")
    for name, dtype in (("tf32", torch.float32), ("bf16", torch.bfloat16)):
        torch.set_float32_matmul_precision("high")
        a, b = x.to(dtype), w.to(dtype)
        found[f"{name} TFLOP/s"] = 2 * 64 * 1536 * 128 * 512 / seconds(lambda a=a, b=b: torch.bmm(a, b)) / 1e12
    floor = max(2.2e9 / (found["tf32 TFLOP/s"] * 1e12), 90e6 / (found["copy TB/s"] * 1e12))
    found["tf32 floor, run-steps/s"] = 1 / floor
    return found


if __name__ == "__main__":
    main()
