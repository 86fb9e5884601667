"""One cohort on its way from the first step to the last: placed, looked at, decided on, saved and finished."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from grokscope.activations import subject_of
from grokscope.jobs.states import changes_decay, decided, forked_state, numbers_of
from grokscope.measures import snapshot
from grokscope.runs.measuring import STEPS_AT_ONCE, Measuring, rows_of
from grokscope.runs.provenance import provenance
from grokscope.runs.run_folder import Keep, RunFolder
from grokscope.runs.store import Store
from grokscope.specs import ReadingSpec, RunSpec
from grokscope.steering import Control, Decision, needs_sibling, sibling_of
from grokscope.tasks import Task
from grokscope.timeline import first_step, outcome
from grokscope.training import Cohort, initial_state
from grokscope.training.checkpoint import cut, padded_row

__all__ = ["Notice", "Progress", "Report", "Stack"]

GROKKED, MEMORIZED = ReadingSpec().grokked, ReadingSpec().memorized


@dataclass(frozen=True)
class Progress:
    """What a person watching wants to know: one measurement of one run."""

    run: str
    """Its folder's name."""
    step: int
    """Where it is."""
    last: int
    """Where it will end."""
    row: dict[str, float]
    """What was measured."""


@dataclass(frozen=True)
class Notice:
    """Something about a run that a person should know, and that stops nothing."""

    run: str
    """Its folder's name."""
    notice: str
    """One sentence."""


Report = Callable[[Progress | Notice], None]


class Stack:
    """One cohort on its way: folders, state, and when each run is due."""

    def __init__(
        self,
        by_slot: list[RunFolder | None],
        store: Store,
        device: str,
        compiled: bool | None,
        measuring: Measuring,
        report: Report = lambda said: None,
    ) -> None:
        self.report = report
        self.folders = {slot: folder for slot, folder in enumerate(by_slot) if folder is not None}
        self.compiled, self.measuring = compiled, measuring
        siblings = {
            slot: sibling_of(folder.spec, store.find(folder.spec.fork.parent).spec)
            for slot, folder in self.folders.items()
            if folder.spec.fork is not None and needs_sibling(folder.spec)
        }
        self.cohort = Cohort([None if folder is None else folder.spec for folder in by_slot], device, siblings)
        self.state = initial_state(self.cohort)
        specs = self.cohort.specs
        self.looks = [spec.evaluation_steps for spec in specs]
        self.saves = [set(spec.checkpoints.steps(spec.training.steps)) for spec in specs]
        self.steps = {slot: self._place(slot, folder, store) for slot, folder in self.folders.items()}
        for slot, sibling in siblings.items():
            self.state.put(self.cohort.sibling_slot[slot], self._forked(sibling, self.folders[slot], store))
        self.logs = {slot: numbers_of(folder) for slot, folder in self.folders.items()}

    def _place(self, slot: int, folder: RunFolder, store: Store) -> int:
        """Put a run where it stopped, where it forks, or at its beginning."""
        found = folder.latest_state(self._logged_until(slot, folder), self._teller(folder))
        # A run that follows a sibling begins anew: only from the fork on do both take every step together.
        if found is not None and not needs_sibling(folder.spec):
            step, tensors = found
            self.state.put(slot, padded_row(tensors, self.cohort.layout, self.cohort.tasks[slot].symbols))
            folder.rewind(step)
            return step
        folder.rewind(-1)
        if folder.spec.fork is not None:
            self.state.put(slot, self._forked(folder.spec, folder, store))
            return folder.spec.fork.step
        return 0

    def _forked(self, spec: RunSpec, folder: RunFolder, store: Store) -> dict[str, Tensor]:
        return forked_state(spec, store, self.compiled, str(self.cohort.device), self._teller(folder))

    def _teller(self, folder: RunFolder) -> Callable[[str], None]:
        return lambda sentence: self.report(Notice(folder.name, sentence))

    def _logged_until(self, slot: int, folder: RunFolder) -> int:
        """The last step before the first measurement that the log lacks: what was lost is measured again."""
        first = folder.spec.fork.step if folder.spec.fork else 0
        due = {first, *(step for step in self.looks[slot] if step > first)}
        missing = due - {row["step"] for row in folder.log()}
        if self.measuring.always and self.measuring.concerns(folder.spec):
            measured = {row["step"] for row in folder.log("measures")}
            missing |= {step for step in self.saves[slot] if step >= first} - measured
        return min(missing, default=folder.spec.training.steps + 1) - 1

    def next_stop(self, slot: int, step: int) -> int:
        """The next step at which a run is looked at or saved."""
        return min(s for s in self.looks[slot] | self.saves[slot] if s > step)

    def look(self, due: list[int]) -> None:
        """Measure the runs that are due, log what was seen, and let their rules decide."""
        if not due:
            return
        seen = snapshot(self.state.weights, self.cohort, self.compiled)
        for slot in due:
            step, folder, row = self.steps[slot], self.folders[slot], seen.row(slot)
            logged = {"step": step, **row, "weight_decay": float(self.state.weight_decay[slot])}
            folder.append(logged)
            self.logs[slot].append(logged)
            self.report(Progress(folder.name, step, self.cohort.specs[slot].training.steps, row))
            found = self.decision(slot)
            if found is not None and changes_decay(found):
                self.state.weight_decay[slot] = found.weight_decay

    def decision(self, slot: int) -> Decision | Control | None:
        """What the run's trigger or closed loop says; it depends on the log alone, so it survives a restart."""
        return decided(self.cohort.specs[slot], self.logs[slot])

    def measure(self, slots: set[int]) -> None:
        """Measure what was asked for at the checkpoints of these runs, all of one kind together."""
        kinds: dict[tuple[Task, tuple[str, ...]], list[int]] = {}
        for slot in sorted(slots):
            if self.measuring.concerns(self.cohort.specs[slot]):
                kinds.setdefault((self.cohort.tasks[slot], self._due(slot)), []).append(slot)
        size = STEPS_AT_ONCE[self.cohort.device.type]
        for (_, measures), own in kinds.items():
            for start in range(0, len(own) if measures else 0, size):
                part = own[start : start + size]
                specs = [self.cohort.specs[slot] for slot in part]
                names = [f"{self.folders[slot].name} at step {self.steps[slot]}" for slot in part]
                rows = rows_of(subject_of(specs, self.state.weights[part], names), measures)
                for slot, row in zip(part, rows, strict=True):
                    self.folders[slot].append({"step": self.steps[slot], **row}, "measures")

    def _due(self, slot: int) -> tuple[str, ...]:
        """What is measured of a run at this checkpoint: more at its last, and at the first since it grokked."""
        step, grokked = self.steps[slot], self.grokked_at(slot)
        before = max((save for save in self.saves[slot] if save < step), default=-1)
        is_first = grokked is not None and before < grokked <= step
        is_milestone = is_first or step == self.cohort.specs[slot].training.steps
        return (*self.measuring.always, *(self.measuring.milestones if is_milestone else ()))

    def grokked_at(self, slot: int) -> int | None:
        """Where a run grokked, if it has."""
        return first_step(self._column(slot, "step"), self._column(slot, "validation_accuracy"), GROKKED)

    def save(self, slots: set[int], keep: Keep, is_end: bool = False, is_stop: bool = False) -> None:
        """Write the runs' checkpoints."""
        for slot in slots:
            spec, task, step = self.cohort.specs[slot], self.cohort.tasks[slot], self.steps[slot]
            is_fork_point = is_end or step in spec.checkpoints.at or step == spec.training.steps
            tensors = cut(self.state.row(slot), self.cohort.layout, task.symbols)
            self.folders[slot].save(step, tensors, keep, is_fork_point, is_stop)

    def finish(self, slot: int, failed_at: int | None, stopped_early: bool = False) -> None:
        """Write what became of a run."""
        taken, validation = self._column(slot, "step"), self._column(slot, "validation_accuracy")
        train, found = self._column(slot, "train_accuracy"), self.decision(slot)
        self.folders[slot].finish(
            {
                "outcome": outcome(taken, train, validation, failed_at).name.lower(),
                "failed_at": failed_at,
                "stopped_early": stopped_early,
                "memorized": first_step(taken, train, MEMORIZED),
                "grokked": first_step(taken, validation, GROKKED),
                **_rule_facts(found),
                "layout": {
                    "slots": len(self.cohort),
                    "slot": slot,
                    "padded_size": self.cohort.key.size,
                    "compiled": self.compiled is not False,
                },
                "provenance": provenance(str(self.cohort.device)),
            }
        )

    def _column(self, slot: int, name: str) -> list[Any]:
        return [row[name] for row in self.logs[slot]]


def _rule_facts(found: Decision | Control | None) -> dict[str, Any]:
    """What a run's rule did, for its outcome; a closed loop is named only where there is one."""
    if isinstance(found, Control):
        return {"trigger": None, "control": found.to_dict()}
    return {"trigger": found and {"fired_at": found.fired_at, "restored_at": found.restored_at}}
