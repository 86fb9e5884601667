"""Measures over a stored run's checkpoints."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from grokscope.activations import Conditioning, RunStack, Trajectory, conditioning_basis
from grokscope.errors import InputError
from grokscope.measures.catalogue import Row, measure, measure_named, require_of_task, select
from grokscope.measures.question import Question
from grokscope.measures.updates import WINDOW
from grokscope.runs.runs import Run
from grokscope.specs import Plan, ReadingSpec, RunSpec
from grokscope.specs.spec import WORD_LIMIT, require
from grokscope.tasks import Task, named_task
from grokscope.training.devices import is_available

__all__ = ["STEPS_AT_ONCE", "Measuring", "Reading", "measure_checkpoints", "measure_stack"]

STEPS_AT_ONCE = {"cpu": 4, "cuda": 16, "mps": 16}  # checkpoints in one stack: some hundred MB on a CPU
KEPT = 2 * WINDOW  # checkpoints whose parameters are kept for the updates between them: each is read once


@dataclass(frozen=True)
class Reading:
    """How a run's checkpoints are read."""

    steps: tuple[int, ...] = ()
    """Stored steps; all if empty."""
    by: Conditioning = ""
    """What activations are conditioned on."""
    basis: str = ""
    """The basis they are read in; the task's own if empty."""
    reference: int | None = None
    """A stored step whose key modes restricted and excluded losses take; each step's own if not given."""
    spec: ReadingSpec = field(default_factory=ReadingSpec)
    """Thresholds, top-K, penalties."""
    seed: int = 0
    """Of all random numbers."""
    device: str = "cpu"
    """Where to compute."""


@dataclass(frozen=True)
class Measuring:
    """What is measured while runs are trained."""

    always: Sequence[str] = ()
    """At every checkpoint."""
    milestones: Sequence[str] = ()
    """At the first checkpoint at or after grokking, and at the last."""
    runs: frozenset[str] = frozenset()
    """Content hashes of the runs concerned; all of them if empty."""
    signals: bool = False
    """Whether every evaluation of every run also logs the signals of its state."""
    digests: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """Content hash of a run → the steps at which its outcome keeps a digest of its weights."""
    tier_signals: bool = False
    """Whether it also logs what weights and activations say, by tier."""

    @classmethod
    def from_plan(cls, plan: Plan) -> "Measuring":
        """What a plan asks for."""
        digests = _last_steps(plan.runs) if plan.signals else {}
        measured = frozenset(plan.measured)
        return cls(plan.measures, plan.milestones, measured, plan.signals, digests, plan.tier_signals)

    def concerns(self, spec: RunSpec) -> bool:
        """Whether anything is measured of a run."""
        return bool(self.always or self.milestones) and (not self.runs or spec.content_hash in self.runs)


def _last_steps(runs: Iterable[RunSpec]) -> dict[str, frozenset[int]]:
    """The last step of each run and of its forks: there their weights can be compared."""
    found: dict[str, set[int]] = {}
    for spec in runs:
        for name in (spec.content_hash, *([spec.fork.parent] if spec.fork else [])):
            found.setdefault(name, set()).add(spec.training.steps)
    return {name: frozenset(steps) for name, steps in found.items()}


def measure_checkpoints(run: Run, names: Sequence[str], reading: Reading | None = None) -> Iterator[list[Row]]:
    """Rows of run, step and every measure's columns, some checkpoints at a time.

    What cannot be measured is rejected here, before anything is computed. How many checkpoints are stacked changes no
    row: one whose activations are not numbers has NaN and a reason, unless it is the only one.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.jobs import run_all
    >>> from grokscope.runs import Store, open_runs
    >>> from grokscope.specs import RunSpec
    >>> small = {"layers": 1, "width": 8, "heads": 1, "mlp_width": 16, "steps": 2, "batch_size": 4}
    >>> spec = RunSpec("add_mod5").with_values(small)
    >>> with TemporaryDirectory() as folder:
    ...     run_all([spec], Store(folder), compiled=False)
    ...     [row["step"] for rows in measure_checkpoints(open_runs(folder)[0], ["norms"]) for row in rows]
    [0, 2]
    """
    how = reading or Reading()
    select(names)
    require(0 <= how.seed < WORD_LIMIT, "the seed must lie in [0, 2^63)", how.seed)
    if not is_available(how.device):
        raise InputError(f"device {how.device} is not available; use cpu")
    if how.device.startswith("mps"):
        raise InputError("mps has no float64, which measures need; use cpu")
    if how.by or how.basis or any("basis" in measure_named(name).needs for name in names):
        conditioning_basis(named_task(run.spec.task), how.by, how.basis)
    require_of_task(named_task(run.spec.task), names)
    stored = run.steps
    if not stored:
        raise InputError(f"{run.name} has no stored weights")
    for step in (*how.steps, *(() if how.reference is None else (how.reference,))):
        if step not in stored:
            run.at(step)  # rejects it, and names those that are stored
    return _measure_steps(run, names, how, how.steps or stored)


def measure_stack(subject: RunStack, readings: Sequence[str]) -> list[Row]:
    """One row for each run of a subject: measures by name, `NAME@sum` by sums, `NAME@BASIS` in that basis.

    What the task or the model does not have is left out, and so is what would be read twice (sums that are the
    answers). A run whose activations are not numbers has NaN and a reason, also if it is alone. On CUDA stacks have one
    size, the last filled up with copies, so that a row does not depend on the other runs.
    """
    if subject.device.type != "cuda":
        return _measured(subject, readings)
    size, runs = STEPS_AT_ONCE["cuda"], range(len(subject))
    parts = [list(runs[start : start + size]) for start in range(0, len(subject), size)]
    filled = [(part, part + part[:1] * (size - len(part))) for part in parts]
    return [row for part, read in filled for row in _measured(subject.select(read), readings)[: len(part)]]


def _measured(subject: RunStack, readings: Sequence[str]) -> list[Row]:
    """Rows of runs that are read together."""
    rows: list[Row] = [{} for _ in range(len(subject))]
    read = subject.select([0, 0]) if len(subject) == 1 else subject  # a stack is never rejected for one of its runs
    wanted = [(where, name) for name, _, where in (reading.partition("@") for reading in readings)]
    for where in dict.fromkeys(where for where, _ in wanted if _is_another_reading(subject.task, where)):
        question = Question(read, by="sum") if where == "sum" else Question(read, basis_name=where)
        for name in (name for place, name in wanted if place == where):
            try:
                measured = measure(question, [name])
            except InputError:  # no MLP, no Fourier basis: a plan may hold runs of many kinds
                continue
            for row, found in zip(rows, measured, strict=False):
                reason = "; ".join(filter(None, [str(row.get("undefined", "")), str(found.pop("undefined"))]))
                row |= {f"{column}@{where}" if where else column: value for column, value in found.items()}
                row["undefined"] = reason
    return rows


def _is_another_reading(task: Task, where: str) -> bool:
    """Whether a task can be read this way, and not already is."""
    if where == "sum":
        return task.sums is not None and not np.array_equal(task.sums, task.answers)
    return where == "" or where in list(task.bases)[1:]  # the first is the one read anyway


def _measure_steps(run: Run, names: Sequence[str], how: Reading, steps: tuple[int, ...]) -> Iterator[list[Row]]:
    reference = None if how.reference is None else run.subject([how.reference], how.device)
    stored, parameters = run.steps, lru_cache(maxsize=KEPT)(lambda step: _parameters(run, step))
    size = STEPS_AT_ONCE[how.device.partition(":")[0]]
    for start in range(0, len(steps), size):
        stack = steps[start : start + size]
        # The last of several may be left alone, and a stack of one is rejected where others are undefined.
        read = stack * 2 if len(stack) == 1 < len(steps) else stack
        question = Question(
            run.subject(read, how.device),
            how.spec,
            how.by,
            how.basis,
            reference,
            run.spec,
            how.seed,
            trajectory=Trajectory(stored, parameters, read),
        )
        rows = measure(question, names)[: len(stack)]
        yield [{"run": run.name, "step": step, **row} for step, row in zip(stack, rows, strict=True)]


def _parameters(run: Run, step: int) -> Tensor:
    """All parameters of a run at a stored step, side by side by the order of their names."""
    return torch.cat([tensor.double().flatten() for _, tensor in sorted(run.at(step).tensors.items())])
