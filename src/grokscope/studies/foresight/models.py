"""`python -m grokscope.studies.foresight.models --store RUNS --out FOLDER`: weights of twelve named development cells.

The collection keeps no weights. One run of each of these cells is trained again, with checkpoints, and all are written
as one file, `models.safetensors`: a tensor is named CELL/NAME, and its first axis is the steps in `models.json`.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from grokscope.errors import InputError, require
from grokscope.files import make_folder, write_atomically
from grokscope.jobs.local import run_locally
from grokscope.jobs.worker import BAD_INPUT, TRY_AGAIN
from grokscope.runs.runs import Run
from grokscope.runs.store import Store
from grokscope.specs import Cadence, Plan, RunSpec
from grokscope.studies.foresight.cells import CELLS
from grokscope.studies.run_set import Precision
from grokscope.training.checkpoint import export_tensors

__all__ = ["EARLIER", "NAMED", "main", "model_runs", "write_models"]

EARLIER = (500, 1000, 2000)  # steps of the first four, beside the last: memorised, and on the way
NAMED = (
    *("add_mod97-w2-f0.4", "sub_mod97-w2-f0.4", "mult_mod97-w2-f0.4", "norm-held-w4"),
    *("add_mod97-w4-f0.4", "sub_mod97-w4-f0.6", "add_mod97-r0.003-w1", "add_mod97-d32-l1", "add_mod97-d128-l1"),
    *("add_mod59-w1-f0.3", "shuffled-w2", "latin97-w2"),
)


def model_runs(precision: Precision) -> dict[str, RunSpec]:
    """Cell → its run of seed 0, with the checkpoints that are written.

    >>> len(model_runs("tf32")), model_runs("tf32")["norm-held-w4"].checkpoints.at
    (12, (500, 1000, 2000))
    """
    found = {}
    for place, name in enumerate(NAMED):
        require(CELLS[name].split == "development", "weights are kept of development cells alone", name)
        checkpoints = Cadence(every=None, at=EARLIER if place < 4 else ())
        found[name] = replace(CELLS[name].run(0), precision=precision, checkpoints=checkpoints)
    return found


def write_models(runs: Mapping[str, RunSpec], store: Store, folder: Path) -> list[Path]:
    """Write the weights of runs that have ended, stacked over their steps, and what they are.

    Example::

        write_models(model_runs("tf32"), Store("runs"), Path("results/foresight/checkpoints"))
    """
    tensors: dict[str, torch.Tensor] = {}
    about: dict[str, Any] = {}
    for name, spec in runs.items():
        run = Run(store.find(spec.content_hash))
        steps = [step for step in run.steps if step > 0]
        states = [dict(run.module(step).state_dict()) for step in steps]
        tensors |= {f"{name}/{key}": torch.stack([state[key] for state in states]) for key in states[0]}
        outcome = run.record.outcome
        facts = {"memorized": outcome.memorized, "grokked": outcome.grokked, "made_with": outcome.provenance}
        about[name] = {"steps": steps, **facts, "spec": spec.to_dict()}
    make_folder(folder)
    paths = [folder / "models.safetensors", folder / "models.json"]
    export_tensors(paths[0], tensors)
    write_atomically(paths[1], (json.dumps(about, indent=1) + "\n").encode())
    return paths


def main(arguments: Sequence[str] | None = None) -> int:
    """Train the runs and write their weights; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m grokscope.studies.foresight.models", description=__doc__)
    parser.add_argument("--store", required=True, help="the folder of runs")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the two files")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", default="tf32", choices=("float32", "tf32", "bf16", "float64"))
    chosen = parser.parse_args(arguments)
    try:
        runs = model_runs(chosen.precision)
        plan = Plan(chosen.store, tuple(runs.values()), chosen.device, keep="weights", stop_after_grokking=2000)
        if not run_locally(plan, lambda line: None):
            return TRY_AGAIN
        for path in write_models(runs, Store(chosen.store), chosen.out):
            print(f"wrote {path}: {path.stat().st_size:,} bytes")
    except InputError as error:
        print(f"grokscope: {error}", file=sys.stderr)
        return BAD_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(main())
