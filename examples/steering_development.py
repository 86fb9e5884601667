"""Strong decay from the first step and from memorisation on, by the two tasks on which `fast` is developed.

Addition mod 31 by the small transformer of `make demo`, and addition mod 23 by an MLP of two hidden layers, each with
eight seeds by our engine: strong decay from the first step, and strong decay that begins when the training set is
learnt. The rule by which one is preferred stands in docs/studies/steering.md; it was written before these runs, and
here it is computed. What was found is written as JSON.

    python examples/steering_development.py --out results/steering_development/cpu.json
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from grokscope.files import write_atomically
from grokscope.jobs import run_all
from grokscope.runs import Store, run_name
from grokscope.runs.provenance import provenance
from grokscope.specs import Architecture, Cadence, Release, RunSpec, Training
from grokscope.stats import kaplan_meier
from grokscope.steering import FAST
from grokscope.timeline import stability

EVERY = 50  # steps between evaluations
SEEDS = 8
LATER = 1.25  # times later than today's recipe that the median with a gentle start may be
AT_ONCE = Release(at=("generalization",), weight_decay=1.0, every=EVERY, patience=1000)
GENTLE = replace(AT_ONCE, at=("generalization", "accuracy_breaks", "loss_rises"), gentle=1.0)
RECIPES = {"strong from the first step": AT_ONCE, "gentle until learnt": GENTLE}
SMALL = Training(batch_size=128, learning_rate=0.003, steps=3000)  # of `make demo`
TASKS = {
    "transformer of `make demo`, addition mod 31": RunSpec(
        "add_mod31", 0.6, architecture=Architecture(layers=1, width=64, heads=2, mlp_width=128), training=SMALL
    ),
    "MLP of two hidden layers of 128 ReLUs, addition mod 23": RunSpec(
        "add_mod23",
        0.7,
        architecture=Architecture(kind="mlp", layers=2, mlp_width=128, activation="relu"),
        training=replace(SMALL, steps=5000),
    ),
}
Run = dict[str, Any]


def train(plain: RunSpec, release: Release, seed: int) -> Run:
    """One run by the recipe with this release; when it generalised stably, and what was decided."""
    steered = FAST.apply(plain)
    training = replace(steered.training, learning_rate=plain.training.learning_rate)
    cadences = {"measurements": Cadence(every=EVERY), "checkpoints": Cadence(every=None)}
    spec = replace(steered, training=training, release=release, **cadences).with_seed(seed)
    with TemporaryDirectory() as folder:
        store = Store(folder)
        run_all([spec], store, compiled=False, keep="none")
        done = store.find(run_name(spec))
        log, outcome = done.log(), done.outcome
    accuracies = [row["validation_accuracy"] for row in log]
    found = stability([row["step"] for row in log], accuracies, failed_at=outcome.failed_at)
    return {
        "seed": seed,
        "stable": found.step,
        "changes": (outcome.control or {}).get("changes", []),
        "train_accuracy": [round(row["train_accuracy"], 4) for row in log],
        "validation_accuracy": [round(value, 4) for value in accuracies],
    }


def summarize(runs: Sequence[Run], budget: int) -> dict[str, Any]:
    """How many runs became stable, and their median step."""
    reached = [run["stable"] is not None for run in runs]
    median = kaplan_meier([float(run["stable"] or budget) for run in runs], reached).median.value
    return {"runs": len(runs), "stable": sum(reached), "median": None if median == inf else median}


def is_preferred(before: Run, after: Run) -> bool:
    """On one task: at least as many stable runs, and a median at most 1.25 times as late.

    >>> is_preferred({"stable": 8, "median": 400.0}, {"stable": 8, "median": 500.0})
    True
    >>> is_preferred({"stable": 8, "median": 400.0}, {"stable": 7, "median": 300.0})
    False
    """
    latest = inf if before["median"] is None else LATER * before["median"]
    own = inf if after["median"] is None else after["median"]
    return bool(after["stable"] >= before["stable"] and own <= latest)


def main(seeds: int = SEEDS, out: Path | None = None) -> dict[str, Any]:
    """Train both recipes on both tasks, print what each needed, and whether the gentle start is preferred."""
    torch.set_num_threads(1)
    record: dict[str, Any] = {"provenance": provenance("cpu"), "every": EVERY, "tasks": {}}
    for title, plain in TASKS.items():
        runs: dict[str, list[Run]] = {name: [] for name in RECIPES}
        for seed in range(seeds):
            for name, release in RECIPES.items():
                runs[name].append(train(plain, release, seed))
                print(f"{title}, {name}, seed {seed}: {runs[name][-1]['stable']}", flush=True)
        found = {name: summarize(own, plain.training.steps) for name, own in runs.items()}
        budget = plain.training.steps
        record["tasks"][title] = {"budget": budget, "summary": found, "preferred": is_preferred(*found.values())}
        record["tasks"][title]["runs"] = runs
        print(title, found, record["tasks"][title]["preferred"], flush=True)
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(out, (json.dumps(record) + "\n").encode())
    return record


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, help="a JSON file to write")
    main(**vars(parser.parse_args()))
