"""How long it takes to list ten thousand runs: without an index, with one, after a change, and the whole command."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.provenance import save
from grokscope.runs import RunOutcome, Store, open_runs
from grokscope.runs.index import INDEX
from grokscope.specs import RunSpec

RUNS = 10_000
REPEATS = 5
ENDED = {"outcome": "grokked", "failed_at": None, "stopped_early": False, "memorized": 300, "grokked": 4000}
ROW = {"step": 0, "train_accuracy": 1.0, "validation_accuracy": 0.5, "norm": 30.0, "fsd": 0.4, "weight_decay": 1.0}


def synthetic(folder: Path, count: int) -> None:
    """Runs with a spec, a log of two rows and an outcome that names both, written without waiting for the disk."""
    with patch("os.fsync"):
        for seed in range(count):
            run = Store(folder).add(RunSpec().with_seed(seed))
            run.append(ROW)
            run.append({**ROW, "step": 100})
            run.finish(RunOutcome.from_dict(ENDED))


def seconds(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return round(clock() - start, 3)


def best(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    return min(seconds(work, clock) for _ in range(REPEATS))


def process(*arguments: str) -> dict[str, float]:
    """A whole process, a fresh interpreter to its end: by the clock, and what it had of a processor; others may too."""

    def work() -> None:
        subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)

    return {"wall (s)": best(work), "processor (s)": best(work, clock=children)}


def children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure, print and store."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "runs"
        synthetic(folder, RUNS)
        time.sleep(3)  # until what was written counts as settled

        def table() -> None:
            rows = open_runs(folder).table()
            assert len(rows) == RUNS
            assert all(row["problem"] is None for row in rows)

        measured: dict[str, Any] = {"runs": RUNS, "first listing (s)": seconds(table), "listing (s)": best(table)}
        for name in Store(folder).names()[:100]:
            Store(folder).folder(name).finish(RunOutcome.from_dict(ENDED))
        measured["listing after 100 runs changed (s)"] = seconds(table)
        time.sleep(3)
        table()
        measured["index (bytes)"] = (folder / INDEX).stat().st_size
        measured["`grokscope list`, the whole process"] = process("-m", "grokscope", "list", str(folder))
        measured["`grokscope --version`, the whole process"] = process("-m", "grokscope", "--version")
        measured["`import grokscope`, the whole process"] = process("-c", "import grokscope")
    measured["processes that wanted a processor meanwhile"] = round(os.getloadavg()[0], 1)
    measured["processors"] = os.cpu_count()
    for name, value in measured.items():
        print(f"{name:>50}: {value}")
    save("listing", measured)


if __name__ == "__main__":
    main()
