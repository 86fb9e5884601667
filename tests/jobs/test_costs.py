import json
from dataclasses import replace
from pathlib import Path

import pytest

from grokscope.jobs import costs, run_all
from grokscope.jobs.costs import cost_of
from grokscope.runs import Store
from grokscope.specs import Architecture, Cadence, Fork, Plan, RunSpec, Training

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
SMALL = RunSpec(
    task="add_mod7",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=64, heads=2, mlp_width=128),
    training=Training(steps=40, batch_size=16),
    checkpoints=Cadence(every=10),
    measurements=Cadence(every=5),
)


@pytest.mark.parametrize("keep", ["weights", "state", "none"])
def test_the_disk_is_as_full_as_it_was_said_to_be(keep: str, tmp_path: Path) -> None:
    run_all([SMALL], Store(tmp_path), keep=keep, compiled=False)
    used = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert cost_of(Plan(str(tmp_path), (SMALL,), keep=keep)).bytes_stored == pytest.approx(used, rel=0.15)


def test_costs_add_up_and_a_fork_costs_what_is_its_own() -> None:
    fork = replace(SMALL, fork=Fork(SMALL.content_hash, 30))
    one, two = cost_of(Plan("x", (SMALL,))), cost_of(Plan("x", (fork,)))
    both = cost_of(Plan("x", (SMALL, SMALL.with_seed(1), fork)))
    assert both.steps == 2 * one.steps + two.steps == 90
    assert both.bytes_stored == 2 * one.bytes_stored + two.bytes_stored
    assert both.device_seconds == pytest.approx(2 * one.device_seconds + two.device_seconds)


def test_speeds_are_the_measured_ones() -> None:
    def speeds(name: str) -> dict[str, float]:
        found = json.loads((RESULTS / f"training-{name}.json").read_text())["measured"]["rows"]
        return {row["title"]: row["measured"] for row in found}

    assert speeds("cpu")["grokscope float32, 2 × 1 thread"] / 2 == costs.SPEED_OF_A_CORE
    gpu = speeds("cuda")
    assert {name: gpu[f"grokscope {name}, 512 runs"] for name in costs.SPEED_OF_A_GPU} == costs.SPEED_OF_A_GPU
    paper = cost_of(Plan("x", (replace(RunSpec(), precision="tf32"),), device="cuda"))
    assert paper.device_seconds == pytest.approx(15_000 / gpu["grokscope tf32, 512 runs"])


def test_a_longer_sequence_costs_as_much_more_as_it_is_longer() -> None:
    long = replace(SMALL, task="add5_mod7_rows64", training=replace(SMALL.training, batch_size=8))
    pairs = replace(SMALL, training=replace(SMALL.training, batch_size=8))
    ratio = costs._work(long) / costs._work(pairs)
    parameters = costs._parameters(long) / costs._parameters(pairs)
    assert ratio == pytest.approx(parameters * 6 / 3)


@pytest.mark.parametrize("task", ["parity_n6_k2", "ridge_d4_n8", "parity_n5_k2_tokens", "latin7"])
def test_every_kind_of_task_has_a_cost(task: str, tmp_path: Path) -> None:
    loss = "mse" if task.startswith("ridge") else "cross_entropy"
    shape = Architecture(kind="mlp", layers=1, mlp_width=64)
    spec = replace(SMALL, task=task, architecture=shape, training=replace(SMALL.training, loss=loss))
    run_all([spec], Store(tmp_path), compiled=False)
    used = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    cost = cost_of(Plan(str(tmp_path), (spec,)))
    assert cost.bytes_stored == pytest.approx(used, rel=0.25)
    assert cost.device_seconds > 0
