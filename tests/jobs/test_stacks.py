from dataclasses import replace

import pytest

from grokscope.jobs.stacks import count_generations, plan_stacks, split_evenly, stack_key
from grokscope.specs import Architecture, Fork, RunSpec

PLAIN = RunSpec()
CHILD = replace(PLAIN, fork=Fork(PLAIN.content_hash, 500))


def trained(**changes: object) -> RunSpec:
    return replace(PLAIN, training=replace(PLAIN.training, **changes))


@pytest.mark.parametrize(
    "other",
    [
        trained(gradient="grokfast"),
        trained(gradient="orthogonal"),
        trained(dropout=0.1),
        trained(clip_norm=1.0),
        trained(batch_size=64),
        trained(steps=100),
        replace(PLAIN, precision="tf32"),
        replace(PLAIN, architecture=Architecture(width=256)),
        replace(PLAIN, fork=Fork(PLAIN.content_hash, 500, norm="frozen")),
        replace(PLAIN, task="table:gone.json#0123456789abcdef"),
    ],
)
def test_runs_of_another_kind_have_another_key(other: RunSpec) -> None:
    assert stack_key(other) != stack_key(PLAIN)


@pytest.mark.parametrize(
    "other", [PLAIN.with_seed(7), trained(weight_decay=3.0), replace(PLAIN, task="sub_mod97"), CHILD]
)
def test_runs_that_could_share_a_stack_have_one_key(other: RunSpec) -> None:
    assert stack_key(other) == stack_key(PLAIN)


def test_stacks_are_the_groups_of_equal_keys_and_parents_come_first() -> None:
    specs = [CHILD, trained(gradient="grokfast"), PLAIN, PLAIN.with_seed(1)]
    stacks = plan_stacks(specs)
    assert [generation for generation, _ in stacks] == [0, 0, 1]
    assert stacks[-1][1] == [CHILD]
    for _, members in stacks:
        assert len({stack_key(spec) for spec in members}) == 1
    assert count_generations(specs) == {CHILD: 1, PLAIN: 0, PLAIN.with_seed(1): 0, specs[1]: 0}
    assert [len(part) for part in split_evenly(specs, 3)] == [2, 2]
