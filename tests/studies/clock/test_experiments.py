"""What the clock study trains: forks of one state that differ in one thing, whose levels are those of their parents."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from grokscope.cli import run
from grokscope.jobs.preparation import reject_impossible
from grokscope.model import layout_of, padded_sizes
from grokscope.runs import Store
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.packing import save_records
from grokscope.runs.records import RunRecord
from grokscope.specs import Membership, RunSpec
from grokscope.studies.clock import STUDY, levels
from grokscope.studies.clock.cells import FORK, MODELS, free_run
from grokscope.studies.clock.experiments import EXPERIMENTS, SEEDS, quick_runs
from grokscope.studies.clock.set_levels import main, measured_norms
from grokscope.studies.parts import parts_of
from grokscope.tasks import named_task

RUNS = STUDY.runs(2, "tf32")
PAGE = Path(__file__).parents[3] / "docs" / "studies" / "clock.md"


def own_steps(spec: RunSpec) -> int:
    return spec.training.steps - (spec.fork.step if spec.fork else 0)


def test_every_run_can_be_trained(tmp_path: Path) -> None:
    reject_impossible([spec for runs in RUNS.values() for spec in runs.values()], Store(tmp_path), "cpu")


def test_the_four_attention_models_differ_in_their_layer_norms_alone() -> None:
    norms = {
        name: {
            one.partition(".")[0]
            for one in layout_of(model.architecture, padded_sizes(named_task("add_mod59"))).shapes
            if ".ln" in one or one.startswith("ln_final")
        }
        for name, model in MODELS.items()
    }
    expected = {"mlp": set(), "none": set(), "block": {"blocks"}, "final": {"ln_final"}, "both": {"blocks", "ln_final"}}
    assert norms == expected
    shapes = {replace(MODELS[name].architecture, layer_norm=True, final_norm=None) for name in norms if name != "mlp"}
    assert len(shapes) == 1


def test_a_fork_differs_from_its_parent_in_what_its_name_says() -> None:
    for experiment in ("doses", "controls", "stops", "temperatures"):
        for name, spec in RUNS[experiment].items():
            parent = RUNS["parents"][f"{name.partition('-')[0]}-free_s{name.rpartition('_s')[2]}"]
            assert spec.fork is not None
            assert (spec.fork.parent, spec.fork.step) == (parent.content_hash, FORK)
            alike = replace(
                spec,
                fork=None,
                norm_hold=None,
                checkpoints=parent.checkpoints,
                architecture=replace(spec.architecture, temperature=1.0),
                training=replace(spec.training, steps=parent.training.steps, weight_decay=1.0),
            )
            assert alike == parent
            assert ("tau" in name) == (spec.architecture.temperature != 1)
            assert ("nodecay" in name) == (spec.training.weight_decay == 0)
            assert ("matched" in name) == (spec.fork.norm == "matched")
            assert spec.norm_hold is None or spec.norm_hold.parts == ("matrices",)
            assert ("random" in name) == (spec.norm_hold is not None and spec.norm_hold.along == "random")
            if spec.norm_hold is not None and spec.norm_hold.level is not None:
                rho = float(
                    name.partition("-")[2].removeprefix("rho").removeprefix("random").split("-")[0].split("_")[0]
                )
                level = levels.norm_at_grokking(name.partition("-")[0], parent.seeds.initialization)
                assert spec.norm_hold.level == pytest.approx(rho * level, rel=1e-5)
                assert spec.norm_hold.start == FORK


def test_levels_are_those_of_the_parents_once_these_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def parent(model: str, seed: int, norm: float, grok: float) -> RunRecord:
        log = {
            "step": [0, 50, 100],
            "train_accuracy": [0, 1, 1],
            "validation_accuracy": [0, 0, grok],
            "norm": [9, 8, norm],
        }
        place = Membership("clock", "parents", f"{model}-free_s{seed}")
        return RunRecord(free_run(model, seed, "tf32"), RunOutcome("grokked"), log, {}, (place,))

    records = [parent(model, seed, 50.123456 + seed, 1.0) for model in MODELS for seed in (0, 1)]
    records.append(parent("mlp", 2, 44.0, 0.5))  # has not grokked
    found = measured_norms(records)
    assert found["mlp"] == {"0": 50.12, "1": 51.12}
    monkeypatch.setattr(
        levels, "known_levels", lambda: {"mlp": {"assumed": 1.0, "measured": found["mlp"]}, "none": {"assumed": 37.0}}
    )
    assert levels.norm_at_grokking("mlp", 1) == 51.12
    assert levels.norm_at_grokking("mlp", 2) == pytest.approx(50.62), "the median of the others"
    assert levels.norm_at_grokking("none", 0) == 37.0


def test_levels_are_written_of_the_models_that_grokked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--from", str(tmp_path), "--out", str(tmp_path / "levels.json")]) != 0
    assert capsys.readouterr().err.count("\n") == 1
    log = {"step": [0, 50], "train_accuracy": [0, 1], "validation_accuracy": [0, 1], "norm": [9, 8]}
    place = Membership("clock", "parents", "both-free_s3")
    record = RunRecord(free_run("both", 3, "tf32"), RunOutcome("grokked"), log, {}, (place,))
    save_records(tmp_path / "part-01.records.gz", [record])
    assert main(["--from", str(tmp_path / "part-01.records.gz"), "--out", str(tmp_path / "levels.json")]) == 0
    found = json.loads((tmp_path / "levels.json").read_text())
    assert found["both"] == {"assumed": 18.3, "measured": {"3": 8.0}}
    assert found["mlp"] == {"assumed": 54.6}
    assert "mlp: no parent has grokked" in capsys.readouterr().out


def test_it_is_about_ten_million_run_steps_at_most_in_parts_of_minutes() -> None:
    runs = STUDY.runs(precision="tf32")
    steps = sum(own_steps(spec) for one in runs.values() for spec in one.values())
    assert 4e6 < steps < 11e6
    assert len({name.rpartition("_s")[2] for one in runs.values() for name in one}) == SEEDS
    parts = parts_of(STUDY, "tf32")
    assert parts[0].title == "parents"
    assert all(spec.fork is None for spec in parts[0].plan.runs)
    assert len(parts) < 9
    page = PAGE.read_text(encoding="utf-8")
    assert f"{steps:,} run-steps" in page
    assert f"{sum(map(len, runs.values())):,} runs" in page


def test_the_page_names_every_claim() -> None:
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert [claim.name for claim in STUDY.claims if f"`{claim.name}`" not in page] == []


@pytest.mark.usefixtures("quick_disk")
def test_the_quick_version_runs_from_its_plan_to_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "clock"
    assert run(["reproduce", "clock", "--quick", "--device", "cpu", "--out", str(out)]) == 0
    table = (out / "tables" / "tab-controls.csv").read_text(encoding="utf-8")
    assert "random1.15" in table
    claims = {row["name"]: row for row in json.loads((out / "claims.json").read_text(encoding="utf-8"))}
    assert claims.keys() == {claim.name for claim in STUDY.claims}
    assert all(row["verdict"] in ("not testable", "unlikely", "reproduced") for row in claims.values())
    page = (out / "RESULTS.md").read_text(encoding="utf-8")
    assert "The clock" in page
    assert "Not decided yet" in page


def test_quick_forks_are_of_every_kind() -> None:
    kinds = {
        (spec.fork.norm if spec.fork else None, spec.norm_hold is None)
        for r in quick_runs().values()
        for spec in r.values()
    }
    assert kinds == {(None, True), ("free", False), ("matched", True)}
    assert EXPERIMENTS.keys() >= quick_runs().keys()
