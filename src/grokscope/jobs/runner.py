"""Runs, trained to their end and stored: cohorts are formed, measured, checkpointed, and survive interruption."""

import gc
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from time import sleep

import torch

from grokscope.errors import InputError
from grokscope.jobs.capacity import slots_that_fit
from grokscope.jobs.checks import refuse_impossible, refuse_unmeasurable
from grokscope.jobs.stack import Report, Stack
from grokscope.jobs.stacks import cohorts_of, even_parts, generations
from grokscope.jobs.states import is_compiled
from grokscope.runs.locks import BusyError
from grokscope.runs.measuring import Measuring
from grokscope.runs.run_folder import Keep, RunFolder, run_name
from grokscope.runs.store import Store
from grokscope.specs import RunSpec
from grokscope.training import CohortKey, advance

__all__ = ["Stopped", "generations", "run_all"]

NOTHING = Measuring()
WAIT = 0.5  # seconds between looks at what another process is doing


class Stopped(Exception):  # noqa: N818 (not an error: somebody asked)
    """The person or the scheduler asked to stop; everything is stored."""


def run_all(
    specs: Sequence[RunSpec],
    store: Store,
    *,
    device: str = "cpu",
    keep: Keep = "weights",
    report: Report = lambda said: None,
    should_stop: Callable[[], bool] = lambda: False,
    compiled: bool | None = None,
    stop_after_grokking: int | None = None,
    measuring: Measuring = NOTHING,
) -> None:
    """Train every run that is not finished; runs that another process holds are left to it.

    Forks come after their parents. On a CPU runs go one by one, on CUDA as many at once as fit. Interrupted runs
    continue from their newest whole state, bit for bit as if they had not stopped (same device, versions, slots). What
    cannot be trained or measured is refused before anything is written.
    """
    refuse_impossible(specs, store, device)
    refuse_unmeasurable(specs, (*measuring.always, *measuring.milestones), device)
    for key, members in _cohorts(specs, store):
        waiting = even_parts(members, 1 if device == "cpu" else slots_that_fit(key, device))
        while waiting:
            batch = waiting.pop(0)
            options = (store, device, keep, report, should_stop, compiled, stop_after_grokking, measuring)
            fitted = _fitted(partial(_run_cohort, batch, *options))
            if not fitted:
                if len(batch) == 1:
                    raise InputError(f"one run of {batch[0].task} does not fit into the memory of {device}")
                half = len(batch) // 2  # the layout change is recorded with each run's outcome
                waiting = [batch[:half], batch[half:], *waiting]


def _cohorts(specs: Sequence[RunSpec], store: Store) -> list[tuple[CohortKey, list[RunSpec]]]:
    """Runs that can share a stack, parents before their forks.

    What is finished is left out, unless others have begun in the same stack: they keep their slots, and with them
    every bit.
    """
    kept = [(key, _unfinished(members, store)) for _, key, members in cohorts_of(specs)]
    return [(key, members) for key, members in kept if members]


def _unfinished(members: list[RunSpec], store: Store) -> list[RunSpec]:
    """Those to train; with the finished ones in their places if some of the others have begun."""
    left = [spec for spec in members if not store.is_finished(spec)]
    for spec in set(members) - set(left):
        _tidy(RunFolder(store.path / run_name(spec), spec))
    return members if any(map(store.has_begun, left)) else left


def _tidy(folder: RunFolder) -> None:
    """Clear what a writer left behind that was killed when its run had just ended."""
    if any((folder.path / name).exists() for name in ("lock", "passing.json")):
        with suppress(BusyError), folder.locked():
            folder.tidy()


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


def _run_cohort(
    specs: Sequence[RunSpec],
    store: Store,
    device: str,
    keep: Keep,
    report: Report,
    should_stop: Callable[[], bool],
    compiled: bool | None,
    stop_after_grokking: int | None,
    measuring: Measuring = NOTHING,
) -> None:
    with ExitStack() as locks:
        # Workers that share a plan take whole cohorts: a stack split between two would round differently each time.
        try:
            locks.enter_context(store.claimed(specs))
        except BusyError:
            return
        _await_parents(specs, store, should_stop)
        # What is finished, or another process's, leaves its slot empty: the others keep theirs, and with it every bit.
        by_slot: list[RunFolder | None] = []
        for spec in specs:
            folder = store.add(spec)
            by_slot.append(None)
            try:
                locks.enter_context(folder.locked())
            except BusyError:
                continue
            if folder.outcome is None:
                by_slot[-1] = folder
            else:
                folder.tidy()
        if any(by_slot):
            going = Stack(by_slot, store, device, is_compiled(specs, device, compiled), measuring, report)
            _train(going, keep, should_stop, stop_after_grokking)


def _await_parents(specs: Sequence[RunSpec], store: Store, should_stop: Callable[[], bool]) -> None:
    """Wait while another process trains towards the states that these forks begin with."""
    waiting = [spec for spec in specs if spec.fork is not None]
    while waiting := [spec for spec in waiting if _is_on_its_way(spec, store)]:
        if should_stop():
            raise Stopped
        sleep(WAIT)


def _is_on_its_way(spec: RunSpec, store: Store) -> bool:
    """Whether a fork's parent has no state at its step yet, and somebody is making it."""
    assert spec.fork is not None
    parent = store.find(spec.fork.parent)
    return spec.fork.step not in parent.checkpoints("state") and parent.outcome is None and parent.is_held()


def _train(
    going: Stack,
    keep: Keep,
    should_stop: Callable[[], bool],
    stop_after_grokking: int | None,
) -> None:
    cohort, state, steps, running = going.cohort, going.state, going.steps, set(going.folders)
    beginning = [slot for slot in running if not going.logs[slot]]
    going.look(beginning)
    going.measure({slot for slot in beginning if steps[slot] in going.saves[slot]})
    going.save({slot for slot in beginning if steps[slot] in going.saves[slot]}, keep)
    while True:
        for slot in sorted(running):
            last = cohort.specs[slot].training.steps
            enough = _last_wanted(going, slot, stop_after_grokking)
            if steps[slot] >= enough:
                running.discard(slot)
                if steps[slot] < last:
                    going.save({slot}, keep, is_end=True)
                state.alive[slot] = False  # the slot idles; its row stays as it is
                going.finish(slot, None, stopped_early=steps[slot] < last)
        if not running:
            return
        if should_stop():
            going.save(running, keep, is_stop=True)
            raise Stopped
        ahead = min(going.next_stop(slot, steps[slot]) - steps[slot] for slot in running)
        state, info = advance(state, cohort, ahead, going.compiled)
        for slot in list(running):
            failed = info.failed_at[slot]
            if failed is not None:
                running.discard(slot)
                going.finish(slot, failed)
                continue
            steps[slot] += ahead
        going.look([slot for slot in running if steps[slot] in going.looks[slot]])
        due = {slot for slot in running if steps[slot] in going.saves[slot]}
        going.measure(due)
        going.save(due, keep)


def _last_wanted(going: Stack, slot: int, stop_after_grokking: int | None) -> int:
    """The step at which a run ends: its last, or some steps after it grokked."""
    last = going.cohort.specs[slot].training.steps
    grokked = None if stop_after_grokking is None else going.grokked_at(slot)
    return last if grokked is None or stop_after_grokking is None else min(last, grokked + stop_after_grokking)
