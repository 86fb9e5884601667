"""Throughput and memory of every kind of task on one device, each in a stack of equal runs.

The kinds are those of the study of tasks, and their models; memory is compared with what is expected of it.
"""

import argparse
from typing import Any

import torch

from benchmarks.provenance import save
from benchmarks.training import Entry, race
from grokscope.studies.tasks.experiments import CELLS


class Kind(Entry):
    """One kind of task: its process also says what memory it has taken."""

    memory: tuple[int, int] = (0, 0)

    def ask_memory(self) -> None:
        """Ask, when all rounds are done."""
        (child,) = self.children
        assert child.stdin is not None
        assert child.stdout is not None
        print("memory", file=child.stdin, flush=True)
        taken, expected = map(int, child.stdout.readline().split())
        self.memory = (taken, expected)

    def result(self) -> dict[str, Any]:
        """Median rates, memory, and the ratio of what was expected to what was taken."""
        row = {
            name: value for name, value in self.row({"training": 1.0, "measured": 1.0}).items() if "ratio" not in name
        }
        taken, expected = self.memory
        ratio = round(expected / taken, 3) if taken else None
        return row | {"task": CELLS[self.title].task, "bytes": taken, "expected": expected, "expected_ratio": ratio}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--runs", type=int, default=64)
    parser.add_argument("--precision", default="tf32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[*CELLS])
    chosen = parser.parse_args()
    kinds = [
        Kind(name, ["ours", "--runs", str(chosen.runs), "--precision", chosen.precision, "--cell", name], strides=1)
        for name in chosen.only
    ]
    race(kinds, chosen.device, chosen.rounds, 1.0, None, at_end=Kind.ask_memory if chosen.device != "cpu" else None)
    rows = [kind.result() for kind in kinds if not kind.failed]
    for row in rows:
        print(f"{row['title']:>16} {row['training']:>10,.0f} {row['measured']:>10,.0f} run-steps/s, "
              f"{row['bytes'] / 2**20:>8,.0f} MiB, expected {row['expected_ratio']} of it")  # fmt: skip
    failed = {kind.title: kind.failed for kind in kinds if kind.failed}
    print(*(f"failed: {title}: {why}" for title, why in failed.items()), sep="\n")
    record = {
        "rows": rows,
        "failed": failed,
        "runs": chosen.runs,
        "precision": chosen.precision,
        "rounds": chosen.rounds,
    }
    save(f"tasks-{chosen.device}", record, chosen.device)


if __name__ == "__main__":
    main()
