"""A study trained: alike to the byte, once, in its own folder, past damaged runs; the bake-off without claims."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import small_study
from small_commands import EXECUTORS, rejected, trained_here

from grokscope.cli import run
from grokscope.jobs import worker
from grokscope.runs import Store
from grokscope.runs.damage import damaged_runs
from grokscope.runs.packing import save_records, unpack_records
from grokscope.specs import Architecture, Cadence, Plan
from grokscope.studies import bakeoff, verdicts
from grokscope.studies.bakeoff.configurations import CONFIGURATIONS, quick_runs
from grokscope.studies.study import Precision, Runs
from grokscope.version import __version__

RECORDS = "small.records.gz"


@pytest.fixture(autouse=True, scope="module")
def quick_machine() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr(f"{EXECUTORS}.run_locally", trained_here)
        patch.setenv("GROKSCOPE_COMMIT", "the same")  # it is part of the records
        patch.setenv("COLUMNS", "250")
        yield


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("study")
    shutil.copy(small_study.__file__, folder / "study.py")
    return str(folder)


@pytest.fixture(scope="module")
def trained(study: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "first"
    assert run(["reproduce", study, "--out", str(out), "--device", "cpu"]) == 0
    return out


@pytest.fixture
def spoiled(trained: Path, tmp_path: Path) -> tuple[Path, str]:
    """A copy of the results in which a fork's log is altered, and that fork's name."""
    out = tmp_path / "spoiled"
    shutil.copytree(trained, out)
    folder = next(one for one in Store(out / "runs") if one.spec.fork)
    content = (folder.path / "log.jsonl").read_bytes()
    (folder.path / "log.jsonl").write_bytes(content[:40] + b"X" + content[41:])
    return out, folder.name


def content(folder: Path) -> dict[str, bytes]:
    """What follows from the runs: everything but the runs themselves."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and "runs" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_two_empty_folders_end_alike_to_the_byte(study: str, trained: Path, tmp_path: Path) -> None:
    assert run(["reproduce", study, "--out", str(tmp_path / "second"), "--device", "cpu"]) == 0
    assert content(tmp_path / "second") == content(trained)


QUICK = """
from dataclasses import replace
STUDY = replace(STUDY, quick=lambda precision: {"tiny": tiny(2, precision), "forks": {}})
"""


def test_the_quick_version_is_compared_with_stored_verdicts(
    study: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "study.py").write_text(Path(study, "study.py").read_text() + QUICK)
    for stored, said in (
        ({"norm-positive": "refuted, firm"}, "0 are those of the stored results, and .* reversed: norm-positive\n"),
        ({"norm-positive": "reproduced"}, "1 are those of the stored results, and .* reversed: none\n"),
    ):
        monkeypatch.setattr(verdicts, "_stored", lambda stored=stored: {"small": stored})
        assert run(["reproduce", str(tmp_path), "--quick", "--out", str(tmp_path / "out"), "--device", "cpu"]) == 0
        printed = capsys.readouterr().out
        assert re.search(f"verdicts of 1 claim of 1, 1 of them provisional; {said}", printed), printed
    assert run(["reproduce", study, "--out", str(tmp_path / "whole"), "--device", "cpu"]) == 0
    assert "stored results" not in capsys.readouterr().out


def test_what_is_finished_is_used_again(study: str, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in (trained / "runs").rglob("*.jsonl")}
    (trained / "tables" / "tab-norm.csv").unlink()
    assert run(["reproduce", study, "--out", str(trained), "--device", "cpu"]) == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert (trained / "tables" / "tab-norm.csv").exists()
    printed = capsys.readouterr().out
    assert "1 claim: 1 reproduced" in printed
    assert "4 runs in" in printed


def test_the_results_say_where_they_come_from(trained: Path) -> None:
    found = json.loads((trained / "provenance.json").read_text())
    records = unpack_records(trained / RECORDS)
    assert found["runs"] == len(records) == sum(one["runs"] for one in found["runs_made_with"])
    assert found["run_steps"] == sum(12 - (r.spec.fork.step if r.spec.fork else 0) for r in records)
    assert {"device", "commit", "torch", "grokscope"} <= set(found["runs_made_with"][0])


def test_a_folder_of_another_version_or_kind_is_left_alone(
    study: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", study, "--device", "cpu", "--out"]
    (tmp_path / "old").mkdir()
    theirs = {"grokscope": "0.0.7", "study": "small", "precision": "float32", "quick": False}
    (tmp_path / "old" / "reproduction.json").write_text(json.dumps(theirs))
    sentence = f"was written with grokscope '0.0.7', and this is grokscope '{__version__}'"
    rejected([*words, str(tmp_path / "old")], sentence, tmp_path, capsys)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    rejected([*words, str(tmp_path / "mine")], "was not written by `grokscope reproduce`", tmp_path, capsys)
    rejected([*words, str(trained), "--precision", "bf16"], "precision 'float32'", trained, capsys)
    sentence = "was written with study 'small', and this is study 'bakeoff'"
    rejected(["reproduce", "bakeoff", "--device", "cpu", "--out", str(trained)], sentence, trained, capsys)


def test_a_damaged_run_is_named_and_nothing_is_written(
    study: str, spoiled: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    out, name = spoiled
    words = ["reproduce", study, "--out", str(out), "--device", "cpu"]
    rejected(words, f"{name} is damaged: ", out, capsys)
    rejected(words, "log.jsonl' has 1 line torn, altered or of another run", out, capsys)
    rejected(words, "use --damaged rerun or --damaged skip", out, capsys)


def test_a_damaged_run_is_trained_again_on_request(study: str, trained: Path, spoiled: tuple[Path, str]) -> None:
    out, name = spoiled
    assert run(["reproduce", study, "--out", str(out), "--device", "cpu", "--damaged", "rerun"]) == 0
    assert (out / "runs" / f".damaged-{name}").is_dir()
    assert damaged_runs(Store(out / "runs")) == {}
    assert (out / RECORDS).read_bytes() == (trained / RECORDS).read_bytes()


def test_a_damaged_run_is_left_out_on_request(study: str, trained: Path, spoiled: tuple[Path, str]) -> None:
    out, _ = spoiled
    assert run(["reproduce", study, "--out", str(out), "--device", "cpu", "--damaged", "skip"]) == 0
    assert len(unpack_records(out / RECORDS)) == len(unpack_records(trained / RECORDS)) - 1


def test_whole_runs_are_not_called_damaged(trained: Path) -> None:
    assert damaged_runs(Store(trained / "runs")) == {}


def test_a_plan_for_elsewhere_is_written_and_runs(
    study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, plan = tmp_path / "out", tmp_path / "plan.json"
    words = ["reproduce", study, "--only", "tab-norm", "--out", str(out), "--device"]
    assert run([*words, "cpu", "--dry-run"]) == 0
    assert "2 runs, 24 optimiser steps in all" in capsys.readouterr().out
    assert run([*words, "cuda", "--plan-only", str(tmp_path / "elsewhere.json")]) == 0
    assert Plan.from_json((tmp_path / "elsewhere.json").read_text()).device == "cuda"
    assert run([*words, "cpu", "--plan-only", str(plan)]) == 0
    assert not out.exists()
    assert len(Plan.from_json(plan.read_text()).runs) == 2
    assert worker.main(["--spec", str(plan)]) == 0
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("log.jsonl")}
    assert len(before) == 2
    assert run([*words, "cpu"]) == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(unpack_records(out / RECORDS)) == 2


def test_runs_of_another_precision_in_the_same_store_are_left_out(study: str, trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(trained / "runs", out / "runs")
    others = [replace(one.spec, precision="float64") for one in Store(trained / "runs") if one.spec.fork is None]
    plan = Plan(str(out / "runs"), tuple(others), "cpu", keep="none")
    (tmp_path / "plan.json").write_text(plan.to_json())
    assert worker.main(["--spec", str(tmp_path / "plan.json")]) == 0
    assert run(["reproduce", study, "--out", str(out), "--device", "cpu"]) == 0
    assert {record.spec.precision for record in unpack_records(out / RECORDS)} == {"float32"}
    assert json.loads((out / "provenance.json").read_text())["precision"] == "float32"


def test_records_of_several_places_are_written_elsewhere(study: str, trained: Path, tmp_path: Path) -> None:
    records = unpack_records(trained / RECORDS)
    parts = [tmp_path / "a.records.gz", tmp_path / "b.records.gz"]
    save_records(parts[0], records[:3])
    save_records(parts[1], records[2:])
    words = ["reproduce", study, "--remake", "--from", *map(str, parts), "--out", str(tmp_path / "out")]
    assert run(words) == 0
    assert (tmp_path / "out" / "claims.json").read_bytes() == (trained / "claims.json").read_bytes()


def test_what_cannot_be_remade_leaves_no_trace(
    study: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_records(tmp_path / "none.gz", [])
    words = ["reproduce", study, "--out", str(tmp_path / "out"), "--remake", "--from"]
    rejected([*words, str(tmp_path / "none.gz")], "holds no finished runs and no records", tmp_path, capsys)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "tables").write_text("mine")
    assert run([*words, str(trained)]) == 2
    assert "tables' could not be created" in capsys.readouterr().err


def one_seed(precision: Precision) -> dict[str, Runs]:
    """The quick bake-off, of 6 steps and one seed."""
    small = Architecture(layers=1, width=16, heads=2, mlp_width=32)
    runs = {name: spec for name, spec in quick_runs(precision)["bakeoff"].items() if name.endswith("_s0")}
    return {
        "bakeoff": {
            name: replace(
                spec,
                architecture=small,
                training=replace(spec.training, steps=6, batch_size=16),
                measurements=Cadence(3),
            )
            for name, spec in runs.items()
        }
    }


def test_a_study_without_claims_prints_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bakeoff, "STUDY", replace(bakeoff.STUDY, quick=one_seed, figures=()))
    assert run(["reproduce", "bakeoff", "--quick", "--device", "cpu", "--out", "bake"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in CONFIGURATIONS)
    assert "No speed was measured" in printed
    assert len(unpack_records(Path("bake/bakeoff.records.gz"))) == len(CONFIGURATIONS)
    assert run(["reproduce", "bakeoff", "--remake", "--json", "--from", "bake", "--out", "again"]) == 0
    assert len(json.loads(capsys.readouterr().out)) > 0
    assert Path("again/tables/tab-bakeoff.csv").read_bytes() == Path("bake/tables/tab-bakeoff.csv").read_bytes()


@pytest.mark.parametrize(("part", "count"), [("bakeoff", 36), ("tuning", 20)])
def test_a_plan_for_a_gpu_elsewhere_can_be_written_here(
    part: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["reproduce", "bakeoff", "--only", part, "--n-seeds", "1", "--device", "cuda", "--plan-only", "plan.json"]
    assert run(words) == 0
    plan = Plan.from_json(Path("plan.json").read_text())
    assert (plan.device, len(plan.runs), plan.keep) == ("cuda", count, "forks")
    assert [path.name for path in Path().iterdir()] == ["plan.json"]
