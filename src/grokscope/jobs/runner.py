"""Runs, trained to their end and stored: stacks are formed, evaluated, checkpointed, and survive interruption."""

import gc
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import ExitStack, suppress
from time import sleep

import torch

from grokscope.errors import InputError, for_shell
from grokscope.jobs.preparation import find_damaged, reject_impossible
from grokscope.jobs.stacks import plan_stacks, slots_that_fit, split_evenly
from grokscope.jobs.training_stack import Notice, Options, Report, Stopped, TrainingStack
from grokscope.runs import BusyError, Keep, Measuring, RunFolder, Store, run_name
from grokscope.specs import Fork, Membership, RunSpec

__all__ = ["Studies", "run_all"]

Studies = Mapping[RunSpec, tuple[Membership, ...]]
NOTHING = Measuring()
PAUSE = 0.5  # seconds before it is checked again what another process is doing


def run_all(
    specs: Sequence[RunSpec],
    store: Store,
    *,
    device: str = "cpu",
    keep: Keep = "weights",
    report: Report = lambda message: None,
    should_stop: Callable[[], bool] = lambda: False,
    compiled: bool | None = None,
    stop_after_grokking: int | None = None,
    measuring: Measuring = NOTHING,
    made_for: Studies | None = None,
) -> None:
    """Train every run that is not finished; runs that another process holds are left to it.

    Forks come after their parents. On a CPU runs go one by one, on CUDA as many at once as fit. Interrupted runs
    continue from their newest whole state, bit for bit as if they had not stopped (same device, versions, slots). What
    cannot be trained or measured is rejected before anything is written; a run that is damaged is reported and left
    alone. `made_for` names the studies of each run.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.specs import Architecture, Training
    >>> small = Architecture(layers=1, width=8, heads=1, mlp_width=16)
    >>> spec = RunSpec("add_mod5", architecture=small, training=Training(steps=2, batch_size=4))
    >>> with TemporaryDirectory() as folder:
    ...     run_all([spec], Store(folder), compiled=False)
    ...     [run.outcome.is_finished for run in Store(folder)]
    [True]
    """
    damaged = find_damaged(specs, store)
    for spec, why in damaged.items():
        report(
            Notice(
                run_name(spec),
                f"{run_name(spec)} is left alone: {why}; see `grokscope doctor {for_shell(store.address)}`",
            )
        )
    sound = [spec for spec in specs if spec not in damaged]
    reject_impossible(sound, store, device, measuring.names)
    options = Options(device, keep, report, should_stop, compiled, stop_after_grokking, measuring)
    studies = made_for or {}
    for _, members in plan_stacks(specs):
        left = _unfinished(members, damaged, store, studies)
        waiting = split_evenly(left, 1 if device == "cpu" else slots_that_fit(members, device)) if left else []
        while waiting:
            batch = waiting.pop(0)
            if not _train_stack(batch, store, options, studies, damaged):
                if len(batch) == 1:
                    raise InputError(f"one run of {batch[0].task} does not fit into the memory of {device}")
                half = len(batch) // 2  # the layout change is recorded with each run's outcome
                waiting = [batch[:half], batch[half:], *waiting]


def _unfinished(members: list[RunSpec], damaged: Container[RunSpec], store: Store, studies: Studies) -> list[RunSpec]:
    """Those to train; with the finished ones if some of the others have begun in the same stack.

    Then the others keep their slots, and with them every bit. Studies are noted of what is finished, too.
    """
    sound = [spec for spec in members if spec not in damaged]
    left = [spec for spec in sound if not store.is_finished(spec)]
    for spec in set(sound) - set(left):
        if store.locate(spec).path.is_symlink():  # nothing is written through it
            continue
        _tidy(store.locate(spec))
        if spec in studies:
            store.add(spec, studies[spec])
    return members if any(map(store.has_begun, left)) else left


def _tidy(folder: RunFolder) -> None:
    """Clear what a writer left behind that was killed when its run had just ended."""
    if any((folder.path / name).exists() for name in ("lock", "passing.json")):
        with suppress(BusyError), folder.lock():
            folder.tidy()


def _train_stack(
    specs: Sequence[RunSpec], store: Store, options: Options, studies: Studies, damaged: Container[RunSpec] = ()
) -> bool:
    """Train the runs of one stack; False if the accelerator's memory did not suffice, which is then free again."""
    stack: TrainingStack | None = None
    try:
        with ExitStack() as locks:
            stack = _take_stack(specs, damaged, store, options, studies, locks)
            if stack is not None:
                stack.train()
        return True
    except Exception as error:  # a compiler wraps the allocator's error in its own
        if not isinstance(error, torch.OutOfMemoryError) and "out of memory" not in str(error).lower():
            raise
    # Only outside the handler are the failed frames, and the tensors they hold, let go.
    stack = None
    torch._dynamo.reset()
    gc.collect()
    torch.cuda.empty_cache()
    return False


def _take_stack(
    specs: Sequence[RunSpec],
    damaged: Container[RunSpec],
    store: Store,
    options: Options,
    studies: Studies,
    locks: ExitStack,
) -> TrainingStack | None:
    """The runs of one stack, locked and ready to train; None if there is nothing to train for this process."""
    # Workers that share a plan take whole stacks: one that is split between two would round differently each time.
    try:
        locks.enter_context(store.claim_stack(specs))
    except BusyError:
        return None
    _await_parents([spec for spec in specs if spec not in damaged], store, options.should_stop)
    # What is finished, damaged, or another process's, leaves its slot empty: the others keep theirs, and so every bit.
    by_slot = [
        None if spec in damaged or store.is_finished(spec) else _take_run(store.add(spec, studies.get(spec, ())), locks)
        for spec in specs
    ]
    return TrainingStack(specs, by_slot, store, options) if any(by_slot) else None


def _take_run(folder: RunFolder, locks: ExitStack) -> RunFolder | None:
    """The run, locked; None if it is finished, or another process's."""
    with suppress(BusyError):
        locks.enter_context(folder.lock())
        if not folder.outcome.is_finished:
            return folder
        folder.tidy()
    return None


def _await_parents(specs: Sequence[RunSpec], store: Store, should_stop: Callable[[], bool]) -> None:
    """Wait while another process trains towards the states that these forks begin with."""
    while any(_is_on_its_way(spec.fork, store) for spec in specs if spec.fork is not None):
        if should_stop():
            raise Stopped
        sleep(PAUSE)


def _is_on_its_way(fork: Fork, store: Store) -> bool:
    """Whether a fork's parent has no state at its step yet, and another process trains it."""
    parent = store.find(fork.parent)
    return not (fork.step in parent.checkpoints("state") or parent.outcome.is_finished) and parent.is_held()
