"""`python -m grokscope.studies.foresight.rounds SPLIT --store RUNS --out FILE`: all runs of a split, in one command.

First the boundary: rounds of probes of all undecided cells together, each followed by the next fractions, until every
cell has its own. Then the rest, by kind, so that what is there after any time is whole cells. With `--limit SECONDS` it
stops in time and packs what has finished. The same command goes on where the store is still there; where it is lost,
`--from FILE ...` names what was packed before, which is not trained again. Development comes before the seal. Test
comes after it and needs it: `--seal SEAL.json`, which `progress` writes.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grokscope.errors import InputError
from grokscope.jobs.local import run_locally
from grokscope.jobs.worker import BAD_INPUT, TRY_AGAIN
from grokscope.runs.packing import unpack_records
from grokscope.runs.provenance import provenance
from grokscope.runs.records import RunRecord
from grokscope.runs.store import Store
from grokscope.specs import Membership, Plan
from grokscope.studies.foresight import OPTIONS, STUDY
from grokscope.studies.foresight.bisection import next_fraction
from grokscope.studies.foresight.cells import CELLS, TIMES, Split
from grokscope.studies.foresight.curves import pack_curves
from grokscope.studies.foresight.experiments import KINDS, kind_runs, planned_runs, probe_runs
from grokscope.studies.foresight.progress import Ended, ended_runs, plain_hash, replayed_probes
from grokscope.studies.foresight.sealing import require_seal
from grokscope.studies.part_run import LAST as ALARM_BEFORE
from grokscope.studies.part_run import Alarm
from grokscope.studies.run_set import Precision, Runs

__all__ = ["main", "short_budgets", "stages", "train_split"]

Train = Callable[[Plan], bool]
LAST = 60.0  # seconds of a limit for workers to stop and for packing
WORKERS = 2  # on an accelerator: one measures or compiles while the other trains


def stages(split: Split, precision: Precision, ended: Ended) -> Iterator[tuple[str, Runs]]:
    """The runs of one round of probes after another, then those of each kind; `ended` is read before each of them.

    Example::

        for kind, runs in stages("development", "tf32", ended):
            ended |= train(runs)
    """
    probes = replayed_probes(ended)
    while _is_undecided(split, probes):
        yield "boundary", probe_runs(split, probes, precision)
        before, probes = probes, replayed_probes(ended)
        if probes == before:  # a run is damaged
            break
    for kind in KINDS:
        yield kind, kind_runs(split, kind, probes, precision)


def train_split(
    split: Split, base: Plan, precision: Precision, ended: Mapping[str, bool], train: Train
) -> tuple[Plan, bool]:
    """The runs of a split that had not ended before, and whether all have now; `train` says it of a plan.

    The plan's own runs are not looked at.
    """
    known = dict(ended)
    plans: list[Plan] = []
    is_finished = True
    for kind, runs in stages(split, precision, known):
        left = {name: spec for name, spec in runs.items() if plain_hash(spec) not in known}
        if not left:
            continue
        made_for = tuple((Membership(STUDY.name, f"{split}-{kind}", name),) for name in left)
        plan = replace(base, runs=tuple(left.values()), made_for=made_for)
        plans.append(plan)
        is_finished = train(plan)
        known |= ended_runs(_outcomes(plan))
        if not is_finished:
            break
    members = {spec: one for plan in plans for spec, one in plan.memberships.items()}
    return replace(base, runs=tuple(members) or base.runs, made_for=tuple(members.values())), is_finished


def _outcomes(plan: Plan) -> Iterator[RunRecord]:
    """How the runs of a plan ended, without their evaluations."""
    store = Store(plan.out)
    for spec in plan.runs:
        outcome = store.locate(spec).outcome
        if outcome.is_finished:
            yield RunRecord(spec, outcome, {}, {})


def _is_undecided(split: Split, probes: Mapping[str, Mapping[float, float]]) -> bool:
    cells = [cell for cell in CELLS.values() if cell.split == split]
    return any(cell.bracket and not next_fraction(probes.get(cell.name, {}), cell.bracket)[1] for cell in cells)


def short_budgets(records: Sequence[RunRecord]) -> dict[str, tuple[int, float]]:
    """Cell → (budget, median step of grokking) where the budget is below five times that of the runs that grokked.

    >>> short_budgets([])
    {}
    """
    steps: dict[str, list[int]] = {}
    budgets: dict[str, int] = {}
    for record in records:
        cell = replace(record.spec.with_seed(0), train_fraction=0.5).content_hash
        grokked = record.outcome.grokked
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
    parser.add_argument("--from", dest="before", type=Path, nargs="*", default=[], help="files packed before")
    parser.add_argument("--seal", type=Path, help="the seal, SEAL.json; test runs need it")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", default="tf32", choices=("float32", "tf32", "bf16", "float64"))
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds after which it stops and packs")
    chosen = parser.parse_args(arguments)
    try:
        return _train_and_pack(chosen, time.monotonic())
    except InputError as error:
        print(f"grokscope: {error}", file=sys.stderr)
        return BAD_INPUT


def _train_and_pack(chosen: argparse.Namespace, started: float) -> int:
    planned = planned_runs(chosen.split, chosen.precision).values()
    sealed = require_seal(planned, chosen.seal)
    ended = ended_runs(record for path in chosen.before for record in unpack_records(path))

    def train(plan: Plan) -> bool:
        left = chosen.limit - LAST - (time.monotonic() - started)
        if left <= 0:
            return False
        print(f"{time.monotonic() - started:,.0f} s: {len(plan.runs):,} runs", flush=True)
        with Alarm(left + ALARM_BEFORE):  # which rings so long before
            return run_locally(plan, _notice, None if plan.device == "cpu" else WORKERS)

    base = Plan(chosen.store, (next(iter(CELLS.values())).spec,), chosen.device, **OPTIONS)
    plan, is_finished = train_split(chosen.split, base, chosen.precision, ended, train)
    records, made = [*_outcomes(plan)], provenance(plan.device)
    about = {"study": STUDY.name, "split": chosen.split, "commit": made["commit"], "device": made["device"], **sealed}
    for path, count in pack_curves(plan.out, [one.spec for one in records], chosen.out, about).items():
        print(f"wrote {path}: {count:,} runs, {path.stat().st_size:,} bytes")
    for name, (budget, median) in short_budgets(records).items():
        print(f"{name}: its budget of {budget:,} steps is below {TIMES} times its median, {median:,.0f}")
    facts = {"before": len(ended), "trained": len(records), "seconds": round(time.monotonic() - started)}
    print(json.dumps({"split": chosen.split, "is_finished": is_finished, **facts}))
    return 0 if is_finished else TRY_AGAIN


def _notice(line: dict[str, Any]) -> None:
    if "notice" in line:
        print(line["notice"], file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
