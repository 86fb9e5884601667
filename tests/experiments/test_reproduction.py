import os
from collections.abc import Iterator
from dataclasses import replace
from math import isnan
from pathlib import Path

import pytest

from grokscope.experiments import Measuring, Stopped, Store, catalogue, run_all
from grokscope.experiments.catalogue import STUDIES
from grokscope.experiments.records import record_of
from grokscope.experiments.reproduction import MEASURED, records_in, reproduction_plan, run_steps
from grokscope.measures.catalogue import MEASURES
from grokscope.report import evidence_of
from grokscope.specs import Architecture, Cadence, RunSpec, Training


@pytest.fixture(autouse=True, scope="module")
def quick_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


def test_a_plan_has_every_run_once_and_every_forks_parent() -> None:
    plan = reproduction_plan(["fork", "spread", "accelerator"], "out", n_seeds=4)
    hashes = [spec.content_hash for spec in plan.runs]
    assert len(set(hashes)) == len(hashes)
    assert {spec.fork.parent for spec in plan.runs if spec.fork} <= set(hashes)
    assert plan.keep == "forks"


def test_what_it_costs_is_counted_from_the_forks_on() -> None:
    plan = reproduction_plan(["fork"], "out")
    assert run_steps(plan) == 15_000 + 6 * 7_000


def test_everything_that_is_measured_has_a_name() -> None:
    assert {name.partition("@")[0] for name in MEASURED} <= set(MEASURES)


def test_plans_of_everything_are_the_same_every_time() -> None:
    assert reproduction_plan(STUDIES, "out").to_json() == reproduction_plan(STUDIES, "out").to_json()


def small_run(task: str, seed: int, precision: str, **changes: object) -> RunSpec:
    """The catalogue's runs at a size that a test can train."""
    architecture = Architecture(width=16, heads=2, mlp_width=32)
    training = Training(steps=12, batch_size=16)
    cadences = {"checkpoints": Cadence(6, at=(6,)), "measurements": Cadence(3)}
    spec = RunSpec(task=f"{task.partition('_')[0]}_mod7", architecture=architecture, training=training, **cadences)
    return replace(spec.with_seed(seed), **changes)


def test_from_plan_to_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "base_run", small_run)
    monkeypatch.setattr(catalogue, "FORK_BUDGET", 12)
    monkeypatch.setitem(
        STUDIES,
        "fork",
        lambda n, precision: {
            f"x{decay:g}": catalogue.fork_of(small_run("add_mod97", 42, precision), 6, decay) for decay in (1.0, 3.0)
        },
    )
    for name in set(STUDIES) - {"base", "fork"}:
        monkeypatch.setitem(STUDIES, name, lambda n, precision: {})
    plan = reproduction_plan(["base", "fork"], str(tmp_path))
    store = Store(plan.out)
    calls = iter(range(1000))
    with pytest.raises(Stopped):
        run_all(
            plan.runs,
            store,
            keep=plan.keep,
            measuring=Measuring.asked_by(plan),
            compiled=False,
            should_stop=lambda: next(calls) == 20,
        )
    assert 0 < len(records_in(store)) < len(plan.runs)
    run_all(plan.runs, store, keep=plan.keep, measuring=Measuring.asked_by(plan), compiled=False)
    records = records_in(store)
    assert len(records) == len(plan.runs)
    evidence = evidence_of(records)
    assert len(evidence.study("base")) == evidence.planned["base"]
    assert set(evidence.study("fork")) == {"x1", "x3"}
    assert evidence.study("fork")["x3"].timeline.first == 6
    measured = evidence.study("base")["mult_mod97_s42"].measured
    assert {"fsd", "fsd@sum", "fsd@additive", "paper_restricted", "drop_attn0_zero"} <= set(measured)
    assert measured["step"] == [0, 6, 12]
    assert [isnan(x) for x in measured["drop_attn0_zero"]] == [True, True, False]  # what is dear, at the end only
    assert evidence.study("fork")["x3"].measured == {}
    assert record_of(store.find(plan.runs[0].content_hash)).spec == plan.runs[0]
