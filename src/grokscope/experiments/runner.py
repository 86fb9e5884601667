"""Runs, trained to their end and stored: cohorts are formed, measured, checkpointed, and survive interruption."""

import gc
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from grokscope.errors import InputError, shown
from grokscope.experiments.provenance import provenance
from grokscope.experiments.store import BusyError, Keep, RunFolder, Store, run_name
from grokscope.measures import Snapshot, snapshot
from grokscope.model import layout_of, padded_size
from grokscope.specs import ReadingSpec, RunSpec
from grokscope.tasks import named_task, split
from grokscope.timeline import first_step, outcome
from grokscope.training import Cohort, CohortKey, State, advance, cohort_key, initial_state
from grokscope.training.checkpoint import cut, named, padded_row

__all__ = ["Progress", "Stopped", "refuse_impossible", "run_all", "slots_that_fit", "state_at"]

MOST_SLOTS = 512
COMPILE_PAYS_AFTER = 2500  # steps of the whole run, on a CPU
MIB_PER_RUN = 30  # a guess to start from: 28.8 MiB were allocated per run of the paper's model at batch 512, TF32
HEADROOM = 0.7  # of free memory
GROKKED = ReadingSpec().grokked


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


class Stopped(Exception):  # noqa: N818 (not an error: somebody asked)
    """The person or the scheduler asked to stop; everything is stored."""


def run_all(
    specs: Sequence[RunSpec],
    store: Store,
    *,
    device: str = "cpu",
    keep: Keep = "weights",
    report: Callable[[Progress], None] = lambda progress: None,
    should_stop: Callable[[], bool] = lambda: False,
    compiled: bool | None = None,
    stop_after_grokking: int | None = None,
) -> None:
    """Train every run that is not finished; runs that another process holds are left to it.

    On a CPU runs go one by one, on CUDA as many at once as fit. Interrupted runs continue from their newest whole
    state, bit for bit as if they had not stopped (same device, versions, slots). What cannot be trained is refused
    before anything is written.
    """
    refuse_impossible(specs, store, device)
    cohorts: dict[CohortKey, list[RunSpec]] = {}
    for spec in dict.fromkeys(specs):
        cohorts.setdefault(cohort_key(spec), []).append(spec)
    for key, members in cohorts.items():
        slots = 1 if device == "cpu" else slots_that_fit(key, device)
        waiting = [members[i : i + slots] for i in range(0, len(members), slots)]
        while waiting:
            batch = waiting.pop(0)
            options = (store, device, keep, report, should_stop, compiled, stop_after_grokking)
            fitted = _fitted(partial(_run_cohort, batch, *options))
            if not fitted:
                if len(batch) == 1:
                    raise InputError(f"one run of {batch[0].task} does not fit into the memory of {device}")
                half = len(batch) // 2  # the layout change is recorded with each run's outcome
                waiting = [batch[:half], batch[half:], *waiting]


def _fitted(work: Callable[[], None]) -> bool:
    """Do the work; False if the accelerator's memory did not suffice, which is then free again."""
    try:
        work()
        return True
    except Exception as error:  # a compiler wraps the allocator's error in its own
        if not isinstance(error, torch.OutOfMemoryError) and "out of memory" not in str(error).lower():
            raise
    # Only outside the handler are the failed frames, and the tensors they hold, let go.
    torch._dynamo.reset()
    gc.collect()
    torch.cuda.empty_cache()
    return False


def slots_that_fit(key: CohortKey, device: str) -> int:
    """How many runs to train at once, from the free memory: parameters, moments and activations of each."""
    parameters = 16 * layout_of(key.architecture, key.size).size
    activations = MIB_PER_RUN * 2**20 * key.batch / 512 * key.architecture.layers / 2
    free, _ = torch.cuda.mem_get_info(device)
    return max(1, min(MOST_SLOTS, int(HEADROOM * free / (parameters + activations))))


def refuse_impossible(specs: Sequence[RunSpec], store: Store, device: str) -> None:
    """Say what cannot be trained, before anything is written."""
    if device != "cpu" and not (device.partition(":")[0] == "cuda" and torch.cuda.is_available()):
        raise InputError(f"device {shown(device)} was asked for, and there is none; use cpu")
    if any(spec.trigger is not None for spec in specs):
        raise InputError("runs with a trigger cannot be trained yet; leave `trigger` out")
    for task, fraction, seed in {(spec.task, spec.train_fraction, spec.seeds.split) for spec in specs}:
        split(named_task(task), fraction, seed)
    nearest = next(place for place in (store.path, *store.path.parents, Path()) if place.exists())
    if not nearest.is_dir():
        raise InputError(f"the folder {named(store.path)} could not be made: {named(nearest)} is a file")
    if any(spec.fork for spec in specs):
        _refuse_impossible_forks(specs, store)


def _refuse_impossible_forks(specs: Sequence[RunSpec], store: Store) -> None:
    stored = {folder.spec.content_hash: folder for folder in store}
    known = {name: folder.spec for name, folder in stored.items()}
    for spec in specs:
        if spec.fork is not None:
            parent, name = known.get(spec.fork.parent), spec.fork.parent
            if parent is None:
                raise InputError(f"there is no run {shown(name)} in {named(store.path)} to fork from")
            first = parent.fork.step if parent.fork else 0
            outcome = (stored[name].outcome if name in stored else None) or {}
            last = parent.training.steps if outcome.get("failed_at") is None else outcome["failed_at"]
            if not first <= spec.fork.step <= last:
                raise InputError(f"{run_name(parent)} has states from step {first} to {last}, got {spec.fork.step}")
            shapes = [(s.architecture, named_task(s.task).symbols) for s in (spec, parent)]
            if shapes[0] != shapes[1]:
                raise InputError(f"a fork must have the architecture and symbols of its parent {run_name(parent)}")
        known[spec.content_hash] = spec


def _is_compiled(specs: Sequence[RunSpec], device: str, compiled: bool | None) -> bool | None:
    """Decided by the specs, never by what is left to do.

    Compiled arithmetic rounds differently, and a resumed run must go on as it began.
    """
    if compiled is None and device == "cpu":
        return max(spec.training.steps for spec in specs) > COMPILE_PAYS_AFTER
    return compiled


class _Cohort:
    """One stack on its way: folders, state, and when each run is due."""

    def __init__(self, folders: list[RunFolder], store: Store, device: str, compiled: bool | None) -> None:
        self.folders, self.compiled = folders, compiled
        self.cohort = Cohort([folder.spec for folder in folders], device)
        self.state = initial_state(self.cohort)
        specs = self.cohort.specs
        self.looks = [set(spec.measurements.steps(spec.training.steps)) for spec in specs]
        self.saves = [set(spec.checkpoints.steps(spec.training.steps)) for spec in specs]
        self.first_steps = [self._place(slot, folder, store) for slot, folder in enumerate(folders)]

    def _place(self, slot: int, folder: RunFolder, store: Store) -> int:
        """Put a run where it stopped, where it forks, or at its beginning."""
        found = folder.latest_state(at_most=self._logged_until(slot, folder))
        if found is not None:
            step, tensors = found
            self.state.put(slot, padded_row(tensors, self.cohort.layout, self.cohort.tasks[slot].symbols))
            folder.rewind(step)
            return step
        folder.rewind(-1)
        if folder.spec.fork is not None:
            row = _forked(folder.spec, store, self.compiled)
            self.state.put(slot, row)
            return folder.spec.fork.step
        return 0

    def _logged_until(self, slot: int, folder: RunFolder) -> int:
        """The last step before the first measurement that the log lacks: what was lost is measured again."""
        first = folder.spec.fork.step if folder.spec.fork else 0
        due = {first, *(step for step in self.looks[slot] if step > first)}
        missing = due - {row["step"] for row in folder.log()}
        return min(missing, default=folder.spec.training.steps + 1) - 1

    def next_stop(self, slot: int, step: int) -> int:
        return min(s for s in self.looks[slot] | self.saves[slot] if s > step)


def _run_cohort(
    specs: Sequence[RunSpec],
    store: Store,
    device: str,
    keep: Keep,
    report: Callable[[Progress], None],
    should_stop: Callable[[], bool],
    compiled: bool | None,
    stop_after_grokking: int | None,
) -> None:
    with ExitStack() as locks:
        folders = []
        for spec in specs:
            folder = store.add(spec)
            try:
                locks.enter_context(folder.locked())
            except BusyError:
                continue
            if folder.outcome is None:
                folders.append(folder)
            else:
                folder.tidy()
        if folders:
            compiled = _is_compiled([folder.spec for folder in folders], device, compiled)
            going = _Cohort(folders, store, device, compiled)
            _train(going, keep, report, should_stop, stop_after_grokking)


def _train(
    going: _Cohort,
    keep: Keep,
    report: Callable[[Progress], None],
    should_stop: Callable[[], bool],
    stop_after_grokking: int | None,
) -> None:
    cohort, state = going.cohort, going.state
    steps = list(going.first_steps)
    running = set(range(len(cohort)))
    beginning = [slot for slot in running if not going.folders[slot].log()]
    _look(going, steps, beginning, report)
    _save(going, steps, {slot for slot in beginning if steps[slot] in going.saves[slot]}, keep)
    grokked_at = {slot: _grokked_at(going.folders[slot]) for slot in running}
    while True:
        for slot in sorted(running):
            last, grokked = cohort.specs[slot].training.steps, grokked_at[slot]
            enough = last
            if stop_after_grokking is not None and grokked is not None:
                enough = min(last, grokked + stop_after_grokking)
            if steps[slot] >= enough:
                running.discard(slot)
                if steps[slot] < last:
                    _save(going, steps, {slot}, keep, is_end=True)
                state.alive[slot] = False  # the slot idles; its row stays as it is
                _finish(going, slot, None, stopped_early=steps[slot] < last)
        if not running:
            return
        if should_stop():
            _save(going, steps, running, keep)
            raise Stopped
        ahead = min(going.next_stop(slot, steps[slot]) - steps[slot] for slot in running)
        state, info = advance(state, cohort, ahead, going.compiled)
        for slot in list(running):
            failed = info.failed_at[slot]
            if failed is not None:
                running.discard(slot)
                _finish(going, slot, failed)
                continue
            steps[slot] += ahead
        due = [slot for slot in running if steps[slot] in going.looks[slot]]
        rows = _look(going, steps, due, report)
        _save(going, steps, {slot for slot in running if steps[slot] in going.saves[slot]}, keep)
        for slot, row in rows.items():
            if grokked_at[slot] is None and row["validation_accuracy"] >= GROKKED:
                grokked_at[slot] = steps[slot]


def _grokked_at(folder: RunFolder) -> int | None:
    """Where a run grokked, if it did before it was interrupted (or forked)."""
    log = folder.log()
    return first_step([row["step"] for row in log], [_number(row["validation_accuracy"]) for row in log], GROKKED)


def _look(
    going: _Cohort, steps: list[int], due: list[int], report: Callable[[Progress], None]
) -> dict[int, dict[str, float]]:
    if not due:
        return {}
    seen: Snapshot = snapshot(going.state.weights, going.cohort, going.compiled)
    rows = {}
    for slot in due:
        rows[slot] = seen.row(slot)
        folder, decay = going.folders[slot], float(going.state.weight_decay[slot])
        folder.append({"step": steps[slot], **rows[slot], "weight_decay": decay})
        report(Progress(folder.name, steps[slot], going.cohort.specs[slot].training.steps, rows[slot]))
    return rows


def _save(going: _Cohort, steps: list[int], slots: set[int], keep: Keep, is_end: bool = False) -> None:
    for slot in slots:
        spec, task = going.cohort.specs[slot], going.cohort.tasks[slot]
        is_fork_point = is_end or steps[slot] in spec.checkpoints.at or steps[slot] == spec.training.steps
        tensors = cut(going.state.row(slot), going.cohort.layout, task.symbols)
        going.folders[slot].save(steps[slot], tensors, keep, is_fork_point)


def _finish(going: _Cohort, slot: int, failed_at: int | None, stopped_early: bool = False) -> None:
    folder, cohort = going.folders[slot], going.cohort
    log = folder.log()
    taken = [row["step"] for row in log]
    train = [_number(row["train_accuracy"]) for row in log]
    validation = [_number(row["validation_accuracy"]) for row in log]
    folder.finish(
        {
            "outcome": outcome(taken, train, validation, failed_at).name.lower(),
            "failed_at": failed_at,
            "stopped_early": stopped_early,
            "memorized": first_step(taken, train, 0.99),
            "grokked": first_step(taken, validation, GROKKED),
            "layout": {
                "slots": len(cohort),
                "slot": slot,
                "padded_size": cohort.key.size,
                "compiled": going.compiled is not False,
            },
            "provenance": provenance(str(cohort.device)),
        }
    )


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _forked(spec: RunSpec, store: Store, compiled: bool | None) -> dict[str, torch.Tensor]:
    """The state a fork begins with: its parent's at that step, with its own λ if that is another."""
    assert spec.fork is not None
    parent = store.find(spec.fork.parent)
    row = state_at(parent, spec.fork.step, store, compiled)
    if spec.fork.moments == "reset":
        row["first"], row["second"] = torch.zeros_like(row["first"]), torch.zeros_like(row["second"])
        row["age"] = torch.zeros_like(row["age"])
    if spec.training.weight_decay != parent.spec.training.weight_decay:  # else the λ in force, which a schedule may set
        row["weight_decay"] = torch.tensor(spec.training.weight_decay, dtype=torch.float64)
    row["alive"] = torch.tensor(True)
    return row


def state_at(folder: RunFolder, step: int, store: Store, compiled: bool | None = None) -> dict[str, torch.Tensor]:
    """A run's full state at a step: as stored, or trained again from the newest state before it (on one slot)."""
    first, last = folder.spec.fork.step if folder.spec.fork else 0, folder.spec.training.steps
    if not first <= step <= last:
        raise InputError(f"{folder.name} has states from step {first} to {last}, got {step}")
    task = named_task(folder.spec.task)
    layout = layout_of(folder.spec.architecture, padded_size(task.symbols))
    found = folder.latest_state(at_most=step)
    if found is not None and found[0] == step:
        return padded_row(found[1], layout, task.symbols)
    cohort = Cohort([folder.spec])
    state: State = initial_state(cohort)
    start = 0
    if found is not None:
        start = found[0]
        state.put(0, padded_row(found[1], layout, task.symbols))
    elif folder.spec.fork is not None:
        start = folder.spec.fork.step
        state.put(0, _forked(folder.spec, store, compiled))
    if step > start:
        _, info = advance(state, cohort, step - start, _is_compiled([folder.spec], "cpu", compiled))
        if info.failed_at[0] is not None:
            raise InputError(f"{folder.name} diverged at step {info.failed_at[0]}; it has no state at step {step}")
    return state.row(0)
