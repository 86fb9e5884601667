"""A plan, cut into shards: runs of one shape that train together, parents before their forks.

A shard is a plan of its own, a pure function of the whole plan, and idempotent: any worker, however often it runs,
leaves the same bytes in the store, because runs are named by their content, continued from their checkpoints, locked
while they are written, and finished once. So an executor may lose, repeat or move shards as it likes.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from grokscope.errors import InputError
from grokscope.jobs.preparation import find_damaged
from grokscope.jobs.progress import StoredProgress
from grokscope.jobs.stacks import plan_stacks, slots_in, slots_that_fit, split_evenly
from grokscope.jobs.training_stack import Stopped
from grokscope.jobs.worker import as_line, stop_requests, work
from grokscope.runs import open_store
from grokscope.specs import Plan, RunSpec
from grokscope.training.devices import is_available

__all__ = ["Ended", "Line", "Report", "Shard", "UnfinishedError", "drive", "shards_of", "work_on"]

Report = Callable[[dict[str, Any]], None]
Line = dict[str, Any]
Ended = Iterator[tuple["Shard", list[Line] | Exception] | None]
RUNS_PER_CORE = 16  # a worker takes seconds to load PyTorch, and that many small runs take minutes
GPU_MEMORY = 40 * 2**30  # of an accelerator that is elsewhere and not described


class UnfinishedError(RuntimeError):
    """A shard stopped before its end; what it has done is stored, and trying again continues it."""

    def __init__(self, sentence: str, requested: Sequence[int] = (), was_cancelled: bool = False) -> None:
        super().__init__(sentence)
        self.requested = requested
        """The signals that asked it to stop."""
        self.was_cancelled = was_cancelled
        """Whether the sweep was cancelled."""


@dataclass(frozen=True)
class Shard:
    """A part of a plan that one worker trains."""

    number: int
    """Its place among all shards."""
    wave: int
    """How many waves have to end before it: a fork comes after its parent."""
    plan: Plan
    """Its runs, and how they are to be trained."""


def shards_of(plan: Plan, runs_per_shard: int | None = None, memory: int | None = None) -> list[Shard]:
    """Cut a plan into shards, as stacks are cut: on a CPU of so many runs, on an accelerator of as many as it can hold.

    >>> from grokscope.specs import RunSpec
    >>> plan = Plan("runs", tuple(RunSpec().with_seed(seed) for seed in range(40)))
    >>> [len(shard.plan.runs) for shard in shards_of(plan, runs_per_shard=16)]
    [14, 14, 12]
    """
    if runs_per_shard is not None and runs_per_shard < 1:
        raise InputError(f"a shard has at least one run, got runs_per_shard {runs_per_shard}")
    parts = [
        (wave, part)
        for wave, members in plan_stacks(plan.runs)
        for part in split_evenly(members, runs_per_shard or _size(members, plan.device, memory))
    ]
    return [Shard(i, wave, plan.select(runs)) for i, (wave, runs) in enumerate(parts)]


def _size(members: Sequence[RunSpec], device: str, memory: int | None) -> int:
    if device == "cpu":
        return RUNS_PER_CORE
    if memory is None and is_available(device):
        return slots_that_fit(members, device)
    return slots_in(members, GPU_MEMORY if memory is None else memory)


def work_on(plan: str) -> list[Line]:
    """Train a shard, given as JSON, in this process; the last report of each of its runs.

    What was interrupted, or is being written by a process that may be dying, raises `UnfinishedError`.
    """
    shard, last = Plan.from_json(plan), dict[str, Line]()
    with stop_requests() as requests:
        try:
            work(shard, lambda one: last.update({f"{one.run} {type(one).__name__}": as_line(one)}), requests)
        except Stopped:
            raise UnfinishedError("it was asked to stop", requests, was_cancelled=not requests) from None
    with open_store(shard.out) as store:
        damaged = find_damaged(shard.runs, store)
        left = [spec for spec in shard.runs if spec not in damaged and not store.is_finished(spec)]
    if left:
        raise UnfinishedError(f"{len(left)} of its {len(shard.runs)} runs are being written by another process")
    return list(last.values())


def drive(
    plan: Plan,
    shards: Sequence[Shard],
    start: Callable[[Sequence[Shard]], Ended],
    report: Report,
    retries: int,
    pause: float = 5.0,
) -> bool:
    """Work through a plan's shards, wave by wave, and again through those that failed; whether everything is finished.

    `start` hands some shards to whatever runs them, and gives each back as it ends, with its reports or what failed;
    while it waits it gives None every second or so, and what was logged meanwhile is reported. A shard that fails more
    than `retries` times ends the sweep with its last error; bad input at once.
    """
    if retries < 0:
        raise InputError(f"retries must be 0 or more, got {retries}")
    progress = StoredProgress(plan, report)
    for _, wave in groupby(shards, key=lambda shard: shard.wave):
        left = list(wave)
        for attempt in range(retries + 1):
            failed = dict(_failures(start(left), progress))
            left = [shard for shard in left if shard.number in failed]
            if left and _is_cancelled(plan):
                return False
            if not left:
                break
            if attempt == retries:
                shard, error = left[0], failed[left[0].number]
                raise InputError(f"shard {shard.number} was not finished after {retries + 1} attempts: {error}")
            time.sleep(pause)
    return True


def _failures(ended: Ended, progress: StoredProgress) -> Iterator[tuple[int, Exception]]:
    for end in ended:
        progress.update()
        if end is None:
            continue
        shard, result = end
        if isinstance(result, InputError):
            raise result
        if isinstance(result, Exception):
            progress.report({"shard": shard.number, "notice": f"shard {shard.number} is tried again: {result}"})
            yield shard.number, result
        else:
            for line in result:
                progress.report(line)


def _is_cancelled(plan: Plan) -> bool:
    with open_store(plan.out) as store:
        return store.is_cancelled
