"""`python -m grokscope.studies.foresight.rounds SPLIT --store RUNS --out FILE`: all runs of a split, in one command.

First the boundary: rounds of probes of all undecided cells together, each followed by the next fractions, until every
cell has its own. Then the rest, by kind, so that what is there after any time is whole cells. What has finished is kept
in the store, where the same command goes on, and packed. With `--limit SECONDS` it stops in time. Development comes
before the seal, and test after it (`progress`).
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grokscope.files import write_json
from grokscope.jobs.local import run_locally
from grokscope.jobs.worker import TRY_AGAIN
from grokscope.runs.packing import finished_records, save_records
from grokscope.runs.provenance import provenance
from grokscope.runs.records import RunRecord
from grokscope.specs import Plan
from grokscope.studies.foresight import OPTIONS
from grokscope.studies.foresight.bisection import next_fraction
from grokscope.studies.foresight.cells import CELLS, TIMES, Split
from grokscope.studies.foresight.experiments import KINDS, kind_runs, known_probes, probe_runs
from grokscope.studies.foresight.progress import probed_shares
from grokscope.studies.run_set import Precision

__all__ = ["main", "short_budgets", "train_split"]

Probes = Mapping[str, Mapping[float, float]]
Train = Callable[[Plan], bool]
LAST = 30.0  # seconds of a limit for packing
WORKERS = 2  # on an accelerator: one measures or compiles while the other trains


def train_split(split: Split, store: str, precision: Precision, device: str, train: Train) -> tuple[Probes, Plan, bool]:
    """Probes, all runs that were planned, and whether all are trained; `train` says whether a plan was finished."""
    probes: dict[str, dict[float, float]] = known_probes()
    plan = Plan(store, tuple(probe_runs(split, probes, precision).values()), device, **OPTIONS)
    while plan.runs and (undecided := _undecided(split, probes)):
        if not train(plan):
            return probes, plan, False
        for name, found in probed_shares(finished_records(plan)).items():
            probes[name] = probes.get(name, {}) | found
        if _undecided(split, probes) == undecided and not _has_new(plan, split, probes, precision):
            break
        plan = replace(plan, runs=tuple(probe_runs(split, probes, precision).values()))
    everything: dict[str, Any] = {}
    for kind in KINDS:
        everything |= {spec.content_hash: spec for spec in kind_runs(split, kind, probes, precision).values()}
        plan = replace(plan, runs=tuple(everything.values()))
        if not train(plan):
            return probes, plan, False
    return probes, plan, True


def _undecided(split: Split, probes: Probes) -> list[str]:
    cells = [cell for cell in CELLS.values() if cell.split == split and cell.bracket is not None]
    return [
        cell.name for cell in cells if cell.bracket and not next_fraction(probes.get(cell.name, {}), cell.bracket)[1]
    ]


def _has_new(plan: Plan, split: Split, probes: Probes, precision: Precision) -> bool:
    return not {*probe_runs(split, probes, precision).values()} <= {*plan.runs}


def short_budgets(records: Sequence[RunRecord]) -> dict[str, tuple[int, float]]:
    """Cell → (budget, median step of grokking) where the budget is below five times that of the runs that grokked.

    >>> short_budgets([])
    {}
    """
    steps: dict[str, list[int]] = {}
    budgets: dict[str, int] = {}
    for record in records:
        cell = replace(record.spec.with_seed(0), train_fraction=0.5).content_hash
        grokked = record.timeline.grokked
        key = f"{record.spec.task} λ={record.spec.training.weight_decay:g} {cell[:6]} {record.spec.train_fraction:g}"
        budgets[key] = record.spec.training.steps
        if grokked is not None:
            steps.setdefault(key, []).append(grokked)
    medians = {key: float(sorted(found)[len(found) // 2]) for key, found in steps.items()}
    return {key: (budgets[key], median) for key, median in medians.items() if budgets[key] < TIMES * median}


def main(arguments: Sequence[str] | None = None) -> int:
    """Train a split and pack it; the exit status, 75 if anything is left."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.studies.foresight.rounds", description=__doc__)
    parser.add_argument("split", choices=("development", "test"))
    parser.add_argument("--store", required=True, help="the folder of runs")
    parser.add_argument("--out", type=Path, required=True, help="the file of records, FILE.records.gz")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", default="tf32", choices=("float32", "tf32", "bf16", "float64"))
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds after which it stops and packs")
    chosen = parser.parse_args(arguments)
    started = time.monotonic()

    def train(plan: Plan) -> bool:
        left = chosen.limit - LAST - (time.monotonic() - started)
        if left <= 0:
            return False
        from grokscope.studies.part_run import Alarm

        print(f"{time.monotonic() - started:,.0f} s: {len(plan.runs):,} runs", flush=True)
        with Alarm(left):
            return run_locally(plan, lambda line: None, None if plan.device == "cpu" else WORKERS)

    probes, plan, is_finished = train_split(chosen.split, chosen.store, chosen.precision, chosen.device, train)
    records, made = finished_records(plan), provenance(plan.device)
    about = {"study": "foresight", "split": chosen.split, "planned": len(plan.runs), "finished": len(records)}
    save_records(chosen.out, records, about | {"commit": made["commit"], "device": made["device"]})
    boundaries = {name: {f"{one:g}": share for one, share in found.items()} for name, found in probes.items()}
    write_json(chosen.out.with_name("boundaries.json"), boundaries)
    for name, (budget, median) in short_budgets(records).items():
        print(f"{name}: its budget of {budget:,} steps is below {TIMES} times its median, {median:,.0f}")
    steps = sum(max(record.evaluations["step"]) for record in records)
    print(json.dumps(about | {"steps": steps, "seconds": round(time.monotonic() - started)}))
    return 0 if is_finished else TRY_AGAIN


if __name__ == "__main__":
    sys.exit(main())
