"""Planted runs of the study of signals: each column is a course over steps, and each run groks at a given step."""

from collections.abc import Callable, Mapping
from typing import Any

from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies import Evidence
from grokscope.studies.signals import STUDY
from grokscope.studies.signals.catalogue import SIGNALS
from grokscope.studies.signals.experiments import CELLS

Course = Callable[[int], float] | float
Planted = Mapping[str, Any]
LOGGED = {one.column for one in SIGNALS if not one.measure} | {"train_accuracy"}
SEEDS = 24


def after(step: int | None, high: float, low: float) -> Course:
    """One value from a step on, another before it, and always where it is None."""
    return lambda at: high if step is not None and at >= step else low


def record(spec: RunSpec, grok: int | None = None, last: int = 6000, **courses: Course) -> RunRecord:
    """A run evaluated and measured every 100 steps."""
    steps = list(range(0, last + 1, 100))
    known: dict[str, Course] = {
        "train_accuracy": after(200, 1.0, 0.1),
        "validation_accuracy": after(grok, 1.0, 0.1),
        "validation_loss": after(grok, 0.01, 9.0),
    }
    known |= courses
    columns = {name: [one(at) if callable(one) else one for at in steps] for name, one in known.items()}
    log = {name: values for name, values in columns.items() if name in LOGGED}
    measured = {name: values for name, values in columns.items() if name not in LOGGED}
    ending = RunOutcome("never" if grok is None else "grokked", grokked=grok)
    return RunRecord(spec, ending, {"step": steps} | log, {"step": steps} | measured if measured else {})


def world(seeds: int = SEEDS, **cells: Callable[[int], Planted]) -> Evidence:
    """Runs of these cells alone; underscores stand for hyphens."""
    found: dict[str, dict[str, RunRecord]] = {name: {} for name in STUDY.experiments}
    for name, plan in cells.items():
        cell = name.replace("_", "-")
        one = CELLS[cell]
        for seed in range(seeds):
            found[one.kind][f"{cell}_s{seed}"] = record(one.run(seed, "float32"), **plan(seed))
    return Evidence(found)
