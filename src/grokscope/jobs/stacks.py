"""Which runs train together: of one shape and about one length, parents before their forks.

The runner's stacks and the executors' shards are both cut here, so that where as many runs fit, a shard is one of the
stacks that the local executor would make: the same runs in the same slots, and with them every bit.
"""

from collections.abc import Sequence
from math import ceil

from grokscope.specs import RunSpec
from grokscope.training import CohortKey, cohort_key

__all__ = ["cohorts_of", "even_parts", "generations"]


def cohorts_of(specs: Sequence[RunSpec]) -> list[tuple[int, CohortKey, list[RunSpec]]]:
    """Runs that can share a stack and end at about the same step, each with its generation and key; parents first.

    A slot computes until the last of its stack ends, so short runs would idle in a stack of long ones: lengths of one
    cohort differ by less than a factor of two.
    """
    found: dict[tuple[int, CohortKey, int], list[RunSpec]] = {}
    for spec, generation in generations(specs).items():
        found.setdefault((generation, cohort_key(spec), spec.training.steps.bit_length()), []).append(spec)
    in_order = sorted(found.items(), key=lambda item: item[0][0])
    return [(generation, key, members) for (generation, key, _), members in in_order]


def even_parts(members: Sequence[RunSpec], most: int) -> list[Sequence[RunSpec]]:
    """Runs in as few parts as hold at most so many each, of equal size but for the last: they are compiled once.

    >>> [len(part) for part in even_parts([RunSpec().with_seed(seed) for seed in range(40)], 16)]
    [14, 14, 12]
    """
    size = ceil(len(members) / ceil(len(members) / most))
    return [members[start : start + size] for start in range(0, len(members), size)]


def generations(specs: Sequence[RunSpec]) -> dict[RunSpec, int]:
    """How many parents of each run are among the runs themselves: they have to be trained before it."""
    has_forks = any(spec.fork for spec in specs)
    by_name = {spec.content_hash: spec for spec in specs} if has_forks else {}

    def generation(spec: RunSpec) -> int:
        parent = by_name.get(spec.fork.parent) if spec.fork else None
        return 0 if parent is None else 1 + generation(parent)

    return {spec: generation(spec) for spec in specs}
