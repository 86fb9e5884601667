"""How many runs fit on a device."""

from grokscope.jobs.executors import shards_of
from grokscope.specs import Plan, RunSpec


def test_a_shard_for_an_accelerator_is_as_large_as_its_memory_allows() -> None:
    plan = Plan("runs", tuple(RunSpec().with_seed(seed) for seed in range(300)), device="cuda:9")
    small, large = shards_of(plan, memory=2 * 2**30), shards_of(plan, memory=80 * 2**30)
    assert len(small) > len(large) == 1
    assert max(len(shard.plan.runs) for shard in small) * 28.8 < 2 * 1024, "MiB a run, as measured on an H200"
