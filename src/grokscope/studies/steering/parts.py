"""The study in parts of a few minutes of an accelerator each, trained with the core packages only.

`python -m grokscope.studies.steering.parts --list` names them; `… tuning-muon --out results/steering` trains one, and
packs its records into `part-01.records.gz` there. With `--limit SECONDS` it stops in time and packs what has finished;
the same command continues where the runs still are. `--list --from results/steering` says what is missing there.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.jobs.worker import BAD_INPUT
from grokscope.specs import Membership, Plan, RunSpec
from grokscope.studies import part_run
from grokscope.studies.parts import Part, missing_parts, part_file
from grokscope.studies.steering import STUDY
from grokscope.studies.steering.arms import FAMILIES, chosen_settings
from grokscope.studies.steering.device_time import device_seconds
from grokscope.studies.steering.experiments import CELLS, UNSEEN
from grokscope.training.devices import is_available

__all__ = ["COLUMNS", "PARTS", "main", "part_of", "plan_of"]

# All that the study's quantities read: seven to eight thousand runs with every column would be a hundred megabytes.
COLUMNS = ("step", "train_accuracy", "validation_accuracy", "weight_decay")
CHANGED_GRADIENTS = ("Grokfast", "orthogonal gradient")
MUON = tuple(family for family in FAMILIES if family.startswith("Muon"))
PLAIN = tuple(family for family in FAMILIES if family not in (*MUON, *CHANGED_GRADIENTS))

SHARED = {"published": ("accelerators",)}  # other studies that these runs are made for, under the same names

Chosen = Callable[[str, str], bool]
"""Whether a part has a run, by its cell and its arm."""


def _families(*families: str) -> Chosen:
    return lambda cell, arm: arm.partition("/")[0] in families


def _tasks(*tasks: str, model: str = "") -> Chosen:
    """Cells of these tasks; with the other model alone, or with the base's alone, where that is said."""

    def is_chosen(cell: str, arm: str) -> bool:
        is_model = not model or (CELLS[cell].condition == OTHER_MODEL) == (model == "other")
        return CELLS[cell].task in tasks and is_model

    return is_chosen


def _all(cell: str, arm: str) -> bool:
    return True


OTHER_MODEL = "other model"
TABLES = tuple(task for task in UNSEEN if task not in ("parity_n30_k3", "twohop_e100_d10_phi7"))
# Runs of one model and update share a stack whatever their task, so parts are cut by models: stacks are full then. They
# are in the order in which they are wanted: all others need the tuning, and of two hops the least is expected.
PARTS: dict[str, tuple[str, Chosen]] = {
    "tuning-muon": ("tuning", _families(*MUON)),
    "tuning-plain-1": ("tuning", _families(*PLAIN[:4])),
    "tuning-plain-2": ("tuning", _families(*PLAIN[4:])),
    "tuning-gradients": ("tuning", _families(*CHANGED_GRADIENTS)),
    "final-1": ("final", _tasks("add_mod71", "add_mod113", model="base")),
    "final-2": ("final", _tasks("sub_mod97", "div_mod97", model="base")),
    "final-3": ("final", _tasks("poly_a2+b2_mod97", "A5", model="base")),
    "final-4": ("final", _tasks("Aff11", "add_mod97", "S5", model="base")),
    "final-other-model": ("final", _tasks(*TABLES, model="other")),
    "final-parity": ("final", _tasks("parity_n30_k3")),
    "hindsight": ("hindsight", _all),
    "published": ("published", _all),
    "ablation": ("ablation", _all),
    "cadence": ("cadence", _all),
    "final-twohop": ("final", _tasks("twohop_e100_d10_phi7")),
}


def plan_of(part: str, out: str, device: str = "cpu", precision: Any = "float32", n_seeds: int | None = None) -> Plan:
    """A part's plan.

    >>> len(plan_of("tuning-gradients", "runs", n_seeds=1).runs)
    48
    """
    if part not in PARTS:
        raise InputError(f"the study has no part {shown(part)}{did_you_mean(part, PARTS)}; --list names them")
    experiment, is_chosen = PARTS[part]
    known = STUDY.experiments[experiment](n_seeds, precision)
    shared = experiment in ("published", "ablation")
    earlier = set(STUDY.experiments["final"](n_seeds, precision).values()) if shared else set()
    runs = {name: run for name, run in known.items() if is_chosen(*name.partition("/")[::2]) and run not in earlier}
    if not runs and chosen_settings():
        raise InputError(f"{part} has no runs, for what the tuning runs chose has nothing to vary there")
    if not runs:
        raise InputError(f"{part} needs the arms that the tuning runs choose: run grokscope.studies.steering.choice")
    places = _memberships(n_seeds, precision)
    return Plan(out, tuple(runs.values()), device, keep="none", made_for=tuple(places[run] for run in runs.values()))


def _memberships(n_seeds: int | None, precision: Any) -> dict[RunSpec, tuple[Membership, ...]]:
    """What each run is made for: one that several experiments have is trained once, for all of them."""
    found: dict[RunSpec, tuple[Membership, ...]] = {}
    for experiment, runs_of in STUDY.experiments.items():
        studies = (STUDY.name, *SHARED.get(experiment, ()))
        for name, run in runs_of(n_seeds, precision).items():
            own = tuple(Membership(study, experiment, name) for study in studies)
            found[run] = (*found.get(run, ()), *own)
    return found


def part_of(name: str, plan: Plan) -> Part:
    """A part with its number, by which its file is named, and what it is estimated to take.

    >>> part_of("tuning-gradients", plan_of("tuning-gradients", "runs", n_seeds=1)).number
    4
    """
    return Part(STUDY.name, [*PARTS].index(name) + 1, len(PARTS), name, plan, device_seconds(plan.runs))


def count_steps(runs: Sequence[RunSpec]) -> int:
    """Optimiser steps of all runs.

    >>> count_steps([RunSpec()])
    15000
    """
    return sum(run.training.steps for run in runs)


def _list(precision: str, n_seeds: int | None, folder: Path | None) -> int:
    """Print every part that is known, and with a folder what is wrong with those in it; 1 if anything is."""
    known, lacking = list[Part](), dict[str, str]()
    for name in PARTS:
        try:
            known.append(part_of(name, plan_of(name, "runs", precision=precision, n_seeds=n_seeds)))
        except InputError as error:
            lacking[name] = str(error)
    problems = {} if folder is None else _problems(known, folder)
    parts = {part.title: part for part in known}
    for number, name in enumerate(PARTS, start=1):
        if name in lacking:
            print(f"{number:>2} {name:<18} {lacking[name]}")
            continue
        part = parts[name]
        state = "" if folder is None else f"  {problems.get(number, 'here')}"
        runs, steps = len(part.plan.runs), count_steps(part.plan.runs)
        print(f"{number:>2} {name:<18} {runs:>6,} runs {steps:>11,} steps {part.seconds:>5,.0f} s of an H200{state}")
    print("Seconds are estimates from operation counts and measured speeds in TF32, without starting and compiling.")
    return 1 if problems else 0


def _problems(parts: Sequence[Part], folder: Path) -> dict[int, str]:
    """What is wrong with each part; the choice is committed between the tuning and all others."""
    is_tuning = {part.number: PARTS[part.title][0] == "tuning" for part in parts}
    groups = [[part for part in parts if is_tuning[part.number] is group] for group in (True, False)]
    return {number: problem for own in groups for number, problem in missing_parts(own, folder).items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Train a part, and pack its records; the exit status, 75 if anything is left."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.studies.steering.parts", description=__doc__)
    parser.add_argument("part", nargs="?", help="a part of the study")
    parser.add_argument("--list", action="store_true", help="name the parts, with runs, steps and device-seconds")
    parser.add_argument("--from", dest="source", type=Path, help="with --list: the folder of packed parts to look at")
    parser.add_argument("--out", type=Path, help="the folder for the packed records")
    parser.add_argument("--runs", type=Path, default=Path("runs/steering"), help="the folder for the runs themselves")
    parser.add_argument("--limit", type=float, help="seconds after which it stops and packs what has finished")
    parser.add_argument("--workers", type=int, help="processes; on an accelerator two")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--precision", default="tf32", choices=("tf32", "float32", "bf16", "float64"))
    parser.add_argument("--n-seeds", type=int, help="seeds of every arm; the study's own if not given")
    given = parser.parse_args(arguments)
    try:
        if given.list:
            return _list(given.precision, given.n_seeds, given.source)
        if given.part is None or given.out is None:
            raise InputError("name a part, as --list lists them, and the folder for its records with --out")
        if not is_available(given.device):
            raise InputError(f"this machine has no device {given.device}; use --device cpu")
        plan = plan_of(given.part, str(given.runs / given.part), given.device, given.precision, given.n_seeds)
    except InputError as error:
        print(f"grokscope: {error}", file=sys.stderr)
        return BAD_INPUT
    options = {"--limit": given.limit, "--workers": given.workers}
    return _train(part_of(given.part, plan), given.out, [f"{k}={v}" for k, v in options.items() if v is not None])


def _train(part: Part, out: Path, options: Sequence[str]) -> int:
    """As parts of every study are trained and packed, with the columns that are read alone."""
    out.mkdir(parents=True, exist_ok=True)
    print(f"{part.title}: {len(part.plan.runs):,} runs, {count_steps(part.plan.runs):,} steps", flush=True)
    with TemporaryDirectory() as folder:
        spec = Path(folder, "part.json")
        part_run.write_part(spec, part.head | {"title": part.title, "columns": [*COLUMNS]}, part.plan)
        return part_run.main(["--spec", str(spec), "--out", str(part_file(out, part.number)), *options])


if __name__ == "__main__":
    sys.exit(main())
