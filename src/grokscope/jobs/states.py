"""The full state of a run at any step: stored, forked from its parent's, or trained again."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from torch import Tensor

from grokscope.errors import InputError
from grokscope.jobs.compilation import Compilation, compilation_when_trained
from grokscope.measures import snapshot
from grokscope.model import layout_of, padded_sizes, sizes_of
from grokscope.runs import RunFolder, Store
from grokscope.runs.logs import Row
from grokscope.specs import RunSpec
from grokscope.steering import Control, Decision, controlled, decision, drawn_step, forked, has_paired_run, released
from grokscope.tasks import named_task
from grokscope.training import Cohort, State, advance, initial_state
from grokscope.training.checkpoint import padded_row

__all__ = ["apply_rule", "decide_decay", "forked_state", "logged_numbers", "state_at"]

Warn = Callable[[str], None]


def forked_state(
    spec: RunSpec, store: Store, compiled: bool | None, device: str = "cpu", warn: Warn = lambda sentence: None
) -> dict[str, Tensor]:
    """The state a fork begins with: its parent's at that step, with its own λ if that is another."""
    assert spec.fork is not None
    parent = store.find(spec.fork.parent)
    return forked(state_at(parent, spec.fork.step, store, compiled, device, warn), spec, parent.spec)


def logged_numbers(folder: RunFolder) -> list[Row]:
    """The rows of a run's log; what is undefined, and null there, is NaN."""
    return [{name: math.nan if value is None else value for name, value in row.items()} for row in folder.log()]


def decide_decay(spec: RunSpec, evaluations: Sequence[Mapping[str, Any]]) -> Decision | Control | None:
    """What a run's trigger, closed loop or release makes of λ, if it has one.

    It depends on what was logged alone, so it survives a restart.
    """
    if spec.release is not None:
        return released(spec.release, spec.training.known_weight_decay, evaluations, is_fork=spec.fork is not None)
    if spec.control is not None:
        return controlled(spec.control, spec.training.known_weight_decay, evaluations)
    if spec.trigger is None:
        return None
    at_random = drawn_step(spec.seeds.data_order, spec.training.steps)
    return decision(spec.trigger, spec.training.known_weight_decay, evaluations, at_random)


def apply_rule(state: State, slot: int, spec: RunSpec, evaluations: Sequence[Mapping[str, Any]]) -> None:
    """Set λ as the run's rule decides; before it has changed anything, λ stays what the run, or its parent, made it."""
    found = decide_decay(spec, evaluations)
    has_acted = found.changes if isinstance(found, Control) else found is not None and found.fired_at is not None
    if found is not None and has_acted:
        state.weight_decay[slot] = found.weight_decay


def state_at(
    folder: RunFolder,
    step: int,
    store: Store,
    compiled: bool | None = None,
    device: str = "cpu",
    warn: Warn = lambda sentence: None,
) -> dict[str, Tensor]:
    """A run's full state at a step: as stored, or trained again from the newest state before it, in one slot.

    Training again is said in a sentence; on the same kind of device it leaves the same bits.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.specs import RunSpec
    >>> small = {"layers": 1, "width": 8, "heads": 1, "mlp_width": 16, "steps": 2, "batch_size": 4}
    >>> spec = RunSpec("add_mod5").with_values(small)
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     state = state_at(store.add(spec), 1, store, compiled=False)
    >>> int(state["step"])
    1
    """
    first, last = folder.spec.fork.step if folder.spec.fork else 0, folder.spec.training.steps
    if not first <= step <= last:
        raise InputError(f"{folder.name} has states from step {first} to {last}, got {step}")
    task = named_task(folder.spec.task)
    layout = layout_of(folder.spec.architecture, padded_sizes(task))
    found = folder.latest_state(step, warn)
    if found is not None and found[0] == step:
        return padded_row(found[1], layout, sizes_of(task))
    cohort = Cohort([folder.spec], device)
    state, start = initial_state(cohort), first if found is None else found[0]
    if found is not None:
        state.put(0, padded_row(found[1], layout, sizes_of(task)))
    elif folder.spec.fork is not None:
        state.put(0, forked_state(folder.spec, store, compiled, device, warn))
    if step > start:
        if has_paired_run(folder.spec):
            raise InputError(
                f"{folder.name} follows its parent's norm: its state at step {step} was not stored and cannot be "
                "recomputed"
            )
        warn(f"{folder.name} stored no state at step {step}: trained again from step {start}, alone, on {device}")
        compilation = compilation_when_trained(folder.spec, device, compiled, folder.outcome)
        _train_again(folder, state, cohort, start, step, compilation)
    return state.row(0)


def _train_again(
    folder: RunFolder, state: State, cohort: Cohort, start: int, end: int, compilation: Compilation
) -> None:
    """From one step to another, with what the run's rule decided; evaluations that the log lacks are made."""
    begins = folder.spec.fork.step if folder.spec.fork else 0
    due = {begins, *folder.spec.evaluation_steps} if folder.spec.rule else set()
    known: dict[int, Mapping[str, Any]] = {row["step"]: row for row in logged_numbers(folder)}
    stops = sorted(step for step in due | {compilation.start or 0} if start < step < end)
    for first, last in pairwise([start, *stops, end, end]):  # a state is what it is after its evaluation's decision
        if first in due and first not in known:
            evaluation = snapshot(state.weights, cohort, compilation.until(first)).row(0)
            known[first] = {"step": first, **evaluation, "weight_decay": float(state.weight_decay[0])}
        apply_rule(state, 0, folder.spec, [known[step] for step in sorted(known) if step <= first])
        if first == last:
            return
        _, info = advance(state, cohort, last - first, compilation.after(first))
        if info.failed_at[0] is not None:
            raise InputError(f"{folder.name} diverged at step {info.failed_at[0]}; it has no state at step {end}")
