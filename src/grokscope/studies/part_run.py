"""`python -m grokscope.studies.part_run --spec part-03.json --out part-03.records.gz`: train a part and pack it.

The file is what `grokscope reproduce STUDY --part K --plan-only FILE` writes. It needs the core packages only, so a
machine that is lent for minutes has to install nothing. With `--limit SECONDS` it stops in time and packs what has
finished; the same command continues where the runs are still there. The exit status is 75 if anything is left.
"""

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grokscope.errors import InputError
from grokscope.files import named, read_json, write_atomically
from grokscope.jobs.local import run_locally
from grokscope.jobs.worker import BAD_INPUT, TRY_AGAIN
from grokscope.runs.packing import finished_records, save_records
from grokscope.runs.provenance import provenance
from grokscope.runs.records import RunRecord
from grokscope.specs import Plan
from grokscope.studies.forks_check import ForksCheck, check_forks

__all__ = ["Alarm", "main", "pack_part", "read_part", "slim", "write_part"]

EVERY = 20.0  # seconds between lines that say how far it is
WORKERS = 2  # on an accelerator: stacks of 512 runs, and what is measured of them, fit twice into an H200's memory
LAST = 60.0  # seconds of a limit in which some hundred runs store their states, and all is packed
SOON = 20.0  # seconds of a limit in which what is there is packed


def write_part(path: Path, about: Mapping[str, Any], plan: Plan) -> None:
    """Write what a part is, with its plan, as one file of JSON.

    Example::

        write_part(Path("part-03.json"), part.head, part.plan)
    """
    if path.exists():
        raise InputError(f"{named(path)} exists already; nothing was overwritten")
    write_atomically(path, json.dumps({"about": dict(about), "plan": plan.to_dict()}).encode())


def read_part(path: Path) -> tuple[dict[str, Any], Plan]:
    """What a part is, and its plan.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.specs import RunSpec
    >>> with TemporaryDirectory() as folder:
    ...     write_part(Path(folder, "part.json"), {"part": 3}, Plan("runs", (RunSpec(),)))
    ...     read_part(Path(folder, "part.json"))[0]
    {'part': 3}
    """
    found = read_json(path, dict)
    if not isinstance(about := found.get("about"), dict) or "plan" not in found:
        raise InputError(f"{named(path)} is no part as `grokscope reproduce STUDY --part K --plan-only FILE` writes it")
    return about, Plan.from_dict(found["plan"])


def pack_part(about: Mapping[str, Any], plan: Plan, path: Path, seconds: float) -> ForksCheck:
    """Pack what is finished of a part, with its forks compared with their parents, and what it was made with.

    Where the part names `columns`, those alone are kept of its evaluations, and no checkpoints.

    Example::

        print(pack_part(part.head, part.plan, Path("part-03.records.gz"), seconds=312.5))
    """
    records = finished_records(plan)
    found, made = check_forks(records), provenance(plan.device)
    steps = sum(one.spec.training.steps - (one.spec.fork.step if one.spec.fork else 0) for one in records)
    head = {
        **about,
        "finished": len(records),
        "commit": ", ".join(_commits(records)) or made["commit"],
        "device": made["device"],
        "run_steps": steps,
        "seconds": round(seconds, 1),
        "forks": found.to_dict(),
    }
    columns = about.get("columns")
    save_records(path, records if columns is None else [slim(one, columns) for one in records], head)
    return found


def _commits(records: Sequence[RunRecord]) -> list[str]:
    """The commits that trained these runs: several, where a part was continued after its source had moved on."""
    return sorted({str(record.outcome.provenance.get("commit")) for record in records})


def slim(record: RunRecord, columns: Sequence[str]) -> RunRecord:
    """A record with these columns of its evaluations alone: thousands of runs with all are a hundred megabytes.

    >>> from grokscope.runs.outcome import RunOutcome
    >>> from grokscope.specs import RunSpec
    >>> [*slim(RunRecord(RunSpec(), RunOutcome(), {"step": [0], "norm": [50.0]}, {}), ("step",)).evaluations]
    ['step']
    """
    kept = {name: values for name, values in record.evaluations.items() if name in columns}
    return replace(record, evaluations=kept, checkpoints={})


def main(arguments: Sequence[str] | None = None) -> int:
    """Train what is missing of a part, and pack it; the exit status."""
    started = time.monotonic()
    parser = argparse.ArgumentParser(prog="python -m grokscope.studies.part_run", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="the part, as `--part K --plan-only FILE` writes it")
    parser.add_argument("--out", type=Path, required=True, help="the file of records, FILE.records.gz")
    parser.add_argument("--limit", type=float, help="seconds after which it stops and packs what has finished")
    parser.add_argument(
        "--workers", type=int, help="processes; on an accelerator two, of which one measures or compiles"
    )
    chosen = parser.parse_args(arguments)
    try:
        about, plan = read_part(chosen.spec)
        with Alarm(chosen.limit, LAST):
            workers = chosen.workers or (None if plan.device == "cpu" else WORKERS)
            is_finished = run_locally(plan, _progress_of(plan), workers)
        found = pack_part(about, plan, chosen.out, time.monotonic() - started)
    except InputError as error:
        print(f"grokscope: {error}", file=sys.stderr)
        return BAD_INPUT
    seconds, size = time.monotonic() - started, chosen.out.stat().st_size
    print(f"{len(plan.runs):,} runs in {seconds:,.0f} s\n{found}\nwrote {chosen.out}: {size:,} bytes")
    return 0 if is_finished else TRY_AGAIN


class Alarm:
    """Interrupts this process as Ctrl-C does, some time before a limit; also one that ignores Ctrl-C.

    A shell lets what it starts in the background ignore it.
    """

    def __init__(self, limit: float | None, before: float = SOON) -> None:
        seconds = None if limit is None else max(0.1, limit - before)
        self.timer = None if seconds is None else threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
        self.was = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> None:
        if self.timer is not None:
            if self.was is signal.SIG_IGN:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            self.timer.daemon = True
            self.timer.start()

    def __exit__(self, *error: object) -> None:
        if self.timer is not None:
            self.timer.cancel()
            if self.was is signal.SIG_IGN:
                signal.signal(signal.SIGINT, signal.SIG_IGN)


def _progress_of(plan: Plan) -> Callable[[dict[str, Any]], None]:
    """Prints notices at once, and now and then how many steps have been taken."""
    begins = {spec.content_hash: spec.fork.step if spec.fork else 0 for spec in plan.runs}
    total = sum(spec.training.steps - begins[spec.content_hash] for spec in plan.runs)
    reached: dict[str, int] = {}
    shown = started = time.monotonic()

    def report(line: dict[str, Any]) -> None:
        nonlocal shown
        if "notice" in line:
            print(line["notice"], file=sys.stderr, flush=True)
        if "step" in line:
            reached[line["run"]] = line["step"] - begins.get(line["run"].rpartition("-")[2], 0)
        now = time.monotonic()
        if now - shown > EVERY:
            shown, taken = now, sum(reached.values())
            print(f"{now - started:,.0f} s: {taken:,} of {total:,} steps", flush=True)

    return report


if __name__ == "__main__":
    sys.exit(main())
