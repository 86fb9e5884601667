"""Sweeps of up to 100,000 runs, simulated: planning, indexing, listing, watching and reporting against their number.

Nothing is trained: folders and records are synthetic. Each measurement is made in a process of its own, for its memory.
Writes benchmarks/results/scale.json, and the tables of docs/scale.md from it. A hundred thousand runs are 500,000 small
files: set TMPDIR to a file system that has room for them, best one in memory.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from benchmarks import scale_page
from benchmarks.provenance import save
from benchmarks.scale_page import Facts
from benchmarks.synthetic import EVALUATIONS, synthetic_folders
from grokscope.errors import InputError
from grokscope.jobs.costs import cost_of
from grokscope.jobs.executors import shards_of
from grokscope.runs import Store, keep_plan, kept_plans, open_runs, run_name
from grokscope.runs.index import INDEX
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.packing import pack_records, unpack_records
from grokscope.runs.records import RunRecord
from grokscope.specs import Membership, Plan, RunSpec

SIZES = (1_000, 10_000, 100_000)
SOME = "add_mod97_s12"  # the seeds 12, 120 to 129, 1200 to 1299 …
SETTLE = 3.0  # seconds until the index trusts what was written
OUTCOME = {"outcome": "grokked", "failed_at": None, "stopped_early": False, "memorized": 400, "grokked": 3000}


def specs(count: int) -> tuple[RunSpec, ...]:
    return tuple(RunSpec().with_seed(seed) for seed in range(count))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor: this is all computing, and a busy machine must not count."""
    began = time.process_time()
    found = work()
    return round(time.process_time() - began, 3), found


def peak_memory() -> int:
    """The most bytes this process has held; what the one that started it held does not count."""
    told = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert told is not None
    return int(told[1]) * 1024


def planning(count: int, folder: Path) -> Facts:
    """From nothing to shards and costs, and the plan to the disk and back."""
    making, runs = timed(lambda: specs(count))
    cutting, shards = timed(lambda: shards_of(Plan(str(folder), runs)))
    costing, cost = timed(lambda: cost_of(Plan(str(folder), runs)))
    keeping, _ = timed(lambda: keep_plan(Plan(str(folder), runs), Store(folder)))
    reading, plans = timed(lambda: kept_plans(Store(folder)))
    assert plans[0].runs == runs
    return {
        "shards": len(shards),
        "processor_seconds": {"make": making, "cut": cutting, "cost": costing, "remember": keeping},
        "planning_processor_seconds": round(making + cutting + costing + keeping, 3),
        "reading_processor_seconds": reading,
        "plan_bytes": next(folder.glob("plans/*")).stat().st_size,
        "estimated_bytes_stored": cost.bytes_stored,
    }


def making(count: int, folder: Path) -> Facts:
    seconds, _ = timed(lambda: synthetic_folders(folder, count))
    time.sleep(SETTLE)
    return {"processor_seconds": seconds}


def indexing(count: int, folder: Path) -> Facts:
    """The first listing, which reads every run and writes the index."""
    (folder / INDEX).unlink(missing_ok=True)
    seconds, rows = timed(lambda: open_runs(folder).table())
    assert len(rows) == count
    return {"processor_seconds": seconds, "index_bytes": (folder / INDEX).stat().st_size}


def listing(count: int, folder: Path) -> Facts:
    """`grokscope list`, without the start of the process, and a run found by its hash."""
    from grokscope.cli.listing import list_runs

    seconds, lines = printed(lambda: list_runs(folder))
    assert lines >= count
    finding, _ = timed(lambda: Store(folder).find(next(iter(Store(folder))).spec.content_hash))
    return {"processor_seconds": seconds, "find_processor_seconds": finding}


def status(count: int, folder: Path) -> Facts:
    from grokscope.cli.status import status as command

    seconds, _ = printed(lambda: command(str(folder)))
    return {"processor_seconds": seconds}


def watching(count: int, folder: Path) -> Facts:
    """Two pictures of `grokscope watch`."""
    from grokscope.cli.watcher import Watcher

    had_index, watcher = (folder / INDEX).exists(), Watcher(folder)
    first, seen = timed(watcher.snapshot)
    assert sum(line.runs for line in seen.lines) == count
    following, _ = timed(watcher.snapshot)
    read = sum(run.is_read for run in watcher.follower.runs.values())
    return {"indexed": had_index, "first_processor_seconds": first, "next_processor_seconds": following, "logs": read}


def watching_unindexed(count: int, folder: Path) -> Facts:
    (folder / INDEX).unlink(missing_ok=True)
    return watching(count, folder)


def reporting(count: int, folder: Path) -> Facts:
    """`grokscope report` of everything: a page, or a refusal."""
    return page(folder, "")


def reporting_some(count: int, folder: Path) -> Facts:
    return page(folder, SOME)


def page(folder: Path, match: str) -> Facts:
    """What a page of the runs that match costs, or why there is none."""
    from grokscope.view.page import source_of, write_page

    path = folder / ".report.html"
    began = time.process_time()
    try:
        source = source_of(folder, match=match)
        size = write_page(path, source)
    except InputError as error:
        return {
            "refused": str(error).replace(str(folder), "runs"),
            "processor_seconds": round(time.process_time() - began, 3),
        }
    path.unlink()
    seconds = round(time.process_time() - began, 3)
    return {"shown": len(source.runs), "processor_seconds": seconds, "page_bytes": size}


def evidence(count: int, folder: Path) -> Facts:
    """Records of so many runs: packed, read, asked for their timelines, and placed in their experiment."""
    from grokscope.studies.evidence import place_records

    steps = [100.0 * i for i in range(EVALUATIONS)]
    rising = [min(1.0, i / EVALUATIONS * 1.3) for i in range(EVALUATIONS)]
    log = {"step": steps, "train_accuracy": rising, "validation_accuracy": rising, "fsd": rising, "norm": steps}
    path = folder / "some.records.gz"
    packing, content = timed(lambda: pack_records(_placed(spec, log) for spec in specs(count)))
    path.write_bytes(content)
    reading, found = timed(lambda: unpack_records(path))
    judging, _ = timed(lambda: [one.timeline for one in found])
    placing, _ = timed(lambda: place_records("scale", ("runs",), found))
    assert len(found) == count
    seconds = {"pack": packing, "read": reading, "timelines": judging, "evidence": placing}
    return {"log_rows": count * EVALUATIONS, "processor_seconds": seconds}


def _placed(spec: RunSpec, log: dict[str, list[float]]) -> RunRecord:
    """A finished run that belongs to an experiment."""
    made_for = (Membership("scale", "runs", run_name(spec)),)
    return RunRecord(spec, RunOutcome.from_dict(OUTCOME), log, {}, made_for)


def printed(work: Callable[[], Any]) -> tuple[float, int]:
    """Seconds of a command, and the lines it prints."""
    with tempfile.TemporaryFile("w+") as file:
        with redirect_stdout(file):
            seconds, _ = timed(work)
        file.seek(0)
        return seconds, sum(1 for _ in file)


def apart(work: Callable[[int, Path], Facts], count: int, folder: Path) -> Facts:
    """A measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale", work.__name__, str(count), str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: Facts = json.loads(done.stdout.splitlines()[-1])
    print(work.__name__, json.dumps(found), flush=True)
    return found


def measured(count: int) -> dict[str, Facts]:
    """Everything at one number of runs."""
    free = os.statvfs(tempfile.gettempdir())
    if free.f_favail < 6 * count + 10_000 or free.f_bavail * free.f_frsize < 30_000 * count:
        raise InputError(f"{tempfile.gettempdir()} has no room for {count:,} runs; set TMPDIR to a place that has")
    place = Path(tempfile.mkdtemp(prefix="grokscope-scale-"))
    found = {}
    try:
        for work in (planning, evidence):
            own = place / work.__name__
            own.mkdir()
            found[work.__name__] = apart(work, count, own)
            shutil.rmtree(own)
        runs = place / "runs"
        for work in (making, watching_unindexed, watching, indexing, listing, status, reporting, reporting_some):
            found[work.__name__] = apart(work, count, runs)
    finally:
        shutil.rmtree(place)
    return found


WORKS: tuple[Callable[[int, Path], Facts], ...] = (
    *(planning, evidence, making, watching_unindexed, watching, indexing, listing, status, reporting),
    reporting_some,
)


def main() -> None:
    if len(sys.argv) == 4:
        work = next(work for work in WORKS if work.__name__ == sys.argv[1])
        found = work(int(sys.argv[2]), Path(sys.argv[3]))
        print(json.dumps(found | {"peak_memory_bytes": peak_memory()}))
        return
    save("scale", [{"runs": count, **measured(count)} for count in SIZES])
    scale_page.main()


if __name__ == "__main__":
    main()
