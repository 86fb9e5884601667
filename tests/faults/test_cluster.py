"""A sweep on a Ray cluster of two nodes, and through submitit: nodes and workers are lost, results are equal."""

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_runs import Count, contents, seeds

from grokscope.jobs.executors import run_locally, run_on_ray, run_on_slurm
from grokscope.specs import Plan

pytestmark = [pytest.mark.cluster, pytest.mark.faults, pytest.mark.timeout(900)]
RUNS = seeds(64)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The libraries of clusters warn about themselves; only our own results are judged here."""
    monkeypatch.setenv("RAY_DEDUP_LOGS", "0")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The same sweep by the local executor, when nothing happens to it."""
    path = tmp_path_factory.mktemp("straight")
    assert run_locally(Plan(str(path), RUNS), lambda line: None)
    return contents(path)


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Two nodes on this machine."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    made.wait_for_nodes()
    yield made
    ray.shutdown()
    made.shutdown()


def writers(store: Path) -> set[int]:
    """The processes that write runs just now, as their locks tell."""
    found = set()
    for lock in store.glob("*/lock"):
        try:
            found.add(int(json.loads(lock.read_bytes())["process"]))
        except (OSError, ValueError):
            continue
    return found


def wait_for(store: Path, finished: int) -> None:
    for _ in range(6000):
        if sum(1 for _ in store.glob("*/outcome.json")) >= finished and writers(store) - {os.getpid()}:
            return
        time.sleep(0.05)


def finished_once(heard: list[dict[str, Any]]) -> bool:
    """Whether every run was reported at its end, and none twice as two results."""
    ends = Counter(line["run"] for line in heard if line.get("step") == 30)
    return set(ends.values()) <= {1}


@pytest.mark.filterwarnings("ignore")
def test_a_node_is_removed_and_a_worker_killed(
    cluster: Any, tmp_path: Path, expected: dict[str, object], injected: Count
) -> None:
    store, done = tmp_path / "runs", []

    def strike() -> None:
        wait_for(store, 6)
        victim = next(iter(writers(store) - {os.getpid()}))
        os.kill(victim, signal.SIGKILL)
        done.append(victim)
        wait_for(store, 20)
        cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
        done.append("node")

    hand = threading.Thread(target=strike)
    hand.start()
    heard: list[dict[str, Any]] = []
    plan = Plan(str(store), RUNS)
    assert run_on_ray(plan, heard.append, address=cluster.address, runs_per_shard=4)
    hand.join()
    injected(2)
    assert len(done) == 2, "both faults were injected before the end"
    assert contents(store) == expected
    assert finished_once(heard)


@pytest.mark.filterwarnings("ignore")
def test_jobs_are_killed_and_preempted(tmp_path: Path, expected: dict[str, object], injected: Count) -> None:
    pytest.importorskip("submitit")
    store, done = tmp_path / "runs", []

    def strike() -> None:
        for number, after in ((signal.SIGKILL, 2), (signal.SIGUSR2, 8), (signal.SIGTERM, 14)):
            wait_for(store, after)
            victims = writers(store) - {os.getpid(), *done}
            done.append(victims.pop())
            os.kill(done[-1], number)

    hand = threading.Thread(target=strike)
    hand.start()
    heard: list[dict[str, Any]] = []
    plan = Plan(str(store), RUNS)
    assert run_on_slurm(plan, heard.append, tmp_path / "jobs", cluster="local", runs_per_shard=16, minutes=10)
    hand.join()
    injected(3)
    assert len(done) == 3
    assert contents(store) == expected
    assert finished_once(heard)
    assert sum("notice" in line for line in heard) >= 1, "the killed job was tried again by us"
