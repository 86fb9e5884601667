"""Runs that a benchmark knows the end of: what a forecaster may see of each, and what it is scored by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from grokscope.forecast.prefix import Prefix, run_configuration, run_prefix
from grokscope.forecast.signals import SIGNALS, signals_at
from grokscope.shapes import Float
from grokscope.specs import Cadence, RunSpec

__all__ = ["Case", "cell_key", "cell_medians", "task_family", "usable_cases"]

PLACES = {name: place for place, name in enumerate(SIGNALS)}
ABELIAN = ("add", "sub", "mult", "div")


@dataclass(frozen=True, eq=False)
class Case:
    """One run with its end."""

    run: Prefix
    """All of it; a scorer shows forecasters earlier prefixes only."""
    cell: str
    """Runs of one cell differ in their seeds alone."""
    family: str
    """Its family of tasks."""
    architecture: str
    """Its family of models."""
    budget: int
    """The step at which it would have been stopped."""
    cannot_grok: bool = False
    """Whether its labels have no structure to find, so that a run that has not grokked is no censored one."""
    _signals: dict[int, Float[np.ndarray, " signals"]] = field(default_factory=dict, init=False, repr=False)

    @property
    def grokked(self) -> int | None:
        """The step at which it grokked; None if it did not within its budget."""
        return self.run.grokked

    @property
    def end(self) -> int:
        """Its last evaluation, or the one at which it had grokked."""
        return self.run.step if self.grokked is None else self.grokked

    def signals(self, step: int, names: tuple[str, ...]) -> Float[np.ndarray, " signals"]:
        """Signals as they were at a step: computed once, since every fold is fitted to most of the same runs."""
        if step not in self._signals:
            self._signals[step] = signals_at(self.run.until(step))
        return self._signals[step][[PLACES[name] for name in names]]


def usable_cases(runs: Sequence[tuple[RunSpec, Mapping[str, Sequence[float | int]]]]) -> list[Case]:
    """The cases among runs of ours: whole runs that memorised; no forks, and none whose λ somebody changed.

    >>> log = {"step": [0, 100, 200], "train_accuracy": [0.1, 1.0, 1.0], "validation_accuracy": [0.0, 0.1, 0.99]}
    >>> [case] = usable_cases([(RunSpec(), log), (RunSpec(), {"step": []})])
    >>> case.grokked, case.family, case.budget
    (200, 'modular arithmetic', 15000)
    """
    found = []
    for spec, evaluations in runs:
        is_changed = run_configuration(spec)["changes_decay"]
        if is_changed or not len(evaluations.get("step", ())):
            continue
        run = run_prefix(spec, evaluations)
        if run.memorized is None or not (run.grokked is None or run.grokked >= run.memorized):
            continue
        architecture = "attention" if spec.architecture.kind == "transformer" else "mlp"
        is_random = spec.shuffled_labels or spec.task.startswith(("random", "latin"))
        found.append(
            Case(run, cell_key(spec), task_family(spec.task), architecture, spec.training.steps, bool(is_random))
        )
    return found


def cell_key(spec: RunSpec) -> str:
    """The same for runs that differ in their seeds, budgets and cadences alone.

    >>> cell_key(RunSpec()) == cell_key(RunSpec().with_seed(7)) != cell_key(replace(RunSpec(), task="S5"))
    True
    """
    same = replace(spec.training, steps=10**9)
    usual = replace(spec.with_seed(0), training=same, checkpoints=Cadence(), measurements=Cadence())
    return f"{spec.task} {usual.content_hash[:8]}"


def task_family(task: str) -> str:
    """The family that a task is held out with.

    >>> [task_family(name) for name in ("add_mod97", "sub_mod97", "S5", "parity20_3", "two_hop40")]
    ['modular arithmetic', 'modular arithmetic', 'groups', 'parity', 'two hops']
    """
    from grokscope.tasks.families import is_group_name

    if task.startswith(ABELIAN):
        return "modular arithmetic"
    for beginning, family in {"parity": "parity", "two": "two hops", "random": "random", "latin": "random"}.items():
        if task.startswith(beginning):
            return family
    return "groups" if is_group_name(task) or task.startswith("table:") else "others"


def cell_medians(cases: Sequence[Case]) -> dict[str, float]:
    """Cell → the median step of grokking, counting runs that did not as later than all; infinite if most did not.

    >>> log = {"step": [0, 100, 200], "train_accuracy": [0.1, 1.0, 1.0], "validation_accuracy": [0.0, 0.1, 0.99]}
    >>> [*cell_medians(usable_cases([(RunSpec(), log)])).values()]
    [200.0]
    """
    times: dict[str, list[float]] = {}
    for case in cases:
        times.setdefault(case.cell, []).append(np.inf if case.grokked is None else float(case.grokked))
    return {cell: float(np.quantile(found, 0.5, method="lower")) for cell, found in times.items()}
