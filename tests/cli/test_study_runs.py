"""A study trained, remade from records and written: the bake-off, on runs of a few steps."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from small_commands import EXECUTORS, trained_here

from grokscope.cli import run
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord, save_records, unpacked
from grokscope.specs import Architecture, Cadence, Plan
from grokscope.studies.bakeoff import ARMS, arm_of, quick_plan, tuning_runs


def shortened(out: str, device: str = "cpu") -> Plan:
    """The quick plan, of 6 steps and one seed."""
    plan = quick_plan(out, device=device)
    architecture = Architecture(layers=1, width=16, heads=2, mlp_width=32)
    runs = [
        replace(
            spec,
            architecture=architecture,
            training=replace(spec.training, steps=6, batch_size=16),
            measurements=Cadence(3),
        )
        for spec in plan.runs[: len(ARMS)]
    ]
    return replace(plan, runs=tuple(runs))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(f"{EXECUTORS}.run_locally", trained_here)
    monkeypatch.setattr("grokscope.cli.known_studies.quick_plan", shortened)
    monkeypatch.setenv("COLUMNS", "250")
    return tmp_path


def test_it_trains_prints_and_writes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "bakeoff", "--quick", "--device", "cpu", "--out", "bake"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ARMS)
    assert "add_mod17: nobody wins" in said
    assert "No speed was measured" in said
    assert sorted(path.name for path in Path("bake").glob("*.*")) == [
        "bakeoff.records.gz",
        *(f"fig-bakeoff.{kind}" for kind in ("csv", "pdf", "png", "svg")),
        "reproduction.json",
        "tab-bakeoff.csv",
        "tab-bakeoff.md",
        "tab-bakeoff.tex",
    ]
    assert {arm_of(record.spec) for record in unpacked(Path("bake/bakeoff.records.gz"))} == set(ARMS)
    assert run(["reproduce", "bakeoff", "--remake", "--json", "--out", "bake"]) == 0
    assert len(json.loads(capsys.readouterr().out)) > 0
    before = {path: path.read_bytes() for path in Path("bake").glob("*.*")}
    assert run(["reproduce", "bakeoff", "--quick", "--device", "cpu", "--out", "bake"]) == 0
    assert {path: path.read_bytes() for path in Path("bake").glob("*.*")} == before, "nothing is trained twice"


def test_records_from_elsewhere_give_the_same_table_and_nothing_is_trained(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["reproduce", "bakeoff", "--quick", "--device", "cpu", "--out", "bake"]) == 0
    records = unpacked(Path("bake/bakeoff.records.gz"))
    save_records(Path("first.gz"), records[:6])
    save_records(Path("second.gz"), records[4:])
    monkeypatch.setattr(f"{EXECUTORS}.run_locally", lambda *given: pytest.fail("nothing is to be trained"))
    assert run(["reproduce", "bakeoff", "--remake", "--from", "first.gz", "second.gz", "--out", "elsewhere"]) == 0
    for name in ("tab-bakeoff.csv", "tab-bakeoff.md", "tab-bakeoff.tex"):
        assert Path("elsewhere", name).read_bytes() == Path("bake", name).read_bytes()
    capsys.readouterr()
    assert run(["reproduce", "bakeoff", "--remake", "--from", "first.gz", "--out", "some"]) == 0
    assert "some are missing" in capsys.readouterr().out


def test_a_dry_run_says_what_it_costs_and_touches_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "bakeoff", "--dry-run", "--device", "cpu", "--n-seeds", "2"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("72 runs, 576,000 optimiser steps in all")
    assert not list(Path().iterdir())


@pytest.mark.parametrize(("words", "count"), [(["bakeoff", "--only", "add_mod97"], 9), (["bakeoff-tuning"], 20)])
def test_a_plan_for_a_gpu_elsewhere_can_be_written_here(words: list[str], count: int) -> None:
    arguments = ["--n-seeds", "1", "--device", "cuda", "--plan-only", "plan.json"]
    assert run(["reproduce", *words, *arguments]) == 0
    plan = Plan.from_json(Path("plan.json").read_text())
    assert (plan.device, len(plan.runs), plan.keep) == ("cuda", count, "forks")
    assert [path.name for path in Path().iterdir()] == ["plan.json"]


def test_records_of_no_bake_off_are_rejected_and_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    save_records(Path("none.gz"), [])
    assert run(["reproduce", "bakeoff", "--remake", "--from", "none.gz", "--out", "bake"]) == 2
    assert "holds no finished runs and no records" in capsys.readouterr().err
    assert not Path("bake").exists()


def test_the_records_of_tuning_do_not_overwrite_those_of_the_bake_off() -> None:
    spec = next(iter(tuning_runs(1).values()))[0]
    log = {"step": [0, 100], "train_accuracy": [0.0, 1.0], "validation_accuracy": [0.0, 1.0]}
    outcome = {"outcome": "grokked", "failed_at": None, "memorized": 100, "grokked": 100}
    save_records(Path("elsewhere.gz"), [RunRecord(spec, RunOutcome.from_dict(outcome), log, {})])
    Path("bake").mkdir()
    Path("bake/bakeoff.records.gz").write_bytes(b"kept")
    assert run(["reproduce", "bakeoff-tuning", "--remake", "--from", "elsewhere.gz", "--out", "bake"]) == 0
    assert Path("bake/bakeoff.records.gz").read_bytes() == b"kept"
    assert Path("bake/tab-tuning.csv").exists()
