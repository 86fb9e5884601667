"""One run as data, without its weights: its spec, how it ended, its evaluations, and what was measured.

Tables, figures and claims are made of records alone, so runs may be trained anywhere and judged anywhere else. Listing
runs must not wait for numpy, so what computes events is imported where it is used.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import isnan, nan
from typing import TYPE_CHECKING, Any, Self

from grokscope.errors import InputError
from grokscope.runs.logs import Columns
from grokscope.runs.outcome import RunOutcome, describe_ending, stable_columns
from grokscope.specs import Membership, ReadingSpec, RunSpec
from grokscope.specs.run import OWN_ROWS

if TYPE_CHECKING:
    from grokscope.tasks import Task
    from grokscope.timeline import Timeline

__all__ = ["DAMAGED", "RunRecord", "has_basis", "is_group", "known_task", "merge_records", "thinned", "unite"]


DAMAGED = "damaged"  # stands for the outcome of a run of which no record can be made


@dataclass(frozen=True, eq=False)
class RunRecord:
    """One run: finished, running, packed or monitored."""

    spec: RunSpec
    """What was run."""
    outcome: RunOutcome
    """How it ended, if it has."""
    evaluations: Columns
    """Columns over the evaluations: step, accuracies, losses, norm, fsd, rank, answer share, λ."""
    checkpoints: Columns
    """Columns over the checkpoints: step and what was measured there; empty if nothing was."""
    made_for: tuple[Membership, ...] = ()
    """The studies it was trained for."""

    @cached_property
    def timeline(self) -> "Timeline":
        """Its events, by the paper's thresholds; of a group's run, FSD_gen's. It needs an evaluation."""
        return self.timeline_by(ReadingSpec())

    @property
    def timeline_or_none(self) -> "Timeline | None":
        """Its events; None before the first evaluation, or where its log lacks what a timeline needs."""
        try:
            return self.timeline
        except InputError:
            return None

    def timeline_by(self, reading: ReadingSpec) -> "Timeline":
        """Its events, by these thresholds."""
        from grokscope.timeline import timeline_of

        at = reading.sync_at(is_group(self.spec.task))
        return timeline_of(self._events_columns(), reading, failed_at=self.outcome.failed_at, sync_at=at)

    @property
    def name(self) -> str:
        """Its name with its content hash, as its folder is called."""
        from grokscope.runs.run_folder import run_name

        return run_name(self.spec)

    def seen_every(self, steps: int) -> "RunRecord":
        """The run as somebody sees it who evaluates only so often, and at its start."""
        return thinned(self, steps)

    def at(self, step: int, column: str) -> float:
        """A column's value at a step; NaN if there was no evaluation."""
        for part in (self.evaluations, self.checkpoints):
            if column in part and step in part["step"]:
                return part[column][part["step"].index(step)]
        return nan

    def at_checkpoints(self, column: str) -> list[float]:
        """A column's values at the checkpoints, in their order; NaN where it was not measured."""
        return [self.at(int(step), column) for step in self.checkpoints.get("step", [])]

    def first_checkpoint(self, column: str, at_least: float) -> int | None:
        """The first checkpoint at which a column reached a threshold."""
        from grokscope.timeline import first_step

        steps = [int(step) for step in self.checkpoints.get("step", [])]
        return first_step(steps, self.at_checkpoints(column), at_least)

    def with_fsd(self, column: str) -> "RunRecord | None":
        """The run with another column as its FSD, seen only where that was measured; None if nowhere."""
        measured = zip(self.checkpoints.get("step", []), self.checkpoints.get(column, []), strict=False)
        found = {step: value for step, value in measured if not isnan(value)}
        rows = [row for row, step in enumerate(self.evaluations["step"]) if step in found]
        if not rows:
            return None
        seen = {name: [values[row] for row in rows] for name, values in self.evaluations.items()}
        return replace(self, evaluations=seen | {"fsd": [found[step] for step in seen["step"]]})

    def summary(self) -> dict[str, Any]:
        """One row: what the run is, what it was trained for, how it ended, and when it did what.

        Without evaluations, events are those that the outcome names, and steps of others are None.
        """
        spec, ended = self.spec, self.outcome
        events = self.timeline if self.evaluations else None
        return {
            "hash": spec.identity,
            "task": spec.task,
            "seed": spec.seeds.data_order,
            "weight_decay": spec.training.weight_decay,
            "train_fraction": spec.train_fraction,
            "layers": spec.architecture.layers,
            "width": spec.architecture.width,
            "steps": spec.training.steps,
            "precision": spec.precision,
            "parent": spec.fork.parent if spec.fork else None,
            "fork_step": spec.fork.step if spec.fork else None,
            "study": ", ".join(sorted({one.study for one in self.made_for})) or None,
            "outcome": describe_ending(ended.outcome, events.memorized if events else ended.memorized),
            "failed_at": ended.failed_at,
            "stopped_early": ended.stopped_early,
            "last_step": events.last if events else None,
            "memorized": events.memorized if events else ended.memorized,
            "synchronized": events.sync.step if events else None,
            "grokked": events.grokked if events else ended.grokked,
            **stable_columns(events.stable.to_dict() if events else ended.stability or {}),
            "lead": events.sync.lead.steps if events else None,
            "spec": spec.to_json(),
            "details": json.dumps(ended.to_dict()),
            "made_for": json.dumps([one.to_dict() for one in self.made_for]),
            "problem": None,
        }

    @classmethod
    def damaged_summary(cls, problem: str) -> dict[str, Any]:
        """The row of a run of which no record can be made, with what is wrong."""
        unknown = dict.fromkeys(cls(RunSpec(), RunOutcome(), {}, {}).summary())
        return unknown | {"outcome": DAMAGED, "stopped_early": False, "problem": problem}

    @classmethod
    def from_summary(cls, row: Mapping[str, Any]) -> Self:
        """The record without its logs, from its summary."""
        outcome = RunOutcome.from_dict(json.loads(row["details"]))
        made_for = tuple(map(Membership.from_dict, json.loads(row["made_for"])))
        return cls(RunSpec.from_json(row["spec"]), outcome, {}, {}, made_for)

    def _events_columns(self) -> Columns:
        """The evaluations with the paper's restricted loss where it was measured, and without an FSD that cannot be."""
        columns = self.evaluations
        if all(map(isnan, columns.get("fsd", ()))) and not has_basis(self.spec.task):
            columns = {name: values for name, values in columns.items() if name != "fsd"}
        if "paper_restricted" not in self.checkpoints:
            return columns
        known = dict(zip(self.checkpoints["step"], self.checkpoints["paper_restricted"], strict=True))
        return {**columns, "restricted_loss": [known.get(step, nan) for step in columns["step"]]}


@lru_cache(maxsize=8192)  # every table and claim asks for the same
def thinned(record: RunRecord, steps: int) -> RunRecord:
    """The run without the evaluations between multiples of these steps, but for its first."""
    first = min(record.evaluations["step"], default=0)
    rows = [row for row, step in enumerate(record.evaluations["step"]) if step % steps == 0 or step == first]
    seen = {name: [values[row] for row in rows] for name, values in record.evaluations.items()}
    return replace(record, evaluations=seen)


def is_group(task: str) -> bool:
    """Whether a task is a group's operation, which is read over its irreps; a user's table that has moved is one.

    >>> is_group("S5"), is_group("add_mod97"), is_group("table:gone.json#0123456789abcdef")
    (True, False, True)
    """
    from grokscope.tasks.families import is_group_name

    return is_group_name(task) or task.startswith("table:")


@lru_cache(maxsize=256)
def has_basis(task: str) -> bool:
    """Whether a task has a basis to read activations in: a user's own rows have none, other tasks not at hand do.

    >>> has_basis("add_mod97"), has_basis("random97"), has_basis("gone.npz")
    (True, False, False)
    """
    known = None if OWN_ROWS.fullmatch(task) else known_task(task)
    return bool(known.bases) if known else OWN_ROWS.fullmatch(task) is None


def known_task(name: str) -> "Task | None":
    """The task of a stored run, if it is at hand: a user's file may be elsewhere, and code is not run to list runs.

    >>> known_task("add_mod97").title
    '(a + b) mod 97'
    """
    from grokscope.tasks import named_task

    try:
        return named_task(name, runs_code=False)
    except InputError:
        return None


def unite(*memberships: Iterable[Membership]) -> tuple[Membership, ...]:
    """Memberships of several sources, each once, in order.

    >>> unite([Membership("mine", "decay", "x3")], [Membership("mine", "decay", "x3")])
    (Membership(study='mine', experiment='decay', name='x3'),)
    """
    return tuple(sorted({one for part in memberships for one in part}))


def merge_records(records: Iterable[RunRecord]) -> list[RunRecord]:
    """Each run once, as the last of its records has it, with the studies of all of them.

    >>> both = [RunRecord(RunSpec(), RunOutcome(), {}, {}, (Membership("mine", "decay", name),)) for name in ("a", "b")]
    >>> [[member.name for member in one.made_for] for one in merge_records(both)]
    [['a', 'b']]
    """
    found: dict[str, RunRecord] = {}
    for record in records:
        former = found.get(record.spec.identity)
        made_for = unite(former.made_for, record.made_for) if former else record.made_for
        found[record.spec.identity] = record if made_for == record.made_for else replace(record, made_for=made_for)
    return list(found.values())
