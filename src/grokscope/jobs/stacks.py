"""Which runs train together: of one shape and about one length, parents before their forks, as many as fit.

The runner's stacks and the executors' shards are both cut here, so that where as many runs fit, a shard is one of the
stacks that the local executor would make: the same runs in the same slots, and with them every bit.
"""

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from functools import partial
from math import ceil

import torch

from grokscope.errors import InputError
from grokscope.jobs.memory import bytes_of_stack
from grokscope.runs.records import known_task
from grokscope.specs import RunSpec
from grokscope.training import CohortKey, cohort_key

__all__ = [
    "count_generations",
    "plan_stacks",
    "slots_in",
    "slots_that_fit",
    "split_evenly",
    "stack_key",
]

MOST_SLOTS = 512
HEADROOM = 0.7  # of free memory


def plan_stacks(specs: Sequence[RunSpec]) -> list[tuple[int, list[RunSpec]]]:
    """Runs that can share a stack and end at about the same step, each with its generation; parents first."""
    found: dict[tuple[int, CohortKey, int], list[RunSpec]] = {}
    for spec, generation in count_generations(specs).items():
        found.setdefault((generation, cohort_key(spec), _length(spec)), []).append(spec)
    in_order = sorted(found.items(), key=lambda item: item[0][0])
    return [(generation, members) for (generation, _, _), members in in_order]


def stack_key(spec: RunSpec) -> Hashable:
    """What runs share that could train in one stack; a user's file that has moved is a kind of its own.

    >>> stack_key(RunSpec("add_mod97").with_seed(0)) == stack_key(RunSpec("add_mod97").with_seed(1))
    True
    """
    unknown = spec.task, spec.architecture, spec.training, spec.precision
    try:
        return unknown if known_task(spec.task) is None else (cohort_key(spec), _length(spec))
    except InputError:
        return unknown


def _length(spec: RunSpec) -> int:
    """Equal for lengths that differ by less than a factor of two.

    A slot computes until the last run of its stack ends, so short runs would idle in a stack of long ones.
    """
    return spec.training.steps.bit_length()


def split_evenly(members: Sequence[RunSpec], most: int) -> list[Sequence[RunSpec]]:
    """Runs in as few parts as hold at most so many each, of equal size but for the last: they are compiled once.

    >>> [len(part) for part in split_evenly([RunSpec().with_seed(seed) for seed in range(40)], 16)]
    [14, 14, 12]
    """
    size = ceil(len(members) / ceil(len(members) / most))
    return [members[start : start + size] for start in range(0, len(members), size)]


def count_generations(specs: Sequence[RunSpec]) -> dict[RunSpec, int]:
    """How many parents of each run are among the runs themselves: they have to be trained before it."""
    has_forks = any(spec.fork for spec in specs)
    by_name = {spec.content_hash: spec for spec in specs} if has_forks else {}

    def generation(spec: RunSpec) -> int:
        parent = by_name.get(spec.fork.parent) if spec.fork else None
        return 0 if parent is None else 1 + generation(parent)

    return {spec: generation(spec) for spec in specs}


def slots_that_fit(specs: Sequence[RunSpec], device: str) -> int:
    """How many of these runs to train at once, from the free memory of a device that is here.

    Example::

        slots_that_fit([RunSpec("add_mod97").with_seed(seed) for seed in range(1000)], "cuda")
    """
    return slots_in(specs, _free_memory(device))


def slots_in(specs: Sequence[RunSpec], memory: int) -> int:
    """How many runs like these to train at once in so many bytes, of which some are left free.

    >>> slots_in([RunSpec("add_mod97")], memory=0), slots_in([RunSpec("add_mod97")], memory=2**32)
    (1, 26)
    """
    return max(1, bisect_right(range(MOST_SLOTS + 1), HEADROOM * memory, key=partial(bytes_of_stack, specs)) - 1)


def _free_memory(device: str) -> int:
    if device == "mps":
        return torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory()
    return torch.cuda.mem_get_info(device)[0]
