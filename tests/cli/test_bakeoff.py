"""`grokscope bakeoff`, from the plan to the files, on runs of a few steps."""

import importlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grokscope.cli import run
from grokscope.jobs import run_all
from grokscope.runs import Store
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord, save_records, unpacked
from grokscope.specs import Architecture, Cadence, Plan
from grokscope.studies.bakeoff.configurations import ARMS, arm_of, quick_plan, tuning_runs

BAKEOFF = importlib.import_module("grokscope.cli.bakeoff")
PROGRESS = importlib.import_module("grokscope.cli.progress")


def trained_here(plan: Plan, report: Callable[[dict[str, Any]], None]) -> bool:
    """What workers do, in this process."""
    options = {"keep": plan.keep, "stop_after_grokking": plan.stop_after_grokking}
    run_all(plan.runs, Store(plan.out), compiled=False, **options)
    return True


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
    monkeypatch.setattr(PROGRESS, "run_locally", trained_here)
    monkeypatch.setattr(BAKEOFF, "quick_plan", shortened)
    monkeypatch.setenv("COLUMNS", "250")
    return tmp_path


def test_it_trains_prints_and_writes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bakeoff", "--quick", "--device", "cpu", "--out", "bake"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ARMS)
    assert "add_mod17: nobody wins" in said
    assert "No speed was measured" in said
    assert sorted(path.name for path in Path("bake").glob("*.*")) == [
        "bakeoff.records.gz",
        *(f"fig-bakeoff.{kind}" for kind in ("csv", "pdf", "png", "svg")),
        "tab-bakeoff.csv",
        "tab-bakeoff.md",
        "tab-bakeoff.tex",
    ]
    assert [arm_of(record.spec) for record in unpacked(Path("bake/bakeoff.records.gz"))] == list(ARMS)
    before = {path: path.read_bytes() for path in Path("bake").glob("*.*")}
    assert run(["bakeoff", "--quick", "--device", "cpu", "--out", "bake"]) == 0
    assert {path: path.read_bytes() for path in Path("bake").glob("*.*")} == before, "nothing is trained twice"


def test_a_measured_speed_gives_seconds(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    real = BAKEOFF.measured_speed
    monkeypatch.setattr(BAKEOFF, "measured_speed", lambda plan: real(plan, slots=1, steps=2, compiled=False))
    assert run(["bakeoff", "--quick", "--device", "cpu", "--out", "bake", "--time"]) == 0
    assert "1 runs at once, float32; looks are not counted" in capsys.readouterr().out
    assert set(json.loads(Path("bake/speed.json").read_text())["seconds_per_step"]) == set(ARMS)


def test_records_from_elsewhere_give_the_same_table_and_nothing_is_trained(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["bakeoff", "--quick", "--device", "cpu", "--out", "bake"]) == 0
    records = unpacked(Path("bake/bakeoff.records.gz"))
    save_records(Path("first.gz"), records[:6])
    save_records(Path("second.gz"), records[4:])
    monkeypatch.setattr(PROGRESS, "run_locally", lambda *given: pytest.fail("nothing is to be trained"))
    assert run(["bakeoff", "--from", "first.gz", "second.gz", "--out", "elsewhere"]) == 0
    for name in ("tab-bakeoff.csv", "tab-bakeoff.md", "tab-bakeoff.tex", "bakeoff.records.gz"):
        assert Path("elsewhere", name).read_bytes() == Path("bake", name).read_bytes()
    capsys.readouterr()
    assert run(["bakeoff", "--from", "first.gz", "--out", "some"]) == 0
    assert "some are missing" in capsys.readouterr().out


def test_a_dry_run_says_what_it_costs_and_touches_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bakeoff", "--dry-run", "--device", "cpu", "--n-seeds", "2"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("72 runs (")
    assert "9 for each seed of add_mod97, mult_mod97, S5, add_mod59" in said
    assert "576,000 run-steps" in said
    assert not list(Path().iterdir())


@pytest.mark.parametrize(("options", "count"), [([], 9), (["--tune"], 20)], ids=["bake-off", "tuning"])
def test_a_plan_for_a_gpu_elsewhere_can_be_written_here(options: list[str], count: int) -> None:
    arguments = ["--tasks", "add_mod97", "--n-seeds", "1", "--device", "cuda", "--plan-only", "plan.json", *options]
    assert run(["bakeoff", *arguments]) == 0
    plan = Plan.from_json(Path("plan.json").read_text())
    assert (plan.device, len(plan.runs), plan.keep) == ("cuda", count, "forks")
    assert [path.name for path in Path().iterdir()] == ["plan.json"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--tasks", "ad_mod97"], "did you mean 'add_mod97'"),
        (["--n-seeds", "0"], "n_seeds must lie in [1, 10000), got 0"),
        (["--quick", "--plan-only", "there.json"], "exists already; nothing was overwritten"),
        (["--from", "there.json", "--time"], "--from trains nothing"),
        (["--from", "there.json"], "the records"),
        (["--quick", "--tune"], "give one of them"),
        (["--quick", "--tasks", "S5"], "leave out --tasks and --n-seeds"),
        (["--quick", "--n-seeds", "2"], "leave out --tasks and --n-seeds"),
        (["--tune", "--tasks", "S5"], "settings are chosen on add_mod97 alone"),
        (["--dry-run", "--plan-only", "new.json"], "--dry-run writes nothing"),
        (["--device", "cuda"], "device cuda was asked for, and there is none"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("there.json").write_text("kept")
    device = [] if "--device" in arguments else ["--device", "cpu"]
    assert run(["bakeoff", *arguments, *device]) == 2
    assert sentence in capsys.readouterr().err
    assert Path("there.json").read_text() == "kept"


def test_records_of_no_bake_off_are_refused_and_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    save_records(Path("none.gz"), [])
    assert run(["bakeoff", "--from", "none.gz", "--out", "bake"]) == 2
    assert "none of the 0 records is a run of the bake-off" in capsys.readouterr().err
    assert not Path("bake").exists()


def test_the_records_of_tuning_do_not_overwrite_those_of_the_bake_off() -> None:
    spec = next(iter(tuning_runs(1).values()))[0]
    log = {"step": [0, 100], "train_accuracy": [0.0, 1.0], "validation_accuracy": [0.0, 1.0]}
    outcome = {"outcome": "grokked", "failed_at": None, "memorized": 100, "grokked": 100}
    save_records(Path("elsewhere.gz"), [RunRecord(spec, RunOutcome.from_dict(outcome), log, {})])
    Path("bake").mkdir()
    Path("bake/bakeoff.records.gz").write_bytes(b"kept")
    assert run(["bakeoff", "--from", "elsewhere.gz", "--tune", "--out", "bake"]) == 0
    assert Path("bake/bakeoff.records.gz").read_bytes() == b"kept"
    assert Path("bake/tuning.records.gz").read_bytes() == Path("elsewhere.gz").read_bytes()
