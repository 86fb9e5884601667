"""Job arrays, without a cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from grokscope.jobs import slurm
from grokscope.jobs.shards import shards_of
from grokscope.jobs.slurm import Job
from grokscope.runs.plans import encode_plan
from grokscope.specs import Plan
from tiny_runs import TINY


class Jobs:
    """What submitit's executor does when it is handed jobs: the sizes of its arrays, and jobs that have ended."""

    def __init__(self) -> None:
        self.arrays: list[int] = []

    @contextmanager
    def batch(self) -> Iterator[None]:
        self.arrays.append(0)
        yield

    def submit(self, job: Job) -> Any:
        self.arrays[-1] += 1
        return SimpleNamespace(done=lambda: True, result=lambda: [{"run": job.plan}])


def test_no_array_is_larger_than_a_cluster_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "ARRAY", 4)
    shards = shards_of(Plan("runs", tuple(TINY.with_seed(seed) for seed in range(10))), runs_per_shard=1)
    jobs, ended = Jobs(), dict[int, str]()
    for shard, reports in slurm._ended_jobs(jobs, None, shards):
        assert isinstance(reports, list)
        ended[shard.number] = reports[0]["run"]
    assert jobs.arrays == [4, 4, 2]
    assert ended == {shard.number: encode_plan(shard.plan).decode() for shard in shards}
