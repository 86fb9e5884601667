"""The parts of a study: listed with what they cost and which are there, and trained one at a time."""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grokscope.cli.columns import print_columns
from grokscope.cli.frames import duration
from grokscope.cli.options import ExecutorOptions, HardwareOptions, Precision
from grokscope.cli.plans import INTERRUPTED, device_here, estimate, run_with_progress
from grokscope.cli.study_runs import RUNS, mark_folder
from grokscope.errors import InputError, plural
from grokscope.studies import Study
from grokscope.studies.part_claims import claims_by_part
from grokscope.studies.part_run import pack_part, write_part
from grokscope.studies.parts import Part, missing_parts, part_file, parts_of
from grokscope.version import __version__

__all__ = ["print_parts", "train_part"]

INCOMPLETE = 1
LARGEST = 16 * 2**20  # bytes of a packed file that a lent machine hands back


def print_parts(
    study: Study, folders: Sequence[Path], precision: Precision | None, n_seeds: int | None, as_json: bool
) -> None:
    """Print every part with its runs, steps and time, and what is wrong with those in a folder; 1 if anything is."""
    if len(folders) > 1:
        raise InputError(f"--list-parts reads one folder of packed parts, got {len(folders)}")
    parts = parts_of(study, precision or "tf32", n_seeds=n_seeds)
    problems = missing_parts(parts, folders[0]) if folders else {}
    decided = claims_by_part(study, parts)
    rows = [
        _row(part, decided[part.number]) | ({"state": problems.get(part.number, "here")} if folders else {})
        for part in parts
    ]
    if as_json:
        print(json.dumps(rows, ensure_ascii=False))
    else:
        heads = [name for name in rows[0] if name not in ("of", "digest")]
        print_columns(
            heads, [[_written(head, row[head]) for head in heads] for row in rows], right=frozenset(heads[1:5])
        )
        total = sum(part.seconds for part in parts)
        print(
            f"{plural(len(parts), 'part')}, {sum(len(part.plan.runs) for part in parts):,} runs, "
            f"{sum(part.steps for part in parts):,} optimiser steps in all: about {duration(total)} on one H200 by "
            "measured speeds and guessed times of the measures, without compiling"
        )
        if any(decided.values()):
            print("claims: how many can be judged on all their runs with this part and those before it, and not before")
    if problems:
        print(f"{plural(len(problems), 'part')} of {len(parts)} missing or not usable", file=sys.stderr)
        sys.exit(INCOMPLETE)


def train_part(
    study: Study,
    number: int,
    out: Path,
    *,
    n_seeds: int | None,
    precision: Precision | None,
    hardware: HardwareOptions,
    executor: ExecutorOptions,
    dry_run: bool,
    plan_only: Path | None,
    seal: Path | None,
) -> None:
    """Train one part of a study, compare its forks with their parents, and pack its records; or print its cost."""
    started = time.monotonic()
    elsewhere = dry_run or plan_only is not None or executor.executor != "local"
    place = device_here(hardware.device, elsewhere=elsewhere)
    arithmetic: Precision = precision or ("tf32" if place == "cuda" or elsewhere else "float32")
    parts = parts_of(study, arithmetic, place, str(out / RUNS), n_seeds)
    if not 1 <= number <= len(parts):
        raise InputError(f"--part must lie in 1 to {len(parts)}, the parts of {study.name}, got {number}")
    part = parts[number - 1]
    if dry_run:
        print(f"part {part.number} of {part.of}: {estimate(part.plan)}")
        return
    study.check_training(part.plan.runs, seal)
    if plan_only is not None:
        write_part(plan_only, part.head, part.plan)
        print(
            f"wrote part {part.number} of {part.of}, {plural(len(part.plan.runs), 'run')} on {place}; train and pack "
            f"it with: python -m grokscope.studies.part_run --spec {plan_only} --out {part_file(Path(), part.number)}"
        )
        return
    mark_folder(out, {"grokscope": __version__, "study": study.name, "precision": arithmetic, "quick": False})
    print(f"part {part.number} of {part.of}: {estimate(part.plan)}", file=sys.stderr)
    is_finished = run_with_progress(part.plan, executor=executor)
    path = part_file(out, part.number)
    found = pack_part(part.head, part.plan, path, time.monotonic() - started)
    size = path.stat().st_size
    print(f"{plural(len(part.plan.runs), 'run')} in {time.monotonic() - started:,.0f} s\n{found}")
    print(f"wrote {path}: {size:,} bytes")
    if size > LARGEST:
        print(f"{path} is larger than {LARGEST:,} bytes", file=sys.stderr)
    if not is_finished:
        print("stopped; everything is stored: continue with the same command")
        sys.exit(INTERRUPTED)


def _row(part: Part, claims: Sequence[str]) -> dict[str, Any]:
    members = dict.fromkeys(member.experiment for own in part.plan.made_for for member in own)
    return {
        "part": part.number,
        "runs": len(part.plan.runs),
        "steps": part.steps,
        "seconds": round(part.seconds),
        "claims": list(claims),
        "of": part.title,
        "experiments": list(members),
        "digest": part.digest,
    }


def _written(head: str, value: Any) -> str:
    if head == "claims":
        return str(len(value))
    return f"{value:,}" if isinstance(value, int) else ", ".join(value) if isinstance(value, list) else str(value)
