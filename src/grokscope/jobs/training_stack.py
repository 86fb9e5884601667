"""One stack of runs from the first step to the last: placed, evaluated, decided on, saved and finished."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from grokscope.activations import subject_of
from grokscope.jobs.compilation import compilation_of
from grokscope.jobs.states import apply_rule, decide_decay, forked_state, logged_numbers
from grokscope.measures import snapshot
from grokscope.measures.tier_signals import tier_signals
from grokscope.measures.weight_signals import weight_signals
from grokscope.model import sizes_of
from grokscope.runs import Keep, RunFolder, RunOutcome, Store
from grokscope.runs.logs import Row, columns_from
from grokscope.runs.measuring import STEPS_AT_ONCE, Measuring, measure_stack, measure_whole_run
from grokscope.runs.outcome import READING
from grokscope.runs.provenance import provenance
from grokscope.specs import RunSpec
from grokscope.steering import Control, Decision, has_paired_run, paired_run
from grokscope.tasks import Task
from grokscope.timeline import first_step, judged_row
from grokscope.training import Cohort, advance, initial_state
from grokscope.training.checkpoint import cut, digest_weights, padded_row

__all__ = ["Notice", "Options", "Progress", "Report", "Stopped", "TrainingStack"]

GROKKED = READING.grokked
DIGEST = "weights_sha256"  # of a row of the log: text, so no column of evaluations


@dataclass(frozen=True)
class Progress:
    """One evaluation of one run, as a progress bar needs it."""

    run: str
    """Its folder's name."""
    step: int
    """The step of the evaluation."""
    last: int
    """The step at which it ends."""
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


class Stopped(Exception):  # noqa: N818 (not an error: somebody asked)
    """The person or the scheduler asked to stop; everything is stored."""


@dataclass(frozen=True)
class Options:
    """How a stack of runs is trained."""

    device: str
    """Where to compute."""
    keep: Keep
    """What checkpoints hold."""
    report: Report
    """Is called with every evaluation and notice."""
    should_stop: Callable[[], bool]
    """Is called between any two evaluations."""
    compiled: bool | None
    """Whether steps are compiled; None decides by device, model and batch."""
    stop_after_grokking: int | None
    """Steps after which a grokked run ends; None trains to the last step."""
    measuring: Measuring
    """What is measured at the checkpoints."""


class TrainingStack:
    """A stack of runs in training: folders, state, and when each run is due."""

    def __init__(
        self, specs: Sequence[RunSpec], by_slot: Sequence[RunFolder | None], store: Store, options: Options
    ) -> None:
        self.options = options
        self.folders = {slot: folder for slot, folder in enumerate(by_slot) if folder is not None}
        self.compilation = compilation_of(specs[0], options.device, options.compiled)
        paired = {
            slot: paired_run(folder.spec, store.find(folder.spec.fork.parent).spec)
            for slot, folder in self.folders.items()
            if folder.spec.fork is not None and has_paired_run(folder.spec)
        }
        self.cohort = Cohort([None if one is None else one.spec for one in by_slot], options.device, paired)
        self.state = initial_state(self.cohort)
        self.evaluation_steps = [spec.evaluation_steps for spec in self.cohort.specs]
        self.saves = [set(spec.checkpoints.steps(spec.training.steps)) for spec in self.cohort.specs]
        self.steps = {slot: self._place(slot, folder, store) for slot, folder in self.folders.items()}
        for slot, spec in paired.items():
            self.state.put(self.cohort.paired_slot[slot], self._forked(spec, self.folders[slot], store))
        self.logs = {slot: logged_numbers(folder) for slot, folder in self.folders.items()}
        self.kept: dict[int, dict[int, Tensor]] = {
            slot: {} for slot, folder in self.folders.items() if options.measuring.keeps(folder.spec)
        }

    def _place(self, slot: int, folder: RunFolder, store: Store) -> int:
        """Put a run where it stopped, where it forks, or at its beginning."""
        found = folder.latest_state(self._logged_until(slot, folder), self._warning(folder))
        # A run that follows a paired run begins anew: only from the fork on do both take every step together. So does
        # one of whose checkpoints something is measured at its end.
        begins_anew = has_paired_run(folder.spec) or self.options.measuring.keeps(folder.spec)
        if found is not None and not begins_anew:
            step, tensors = found
            self.state.put(slot, padded_row(tensors, self.cohort.layout, sizes_of(self.cohort.tasks[slot])))
            folder.rewind(step)
            return step
        folder.rewind(-1)
        if folder.spec.fork is not None:
            self.state.put(slot, self._forked(folder.spec, folder, store))
            return folder.spec.fork.step
        return 0

    def _forked(self, spec: RunSpec, folder: RunFolder, store: Store) -> dict[str, Tensor]:
        return forked_state(spec, store, self.options.compiled, str(self.cohort.device), self._warning(folder))

    def _warning(self, folder: RunFolder) -> Callable[[str], None]:
        return lambda sentence: self.options.report(Notice(folder.name, sentence))

    def _logged_until(self, slot: int, folder: RunFolder) -> int:
        """The last step before the first evaluation that the log lacks: what was lost is evaluated again."""
        first, measuring = folder.spec.fork.step if folder.spec.fork else 0, self.options.measuring
        due = {first, *(step for step in self.evaluation_steps[slot] if step > first)}
        missing = due - {row["step"] for row in folder.log()}
        if measuring.always and measuring.concerns(folder.spec):
            saved = {step for step in self.saves[slot] if step >= first}
            missing |= saved - {row["step"] for row in folder.log("measures")}
        return min(missing, default=folder.spec.training.steps + 1) - 1

    def train(self) -> None:
        """Take every step of every run, until all have ended; asked to stop, store everything and raise `Stopped`."""
        running = set(self.folders)
        arrived = due = {slot for slot in running if not self.logs[slot]}  # a run that begins is evaluated in any case
        while True:
            self.evaluate(sorted(due))
            at_checkpoint = {slot for slot in arrived if self.steps[slot] in self.saves[slot]}
            self.measure(at_checkpoint)
            self.save(at_checkpoint)
            running = self._end_runs(running)
            if not running:
                return
            if self.options.should_stop():
                self.save(running, is_stop=True)
                raise Stopped
            arrived = running = self._advance(running)
            due = {slot for slot in running if self.steps[slot] in self.evaluation_steps[slot]}

    def _advance(self, running: set[int]) -> set[int]:
        """Take the steps to the next evaluation or checkpoint of any run; those that have not failed."""
        changes = set() if self.compilation.start is None else {self.compilation.start}
        ahead = min(
            stop - self.steps[slot]
            for slot in running
            for stop in self.evaluation_steps[slot] | self.saves[slot] | changes
            if stop > self.steps[slot]
        )
        compiled = self.compilation.after(min(self.steps[slot] for slot in running))
        self.state, info = advance(self.state, self.cohort, ahead, compiled)
        failed = {slot: step for slot in running if (step := info.failed_at[slot]) is not None}
        for slot, step in failed.items():
            self.finish(slot, step)
        for slot in running - failed.keys():
            self.steps[slot] += ahead
        return running - failed.keys()

    def _end_runs(self, running: set[int]) -> set[int]:
        """Finish the runs that have taken their last step, or enough steps since they grokked; the others go on."""
        ended = {slot for slot in running if self.steps[slot] >= self._last_step(slot)}
        for slot in sorted(ended):
            is_early = self.steps[slot] < self.cohort.specs[slot].training.steps
            if is_early:
                self.save({slot}, is_end=True)
            self.state.alive[slot] = False  # the slot idles; its row stays as it is
            self.finish(slot, None, is_early)
        return running - ended

    def _last_step(self, slot: int) -> int:
        """The step at which a run ends, by what is known of it so far."""
        last, after = self.cohort.specs[slot].training.steps, self.options.stop_after_grokking
        grokked = None if after is None else self._grokked_at(slot)
        return last if grokked is None or after is None else min(last, grokked + after)

    def evaluate(self, due: list[int]) -> None:
        """Evaluate the runs that are due, log what was found, and let their rules decide."""
        if not due:
            return
        compiled = self.compilation.until(min(self.steps[slot] for slot in due))
        found = snapshot(self.state.weights, self.cohort, compiled)
        signals = self._signals(due)
        for slot in due:
            step, folder, row = self.steps[slot], self.folders[slot], found.row(slot)
            logged: Row = {"step": step, **row, **signals[slot], "weight_decay": float(self.state.weight_decay[slot])}
            if step in self.options.measuring.digests.get(folder.spec.content_hash, ()):
                logged[DIGEST] = self._digest(slot)  # in the log, which a stop keeps
            folder.append(logged)
            self.logs[slot].append(logged)
            self.options.report(Progress(folder.name, step, self.cohort.specs[slot].training.steps, row))
            apply_rule(self.state, slot, self.cohort.specs[slot], self.logs[slot])

    def _digest(self, slot: int) -> str:
        row = {"weights": self.state.row(slot)["weights"]}
        return digest_weights(cut(row, self.cohort.layout, sizes_of(self.cohort.tasks[slot])))

    def _signals(self, due: list[int]) -> list[dict[str, float]]:
        """What each run's evaluation logs beyond the columns that every run has, where it is due."""
        rows: list[dict[str, float]] = [{} for _ in range(len(self.cohort))]
        if self.options.measuring.signals:
            rows = weight_signals(self.state, self.cohort)
        if self.options.measuring.tier_signals:
            more = tier_signals(self.state.weights, self.cohort, due)
            rows = [row | found for row, found in zip(rows, more, strict=True)]
        return rows

    def measure(self, slots: set[int]) -> None:
        """Take the measures that are due at the checkpoints of these runs, all of one kind together."""
        kinds: dict[tuple[Task, tuple[str, ...]], list[int]] = {}
        for slot in sorted(slots):
            if self.options.measuring.concerns(self.cohort.specs[slot]):
                kinds.setdefault((self.cohort.tasks[slot], self._due_measures(slot)), []).append(slot)
        size = STEPS_AT_ONCE[self.cohort.device.type]
        for (_, measures), own in kinds.items():
            for start in range(0, len(own) if measures else 0, size):
                part = own[start : start + size]
                specs = [self.cohort.specs[slot] for slot in part]
                names = [f"{self.folders[slot].name} at step {self.steps[slot]}" for slot in part]
                rows = measure_stack(subject_of(specs, self.state.weights[part], names), measures)
                for slot, row in zip(part, rows, strict=True):
                    self.folders[slot].append({"step": self.steps[slot], **row}, "measures")
        for slot in slots & self.kept.keys():
            self.kept[slot][self.steps[slot]] = self.state.weights[slot].to("cpu", copy=True)

    def _measure_afterwards(self, slot: int) -> None:
        """Take the measures of a run that has ended; of repeated steps in its log the last row counts."""
        kept, folder = self.kept.pop(slot, {}), self.folders[slot]
        if not kept:
            return
        before = {row["step"]: row for row in folder.log("measures")}
        weights = {step: row.to(self.cohort.device) for step, row in kept.items()}
        for row in measure_whole_run(folder.spec, weights, self.options.measuring.afterwards, folder.name):
            former = before.get(int(row["step"]), {})
            reasons = dict.fromkeys(filter(None, (former.get("undefined"), row.get("undefined"))))
            folder.append({**former, **row, "undefined": "; ".join(map(str, reasons))}, "measures")

    def _due_measures(self, slot: int) -> tuple[str, ...]:
        """What is measured of a run at this checkpoint: more at its last, and at the first since it grokked."""
        step, grokked, measuring = self.steps[slot], self._grokked_at(slot), self.options.measuring
        before = max((save for save in self.saves[slot] if save < step), default=-1)
        is_last = step == self.cohort.specs[slot].training.steps
        is_milestone = is_last or (grokked is not None and before < grokked <= step)
        return (*measuring.always, *(measuring.milestones if is_milestone else ()))

    def _grokked_at(self, slot: int) -> int | None:
        """Where a run grokked, if it has."""
        steps = [row["step"] for row in self.logs[slot]]
        return first_step(steps, [judged_row(row)["validation_accuracy"] for row in self.logs[slot]], GROKKED)

    def save(self, slots: set[int], is_end: bool = False, is_stop: bool = False) -> None:
        """Write the runs' checkpoints."""
        for slot in slots:
            spec, task, step = self.cohort.specs[slot], self.cohort.tasks[slot], self.steps[slot]
            if not self.folders[slot].would_save(step, self.options.keep, is_stop):
                continue
            is_fork_point = is_end or step in spec.checkpoints.at or step == spec.training.steps
            tensors = cut(self.state.row(slot), self.cohort.layout, sizes_of(task))
            self.folders[slot].save(step, tensors, self.options.keep, is_fork_point, is_stop)

    def finish(self, slot: int, failed_at: int | None, stopped_early: bool = False) -> None:
        """Measure what waits for a run's end, and write how it ended."""
        self._measure_afterwards(slot)
        start, compiled = self.compilation.start, self.compilation.until(failed_at or self.steps[slot])
        by_kernels = compiled is None and self.cohort.has_kernels
        layout = {
            "slots": len(self.cohort),
            "slot": slot,
            "padded_size": self.cohort.key.sizes.classes,
            "compiled": compiled is not False and not by_kernels,
            "kernels": by_kernels,
            **({"compiled_from": start} if start is not None and compiled else {}),
        }
        outcome = RunOutcome.from_evaluations(
            columns_from(self.logs[slot]),
            failed_at,
            stopped_early=stopped_early,
            layout=layout,
            weights={str(row["step"]): row[DIGEST] for row in self.logs[slot] if DIGEST in row} or None,
            provenance=provenance(self.options.device),
            **_rule_facts(decide_decay(self.cohort.specs[slot], self.logs[slot])),
        )
        self.folders[slot].finish(outcome)


def _rule_facts(found: Decision | Control | None) -> dict[str, Any]:
    """What a run's rule did, for its outcome; a closed loop is named only where there is one."""
    if isinstance(found, Control):
        return {"control": found.to_dict()}
    return {"trigger": found and {"fired_at": found.fired_at, "restored_at": found.restored_at}}
