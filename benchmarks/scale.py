"""Sweeps of up to 100,000 runs, simulated: planning, remembering, listing and reporting against the number of runs.

Nothing is trained: folders and records are synthetic. Writes benchmarks/results/scale.json, and the tables of
docs/scale.md from it.
"""

import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.page import made_by, record, table
from benchmarks.provenance import save
from grokscope.executors import shards_of
from grokscope.experiments import Store, open_runs, remember, remembered, run_name
from grokscope.experiments.costs import cost_of
from grokscope.experiments.records import RunRecord, packed, unpacked
from grokscope.specs import Plan, RunSpec

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
BLOCK = re.compile(r"(<!-- scale: written by benchmarks/scale.py -->\n).*?(<!-- end of scale -->)", re.DOTALL)
SIZES = (1_000, 10_000, 100_000)
LISTED = 10_000  # folders on the disk; more only takes longer
OUTCOME = {"outcome": "grokked", "failed_at": None, "stopped_early": False, "memorized": 400, "grokked": 3000}


def specs(count: int) -> tuple[RunSpec, ...]:
    return tuple(RunSpec().with_seed(seed) for seed in range(count))


def timed(work: Any) -> tuple[float, Any]:
    """Seconds of the processor: this is all computing, and a busy machine must not count."""
    began = time.process_time()
    found = work()
    return round(time.process_time() - began, 3), found


def planning(count: int) -> dict[str, Any]:
    """From nothing to shards and costs, and the plan to the disk and back; in a process of its own, for its memory."""
    with tempfile.TemporaryDirectory() as folder:
        making, runs = timed(lambda: specs(count))
        cutting, shards = timed(lambda: shards_of(Plan(folder, runs)))
        costing, cost = timed(lambda: cost_of(Plan(folder, runs)))
        keeping, _ = timed(lambda: remember(Plan(folder, runs), Store(folder)))
        reading, plans = timed(lambda: remembered(Store(folder)))
        stored = next(Path(folder).glob("plans/*")).stat().st_size
    assert plans[0].runs == runs
    times = {"make": making, "cut": cutting, "cost": costing, "remember": keeping, "read back": reading}
    return {
        "runs": count,
        "shards": len(shards),
        "processor_seconds": times,
        "planning_processor_seconds": round(making + cutting + costing + keeping, 3),
        "plan_bytes": stored,
        "estimated_bytes_stored": cost.bytes_stored,
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def folders(path: Path, count: int) -> None:
    """Finished runs without weights."""
    text = json.dumps(OUTCOME)
    for spec in specs(count):
        folder = path / run_name(spec)
        folder.mkdir()
        (folder / "format").write_text("grokscope run 1\n")
        (folder / "spec.json").write_text(json.dumps(spec.to_dict(), indent=1, sort_keys=True))
        (folder / "outcome.json").write_text(text)


def listing(count: int) -> dict[str, Any]:
    place = Path(tempfile.mkdtemp())
    try:
        folders(place, count)
        seconds, rows = timed(lambda: open_runs(place).table())
        assert len(rows) == count
        finding, _ = timed(lambda: Store(place).find(RunSpec().with_seed(count - 1).content_hash))
    finally:
        shutil.rmtree(place)
    return {"runs": count, "table_processor_seconds": seconds, "find_processor_seconds": finding}


def reporting(count: int, looks: int = 151) -> dict[str, Any]:
    """Records of so many runs, packed, read and asked for their timelines."""
    steps = [100.0 * i for i in range(looks)]
    rising = [min(1.0, i / looks * 1.3) for i in range(looks)]
    log = {"step": steps, "train_accuracy": rising, "validation_accuracy": rising, "fsd": rising, "norm": steps}
    records = [RunRecord(spec, OUTCOME, log, {}) for spec in specs(count)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records"
        packing, content = timed(lambda: packed(records))
        path.write_bytes(content)
        reading, found = timed(lambda: unpacked(path))
    judging, _ = timed(lambda: [record.timeline for record in found])
    return {
        "runs": count,
        "log_rows": count * looks,
        "processor_seconds": {"pack": packing, "read": reading, "timelines": judging},
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def apart(name: str, count: int) -> dict[str, Any]:
    """A measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale", name, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(found), flush=True)
    return found


def tables() -> str:
    """The page's tables, from the stored measurement."""
    found = record("scale")
    measured = found["measured"]
    plans = [
        [
            f"{row['runs']:,}",
            f"{row['shards']:,}",
            f"{row['planning_processor_seconds']:.1f}",
            f"{row['processor_seconds']['read back']:.1f}",
            f"{row['plan_bytes'] / 1e6:.1f}",
            f"{row['peak_memory_bytes'] / 2**20:,.0f}",
        ]
        for row in measured["planning"]
    ]
    lists = [
        [f"{row['runs']:,}", f"{row['table_processor_seconds']:.1f}", f"{row['find_processor_seconds']:.2f}"]
        for row in measured["listing"]
    ]
    reports = [
        [
            f"{row['runs']:,}",
            f"{row['log_rows']:,}",
            *(f"{seconds:.1f}" for seconds in row["processor_seconds"].values()),
            f"{row['peak_memory_bytes'] / 2**20:,.0f}",
        ]
        for row in measured["reporting"]
    ]
    lines = [
        "",
        *table(["runs", "shards", "planning, s", "reading the plan, s", "plan, MB", "peak memory, MiB"], plans),
        "",
        *table(["runs on the disk", "table of all, s", "finding one, s"], lists),
        "",
        *table(["records", "log rows", "packing, s", "reading, s", "timelines, s", "peak memory, MiB"], reports),
        "",
        f"Seconds of one processor. {made_by(found)}",
        "",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    if len(sys.argv) == 3:
        print(
            json.dumps(
                {"planning": planning, "listing": listing, "reporting": reporting}[sys.argv[1]](int(sys.argv[2]))
            )
        )
        return
    measured = {
        "planning": [apart("planning", count) for count in SIZES],
        "listing": [apart("listing", count) for count in (1_000, LISTED)],
        "reporting": [apart("reporting", count) for count in (1_000, 10_000)],
    }
    save("scale", measured)
    PAGE.write_text(BLOCK.sub(lambda match: match[1] + tables() + match[2], PAGE.read_text()))


if __name__ == "__main__":
    main()
