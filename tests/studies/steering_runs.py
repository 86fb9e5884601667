"""Planted runs of the study of steering: each generalises at a step that is said, and falls or stays."""

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies import Evidence
from grokscope.studies.selection import configuration
from grokscope.studies.steering import STUDY
from grokscope.studies.steering.experiments import EXPERIMENTS

Plan = Callable[[str, str, int], float]
"""From the cell, the arm and the seed's place to the step at which a run groks; infinite if never."""


def record(spec: RunSpec, grok: float, falls_at: float = inf, failed_at: int | None = None) -> RunRecord:
    """A run that groks at a step and, from another on, has lost everything; strong decay is let go at grokking."""
    strong = float(spec.training.weight_decay or 0.0)
    later = strong if spec.release is None else spec.release.weight_decay
    steps = list(range(0, spec.training.steps + 1, spec.measurements.every))
    validation = [1.0 if grok <= step < falls_at else 0.1 for step in steps]
    log: dict[str, Any] = {
        "step": steps,
        "train_accuracy": [1.0] * len(steps),
        "validation_accuracy": validation,
        "weight_decay": [later if step > grok else strong for step in steps],
        "norm": [50.0] * len(steps),
    }
    ending = "diverged" if failed_at else "grokked" if grok < inf else "never"
    return RunRecord(spec, RunOutcome(ending, failed_at=failed_at, grokked=None if grok == inf else int(grok)), log, {})


def planted(experiment: str, plan: Plan, n_seeds: int = 2) -> dict[str, RunRecord]:
    """An experiment's runs, each grokking by the plan."""
    found, places = {}, dict[str, int]()
    for name, spec in EXPERIMENTS[experiment](n_seeds, "float32").items():
        own = configuration(name)
        cell, _, arm = own.partition("/")
        places[own] = places.get(own, -1) + 1
        found[name] = record(spec, plan(cell, arm, places[own]))
    return found


def evidence(**experiments: Mapping[str, RunRecord]) -> Evidence:
    """These runs under the experiments of the study; the others are empty."""
    return Evidence({name: dict(experiments.get(name, {})) for name in STUDY.experiments})
