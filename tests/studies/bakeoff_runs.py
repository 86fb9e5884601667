"""Planted runs of the bake-off, of every configuration and of its tuning."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies import Evidence
from grokscope.studies.bakeoff.configurations import FAMILIES, bakeoff_runs, tuning_runs
from grokscope.studies.selection import configuration

SEEDS = 8
FIXED = {"fixed λ = 1": 4000, "fixed λ = 2": 2000, "fixed λ = 3": 1500, "fixed λ = 5": None}


def record(
    spec: RunSpec, grok: int | None, collapse: float = 1.0, learnt: bool = True, failed: int | None = None
) -> RunRecord:
    """A run that groks at a step, and at its last evaluation has at most this validation accuracy."""
    last = spec.training.steps if grok is None else min(spec.training.steps, grok + 1000)
    steps = list(range(0, last + 1, 100))
    validation = [1.0 if grok is not None and step >= grok else 0.1 for step in steps]
    validation[-1] = min(validation[-1], collapse)
    ending = "diverged" if failed is not None else "never" if grok is None else "grokked"
    log: dict[str, Any] = {
        "step": steps,
        "train_accuracy": [1.0 if learnt else 0.1] * len(steps),
        "validation_accuracy": validation,
    }
    outcome = RunOutcome(ending, failed_at=failed, memorized=300 if learnt else None, grokked=grok)
    return RunRecord(spec, outcome, log, {})


def specs_of(name: str, task: str = "add_mod97", n_seeds: int = SEEDS) -> dict[str, RunSpec]:
    """The runs of one configuration on one task."""
    runs = bakeoff_runs(n_seeds, "float32", [task])
    return {run: spec for run, spec in runs.items() if configuration(run) == f"{task}/{name}"}


def planted(median: Mapping[str, int | None], task: str = "add_mod97", **options: Any) -> dict[str, RunRecord]:
    """Each configuration's runs grok around its step, spread over 700; those with None do not."""
    found = {}
    for name, grok in median.items():
        for seed, (run, spec) in enumerate(specs_of(name, task).items()):
            found[run] = record(spec, None if grok is None else grok + 100 * seed, **options)
    return found


def tuning(medians: Sequence[int | None], collapsed: Sequence[float] = (1.0,) * 4) -> dict[str, RunRecord]:
    """The closed loop's settings do this; in all other families a setting groks sooner the later it is listed."""
    found = {}
    for name, run in tuning_runs(4, "float32").items():
        family, setting = name.rpartition("_s")[0].split("/")
        place = [*FAMILIES[family]].index(setting)
        is_loop = family == "closed loop"
        found[name] = record(run, medians[place], collapsed[place]) if is_loop else record(run, 900 - 100 * place)
    return found


def evidence(
    runs: Mapping[str, RunRecord], tuning: Mapping[str, RunRecord] | None = None, folder: Path | None = None
) -> Evidence:
    """These runs under the experiments of the study."""
    return Evidence({"bakeoff": dict(runs), "tuning": dict(tuning or {})}, folder=folder)
