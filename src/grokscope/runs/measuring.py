"""Measures over a stored run's checkpoints."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from grokscope.activations import Conditioning, RunStack, Trajectory, conditioning_basis, subject_of
from grokscope.errors import InputError
from grokscope.measures.catalogue import Row, measure, measure_named, require_of_task, select
from grokscope.measures.question import Question
from grokscope.measures.updates import WINDOW
from grokscope.model import layout_of, padded_sizes, sizes_of
from grokscope.runs.runs import Run
from grokscope.specs import Plan, ReadingSpec, RunSpec
from grokscope.specs.spec import WORD_LIMIT, require
from grokscope.tasks import Task, named_task
from grokscope.training.devices import is_available

__all__ = [
    "FINAL",
    "STEPS_AT_ONCE",
    "Measuring",
    "Reading",
    "measure_checkpoints",
    "measure_stack",
    "measure_whole_run",
]

FINAL = "final"
"""`NAME@final` takes the key modes of a run's last checkpoint."""

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
    afterwards: Sequence[str] = ()
    """At every checkpoint once the run has ended, as `Plan.afterwards` says."""
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
        return cls(
            plan.measures,
            plan.milestones,
            plan.afterwards,
            frozenset(plan.measured),
            plan.signals,
            _last_steps(plan.runs) if plan.signals else {},
            plan.tier_signals,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Every reading, without the mark of those that take the last checkpoint's key modes."""
        later = (name.removesuffix(f"@{FINAL}") for name in self.afterwards)
        return (*self.always, *self.milestones, *later)

    def concerns(self, spec: RunSpec) -> bool:
        """Whether anything is measured of a run."""
        return bool(self.names) and (not self.runs or spec.content_hash in self.runs)

    def keeps(self, spec: RunSpec) -> bool:
        """Whether a run's weights are kept at its checkpoints, to be measured when it has ended."""
        return bool(self.afterwards) and self.concerns(spec)


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
    return [
        row
        for part, read in _filled(subject)
        for row in _measured(subject.select(read), readings, _questions)[: len(part)]
    ]


def measure_whole_run(spec: RunSpec, weights: Mapping[int, Tensor], readings: Sequence[str], name: str) -> list[Row]:
    """One row for each checkpoint of a run that has ended, from its weights [parameters] by step in ascending order.

    Besides what `measure_stack` reads: `NAME@final` with the key modes of the last checkpoint, and measures of the
    updates between checkpoints.

    >>> from grokscope.specs import Architecture
    >>> from grokscope.training import Cohort, initial_state
    >>> spec = RunSpec("add_mod5", architecture=Architecture(layers=1, width=8, heads=1, mlp_width=16))
    >>> [first] = initial_state(Cohort([spec])).weights
    >>> rows = measure_whole_run(spec, {0: first, 10: 2 * first}, ["trig@final", "updates"], "a run")
    >>> [row["step"] for row in rows], [row["update_relative"] for row in rows], "trig@final" in rows[0]
    ([0, 10], [nan, 1.0], True)
    """
    steps = tuple(weights)
    subject = subject_of(
        [spec] * len(steps), torch.stack([*weights.values()]), [f"{name} at step {at}" for at in steps]
    )
    last = subject.select([len(steps) - 1])
    layout, sizes = layout_of(spec.architecture, padded_sizes(subject.task)), sizes_of(subject.task)
    real = {name: value[(slice(None), *layout.real(name, sizes))] for name, value in subject.weights.items()}

    def parameters(step: int) -> Mapping[str, Tensor]:
        return {name: value[steps.index(step)] for name, value in real.items()}

    rows: list[Row] = []
    for part, read in _filled(subject):
        here = tuple(steps[place] for place in read)

        def questions(read: RunStack, where: str, here: tuple[int, ...] = here) -> Question | None:
            trajectory = Trajectory(steps, parameters, here if len(here) == len(read) else here * len(read))
            found = _questions(read, "" if where == FINAL else where)
            return found and replace(found, reference=last if where == FINAL else None, trajectory=trajectory)

        found = _measured(subject.select(read), readings, questions)[: len(part)]
        rows += [{"step": steps[place], **row} for place, row in zip(part, found, strict=True)]
    return rows


def _filled(subject: RunStack) -> list[tuple[list[int], list[int]]]:
    """Runs that are read together, and what is read in their place: on CUDA as many as make a stack of one size."""
    runs, size = range(len(subject)), STEPS_AT_ONCE[subject.device.type]
    parts = [list(runs[start : start + size]) for start in range(0, len(runs), size)]
    is_filled = subject.device.type == "cuda"
    return [(part, part + part[:1] * (size - len(part)) if is_filled else part) for part in parts]


def _questions(read: RunStack, where: str) -> Question | None:
    """What is asked of runs that are read by sums, or in another basis; None where a task cannot be read so."""
    if not _is_another_reading(read.task, where):
        return None
    return Question(read, by="sum") if where == "sum" else Question(read, basis_name=where)


def _measured(
    subject: RunStack, readings: Sequence[str], questions: Callable[[RunStack, str], Question | None]
) -> list[Row]:
    """Rows of runs that are read together."""
    rows: list[Row] = [{} for _ in range(len(subject))]
    read = subject.select([0, 0]) if len(subject) == 1 else subject  # a stack is never rejected for one of its runs
    wanted = [(where, name) for name, _, where in (reading.partition("@") for reading in readings)]
    for where in dict.fromkeys(where for where, _ in wanted):
        question = questions(read, where)
        if question is None:
            continue
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


def _parameters(run: Run, step: int) -> Mapping[str, Tensor]:
    """All parameters of a run at a stored step, by name; stored with them are counters, which are no weights."""
    stored = run.at(step)
    names = layout_of(run.spec.architecture, padded_sizes(stored.task)).shapes
    return {name: tensor for name, tensor in stored.tensors.items() if name in names}
