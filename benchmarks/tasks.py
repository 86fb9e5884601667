"""Throughput and memory of every kind of task on one device, each in a stack of equal runs.

The kinds are those of the study of tasks, and their models; memory is compared with what is expected of it. PyTorch
takes memory in blocks of up to 20 MiB, so a stack that takes little may be off by more than 15 %.

    python -m benchmarks.tasks                       # on an accelerator: two to three minutes
    python -m benchmarks.tasks --device cpu --quick  # two small kinds: to see that it runs
"""

import argparse
import json
from collections.abc import Sequence
from typing import Any

import torch

from benchmarks.provenance import save
from benchmarks.training import Entry, race
from grokscope.studies.tasks.experiments import CELLS, QUICK

TOLERANCE = 0.15  # of the memory that is taken
BLOCKS = 64 * 2**20  # bytes that PyTorch may take beyond what it needs: three of its blocks


class Kind(Entry):
    """One kind of task: its process also says what memory it has taken."""

    memory: dict[str, Any] | None = None

    def start(self, device: str, threads: int) -> None:
        """Start the process; on a CPU with one thread, as runs are trained there."""
        super().start(device, 1 if device == "cpu" else threads)

    def ask_memory(self) -> None:
        """Ask, when all rounds are done."""
        (child,) = self.children
        assert child.stdin is not None
        assert child.stdout is not None
        print("memory", file=child.stdin, flush=True)
        self.memory = json.loads(child.stdout.readline())

    def result(self, task: str) -> dict[str, Any]:
        """Median rates, memory, and whether as much of it was taken as was expected."""
        row = {
            name: value for name, value in self.row({"training": 1.0, "measured": 1.0}).items() if "ratio" not in name
        }
        memory = self.memory or {"taken": 0, "expected": 0, "stages": []}
        compared = compare_memory(memory["taken"], memory["expected"])
        return row | {"task": task} | compared | {"stages": memory["stages"]}


def compare_memory(taken: int, expected: int) -> dict[str, Any]:
    """Bytes taken and expected, their ratio, and whether that is near 1; of a CPU nothing is known to be taken.

    >>> compare_memory(2**32, 2**32 + 2**28)["as_expected"], compare_memory(2**32, 2**31)["as_expected"]
    (True, False)
    """
    found: dict[str, Any] = {"bytes": taken, "expected": expected}
    if not taken:
        return found | {"expected_ratio": None, "as_expected": None}
    near = abs(expected - taken) <= max(TOLERANCE * taken, BLOCKS)
    return found | {"expected_ratio": round(expected / taken, 3), "as_expected": near}


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--runs", type=int, default=64)
    parser.add_argument("--precision", default="tf32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--strides", type=int, default=4, help="hundreds of steps in a round")
    parser.add_argument("--only", nargs="*", default=[], help="kinds, by name; all of them if not given")
    parser.add_argument("--quick", action="store_true", help="small kinds, to see that it runs")
    chosen = parser.parse_args(words)
    cells = QUICK if chosen.quick else CELLS
    options = ["--runs", str(chosen.runs), "--precision", chosen.precision, *["--quick"] * chosen.quick]
    kinds = [Kind(name, ["ours", *options, "--cell", name], strides=chosen.strides) for name in chosen.only or [*cells]]
    race(kinds, chosen.device, chosen.rounds, 1.0, None, at_end=Kind.ask_memory)
    rows = [kind.result(cells[kind.title].task) for kind in kinds if not kind.failed]
    for row in rows:
        print(
            f"{row['title']:>16} {row['training']:>10,.0f} {row['measured']:>10,.0f} run-steps/s, "
            f"{row['bytes'] / 2**20:>8,.0f} MiB, expected {row['expected_ratio']} of it"
        )
    failed = {kind.title: kind.failed for kind in kinds if kind.failed}
    print(*(f"failed: {title}: {why}" for title, why in failed.items()), sep="\n")
    record = {
        "rows": rows,
        "failed": failed,
        "runs": chosen.runs,
        "precision": chosen.precision,
        "rounds": chosen.rounds,
        "strides": chosen.strides,
    }
    save(f"tasks-{chosen.device}", record, chosen.device)


if __name__ == "__main__":
    main()
