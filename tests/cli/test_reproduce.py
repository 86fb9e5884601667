"""`grokscope reproduce`, with the runs of a study at a size that a test can train."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from grokscope.cli.known_studies import STUDIES as STUDIES_BY_NAME
from grokscope.studies.catalogue import STUDIES
from grokscope.studies.claims import CLAIMS, Verdict, rules_digest

from grokscope.cli import run
from grokscope.jobs import worker
from grokscope.runs import Store
from grokscope.runs.doctor import damaged_runs
from grokscope.runs.records import save_records, unpacked
from grokscope.specs import Architecture, Cadence, Plan, RunSpec, Training
from grokscope.studies import FIGURES, catalogue, results
from grokscope.version import __version__


def small_run(task: str, seed: int, precision: str, **changes: object) -> RunSpec:
    spec = RunSpec(
        task=f"{task.partition('_')[0]}_mod7",
        train_fraction=0.7,
        architecture=Architecture(width=16, heads=2, mlp_width=32),
        training=Training(steps=12, batch_size=16),
        checkpoints=Cadence(6, at=(6, 12)),
        measurements=Cadence(3),
    )
    return replace(spec.with_seed(seed), **changes)


def small_fork(n: int | None, precision: str) -> dict[str, RunSpec]:
    parent = small_run("add_mod97", 42, precision)
    forks = {f"add_mod97_s42_x{decay:g}": catalogue.fork_of(parent, 6, decay) for decay in (1.0, 3.0)}
    return {name: replace(spec, training=replace(spec.training, steps=12)) for name, spec in forks.items()}


@pytest.fixture(autouse=True, scope="module")
def small_catalogue() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setenv("GROKSCOPE_COMMIT", "the same")  # it is part of the records
        patch.setattr(catalogue, "base_run", small_run)
        for name in set(STUDIES) - {"base"}:
            patch.setitem(STUDIES, name, lambda n, precision: {})
        patch.setitem(STUDIES, "fork", small_fork)
        patch.setattr(results, "FIGURES", {"fig-wd": FIGURES["fig-wd"]})  # each takes a second to draw
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of the whole small catalogue."""
    out = tmp_path_factory.mktemp("made") / "first"
    assert run(["reproduce", "synchronization", "--out", str(out), "--device", "cpu"]) == 0
    return out


def content(folder: Path) -> dict[str, bytes]:
    """What follows from the runs: everything but the runs themselves and where they were made."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and "runs" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_two_empty_folders_end_alike_to_the_byte(made: Path, tmp_path: Path) -> None:
    again = tmp_path / "second"
    assert run(["reproduce", "synchronization", "--out", str(again), "--device", "cpu"]) == 0
    one, other = content(made), content(again)
    assert one.keys() == other.keys()
    assert {name for name in one if one[name] != other[name]} == set()
    assert {"tables/tab-wd.csv", "figures/fig-wd.svg", "answers/ans-law.md", "claims.json", "RESULTS.md"} <= set(one)


def test_what_is_finished_is_used_again(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in (made / "runs").rglob("*.jsonl")}
    (made / "tables" / "tab-wd.csv").unlink()
    assert run(["reproduce", "synchronization", "--only", "tab-wd", "--out", str(made), "--device", "cpu"]) == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert (made / "tables" / "tab-wd.csv").exists()
    said = capsys.readouterr().out
    assert f"{len(CLAIMS)} claims: " in said
    assert "too few runs" in said
    assert "runs in" in said


def test_the_results_say_where_they_come_from_and_by_which_rules(made: Path) -> None:
    told = json.loads((made / "provenance.json").read_text())
    records = unpacked(made / "reproduction.records.gz")
    assert told["rules"] == rules_digest()
    assert told["runs"] == len(records) == sum(one["runs"] for one in told["runs_made_with"])
    assert told["run_steps"] == sum(12 - (r.spec.fork.step if r.spec.fork else 0) for r in records)
    assert {"device", "commit", "torch", "grokscope"} <= set(told["runs_made_with"][0])


def test_claims_are_printed_for_people_and_programs(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "synchronization", "--claims", "--from", str(made), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == [claim.name for claim in CLAIMS]
    assert all(row["verdict"] and row["rule"] and row["why"] for row in rows)
    assert {row["beside_verdict"] for row in rows} <= {None, *Verdict}
    assert run(["reproduce", "synchronization", "--claims", "--from", str(made)]) == 0
    assert f"{len(CLAIMS)} claims: " in capsys.readouterr().out


def test_without_results_the_rules_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["reproduce", "synchronization", "--claims", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0].keys() == {"name", "statement", "where", "printed", "rule", "table"}
    assert run(["reproduce", "synchronization", "--claims", "--from", "nowhere"]) == 2
    assert "has no claims.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--only", "tab-kann"], "there is nothing called 'tab-kann' to reproduce; did you mean 'tab-kan'"),
        (["--without", "sensitivty"], "there is nothing called 'sensitivty' to reproduce"),
        (["--n-seeds", "0"], "--n-seeds must lie in 1 to 10,000, got 0"),
        (["--quick", "--n-seeds", "4"], "--quick has its own seeds"),
        (["--without", "all"], "nothing is left to reproduce: all that was asked for is left out"),
        (["--only", "ans-sensitivity", "--quick"], "nothing is left to reproduce: the quick version has no such run"),
        (["--claims", "--remake"], "--claims and --remake exclude each other: give one of them"),
        (["--remake", "--quick"], "--remake trains nothing: leave out --quick"),
        (["--claims", "--device", "cpu"], "--claims trains nothing: leave out --device or --deterministic"),
        (["--from", "results"], "--from has no effect here: it needs --claims, --remake or --figure"),
        (["--dry-run", "--plan-only", "p.json"], "--dry-run writes nothing: leave out --plan-only"),
        (["--dry-run", "--json"], "--json has no effect with --dry-run, --plan-only or --figure"),
        (["--partition", "gpu"], "--partition has no effect with --executor local"),
        (["--figure", "fig-arhc"], "synchronization has no figure 'fig-arhc'; did you mean 'fig-arch'?"),
        (["--figure", "fig-arch"], "--figure needs --from, where the runs or records are"),
    ],
)
def test_what_cannot_be_asked_for_is_said_in_a_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["reproduce", "synchronization", *arguments, "--out", str(tmp_path / "new")]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_folder_of_another_version_or_kind_is_left_alone(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old").mkdir()
    theirs = {"grokscope": "0.0.7", "study": "synchronization", "precision": "float32", "quick": False}
    (tmp_path / "old" / "reproduction.json").write_text(json.dumps(theirs))
    assert run(["reproduce", "synchronization", "--out", str(tmp_path / "old"), "--device", "cpu"]) == 2
    said = capsys.readouterr().err
    assert "0.0.7" in said
    assert __version__ in said
    assert [path.name for path in (tmp_path / "old").iterdir()] == ["reproduction.json"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    assert run(["reproduce", "synchronization", "--out", str(tmp_path / "mine"), "--device", "cpu"]) == 2
    assert "was not written by `grokscope reproduce`" in capsys.readouterr().err
    assert run(["reproduce", "synchronization", "--out", str(made), "--device", "cpu", "--precision", "bf16"]) == 2
    assert "precision 'float32'" in capsys.readouterr().err


def spoiled(made: Path, tmp_path: Path) -> tuple[Path, str]:
    out = tmp_path / "spoiled"
    shutil.copytree(made, out)
    folder = next(one for one in Store(out / "runs") if one.spec.fork)
    content = (folder.path / "log.jsonl").read_bytes()
    (folder.path / "log.jsonl").write_bytes(content[:40] + b"X" + content[41:])
    return out, folder.name


def test_a_damaged_run_is_named_and_nothing_is_made_of_it(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, name = spoiled(made, tmp_path)
    assert run(["reproduce", "synchronization", "--only", "tab-wd", "--out", str(out), "--device", "cpu"]) == 2
    said = capsys.readouterr().err
    assert f"{name} is damaged: " in said
    assert "log.jsonl' has 1 torn or altered records" in said
    assert "--damaged rerun or --damaged skip" in said


def test_a_damaged_run_is_trained_again_on_request(made: Path, tmp_path: Path) -> None:
    out, name = spoiled(made, tmp_path)
    assert (
        run(
            [
                "reproduce",
                "synchronization",
                "--only",
                "tab-wd",
                "--out",
                str(out),
                "--device",
                "cpu",
                "--damaged",
                "rerun",
            ]
        )
        == 0
    )
    assert (out / "runs" / f".damaged-{name}").is_dir()
    assert damaged_runs(Store(out / "runs")) == {}
    assert (out / "reproduction.records.gz").read_bytes() == (made / "reproduction.records.gz").read_bytes()


def test_a_damaged_run_is_left_out_on_request(made: Path, tmp_path: Path) -> None:
    out, _ = spoiled(made, tmp_path)
    assert (
        run(
            [
                "reproduce",
                "synchronization",
                "--only",
                "tab-wd",
                "--out",
                str(out),
                "--device",
                "cpu",
                "--damaged",
                "skip",
            ]
        )
        == 0
    )
    assert len(unpacked(out / "reproduction.records.gz")) == len(unpacked(made / "reproduction.records.gz")) - 1


def test_whole_runs_are_not_called_damaged(made: Path) -> None:
    assert damaged_runs(Store(made / "runs")) == {}


def test_a_plan_for_elsewhere_is_written_and_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, out = tmp_path / "plan.json", tmp_path / "out"
    assert (
        run(["reproduce", "synchronization", "--only", "tab-wd", "--out", str(out), "--device", "cpu", "--dry-run"])
        == 0
    )
    assert "3 runs, 24 optimiser steps in all" in capsys.readouterr().out
    assert not out.exists()
    elsewhere = tmp_path / "elsewhere.json"  # a plan for a device that is not here
    assert (
        run(
            [
                "reproduce",
                "synchronization",
                "--only",
                "tab-wd",
                "--out",
                str(out),
                "--device",
                "cuda",
                "--plan-only",
                str(elsewhere),
            ]
        )
        == 0
    )
    assert Plan.from_json(elsewhere.read_text()).device == "cuda"
    assert (
        run(
            [
                "reproduce",
                "synchronization",
                "--only",
                "tab-wd",
                "--out",
                str(out),
                "--device",
                "cpu",
                "--plan-only",
                str(plan),
            ]
        )
        == 0
    )
    assert len(Plan.from_json(plan.read_text()).runs) == 3
    assert worker.main(["--spec", str(plan)]) == 0
    assert len(list(Store(out / "runs"))) == 3
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("log.jsonl")}
    assert run(["reproduce", "synchronization", "--only", "tab-wd", "--out", str(out), "--device", "cpu"]) == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(unpacked(out / "reproduction.records.gz")) == 3


def test_runs_of_another_precision_in_the_same_store_are_left_out(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    shutil.copytree(made / "runs", out / "runs")
    others = [replace(folder.spec, precision="float64") for folder in Store(made / "runs") if folder.spec.fork is None]
    plan = Plan(str(out / "runs"), tuple(others), "cpu", keep="none")
    (tmp_path / "plan.json").write_text(plan.to_json())
    assert worker.main(["--spec", str(tmp_path / "plan.json")]) == 0
    assert run(["reproduce", "synchronization", "--only", "tab-wd", "--out", str(out), "--device", "cpu"]) == 0
    assert {record.spec.precision for record in unpacked(out / "reproduction.records.gz")} == {"float32"}
    assert json.loads((out / "provenance.json").read_text())["precision"] == "float32"


def test_remake_makes_the_same_again_and_only_where_records_lie(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "again").mkdir()
    shutil.copy(made / "reproduction.records.gz", tmp_path / "again")
    assert run(["reproduce", "synchronization", "--remake", "--out", str(tmp_path / "again")]) == 0
    for name in ("claims.json", "tables/tab-wd.csv", "figures/fig-wd.svg"):
        assert (tmp_path / "again" / name).read_bytes() == (made / name).read_bytes()
    before = sorted(made.rglob("*"))
    (tmp_path / "empty").mkdir()
    for place in (made / "runs", tmp_path / "empty", tmp_path / "nowhere"):
        assert run(["reproduce", "synchronization", "--remake", "--out", str(place)]) == 2
        assert "which is what `grokscope reproduce` writes" in capsys.readouterr().err
    assert sorted(made.rglob("*")) == before
    (tmp_path / "empty" / "tables").write_text("mine")
    shutil.copy(made / "reproduction.records.gz", tmp_path / "empty")
    assert run(["reproduce", "synchronization", "--remake", "--out", str(tmp_path / "empty")]) == 2
    assert "tables' could not be written" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["{}", "[1]", '[{"name": "x"}]', "nonsense"])
def test_a_foreign_file_of_claims_is_rejected(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "claims.json").write_text(content)
    assert run(["reproduce", "synchronization", "--claims", "--from", str(tmp_path)]) == 2
    assert "claims.json'" in capsys.readouterr().err


def test_records_of_several_places_are_written_elsewhere(made: Path, tmp_path: Path) -> None:
    records = unpacked(made / "reproduction.records.gz")
    parts = [tmp_path / "a.records.gz", tmp_path / "b.records.gz"]
    save_records(parts[0], records[:6])
    save_records(parts[1], records[4:])
    words = ["reproduce", "synchronization", "--remake", "--from", *map(str, parts), "--out", str(tmp_path / "out")]
    assert run(words) == 0
    assert (tmp_path / "out" / "claims.json").read_bytes() == (made / "claims.json").read_bytes()


def test_studies_and_their_parts_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(STUDIES_BY_NAME)
    assert run(["reproduce", "--list", "--json"]) == 0
    assert [row["study"] for row in json.loads(capsys.readouterr().out)] == list(STUDIES_BY_NAME)
    assert run(["reproduce", "synchronization", "--list"]) == 0
    assert {"tab-wd", "fig-wd", "ans-law"} <= set(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "name a study; `grokscope reproduce --list` lists them"),
        (["synchronisation"], "there is no study 'synchronisation'; did you mean 'synchronization'?"),
        (["synchronization", "--remake"], "--remake needs --out, the folder for the results"),
        (["bakeoff", "--claims"], "bakeoff has no claims"),
        (["bakeoff", "--quick", "--only", "S5"], "--quick has a task of its own: leave out --only"),
        (["bakeoff", "--only", "ad_mod97", "--dry-run"], "did you mean 'add_mod97'"),
        (["bakeoff", "--without", "S5"], "the bake-off has no --without"),
        (["bakeoff-tuning", "--quick"], "leave out --only and --quick"),
    ],
)
def test_what_is_no_study_is_rejected(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["reproduce", *arguments]) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
