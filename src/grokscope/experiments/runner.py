"""Runs, trained to their end and stored: cohorts are formed, measured, checkpointed, and survive interruption."""

import gc
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

import torch

from grokscope.errors import InputError
from grokscope.experiments.devices import slots_that_fit
from grokscope.experiments.refusals import refuse_impossible
from grokscope.experiments.stack import Report, Stack
from grokscope.experiments.states import is_compiled
from grokscope.experiments.store import BusyError, Keep, RunFolder, Store
from grokscope.measures.registry import measure_named
from grokscope.specs import RunSpec
from grokscope.training import CohortKey, advance, cohort_key

__all__ = ["Stopped", "generations", "run_all"]


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
    measures: Sequence[str] = (),
) -> None:
    """Train every run that is not finished; runs that another process holds are left to it.

    Forks come after their parents. On a CPU runs go one by one, on CUDA as many at once as fit. Interrupted runs
    continue from their newest whole state, bit for bit as if they had not stopped (same device, versions, slots). What
    cannot be trained or measured is refused before anything is written.
    """
    refuse_impossible(specs, store, device)
    for name in measures:
        measure_named(name.partition("@")[0])
    cohorts: dict[tuple[int, CohortKey], list[RunSpec]] = {}
    for spec, generation in generations(specs).items():
        cohorts.setdefault((generation, cohort_key(spec)), []).append(spec)
    for (_, key), members in sorted(cohorts.items(), key=lambda item: item[0][0]):
        slots = 1 if device == "cpu" else slots_that_fit(key, device)
        waiting = [members[i : i + slots] for i in range(0, len(members), slots)]
        while waiting:
            batch = waiting.pop(0)
            options = (store, device, keep, report, should_stop, compiled, stop_after_grokking, measures)
            fitted = _fitted(partial(_run_cohort, batch, *options))
            if not fitted:
                if len(batch) == 1:
                    raise InputError(f"one run of {batch[0].task} does not fit into the memory of {device}")
                half = len(batch) // 2  # the layout change is recorded with each run's outcome
                waiting = [batch[:half], batch[half:], *waiting]


def generations(specs: Sequence[RunSpec]) -> dict[RunSpec, int]:
    """How many parents of each run are among the runs themselves: they have to be trained before it."""
    has_forks = any(spec.fork for spec in specs)
    by_name = {spec.content_hash: spec for spec in specs} if has_forks else {}

    def generation(spec: RunSpec) -> int:
        parent = by_name.get(spec.fork.parent) if spec.fork else None
        return 0 if parent is None else 1 + generation(parent)

    return {spec: generation(spec) for spec in specs}


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
    measures: Sequence[str] = (),
) -> None:
    with ExitStack() as locks:
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
            going = Stack(by_slot, store, device, is_compiled(specs, device, compiled), measures, report)
            _train(going, keep, should_stop, stop_after_grokking)


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
