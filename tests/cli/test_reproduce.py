"""`grokscope reproduce`: its options, the studies it finds, and a study in a folder of its own from end to end."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import small_study
from small_commands import rejected

from grokscope.cli import run
from grokscope.studies import find_study, rules_digest, study_names
from grokscope.studies.parts import parts_of
from grokscope.studies.verdicts import stored_verdicts
from grokscope.view.charts.figure import Panel

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_study"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a study outside the package, trained into `results` beside it."""
    folder = tmp_path_factory.mktemp("own")
    shutil.copy(small_study.__file__, folder / "study.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        assert run(["reproduce", str(folder), "--device", "cpu", "--out", str(folder / "results")]) == 0
        yield folder


def test_the_results_of_a_study_of_ones_own_are_written(own: Path) -> None:
    results = own / "results"
    written = {str(path.relative_to(results)) for path in results.rglob("*.*") if "runs" not in path.parts}
    assert {"small.records.gz", "claims.json", "provenance.json", "RESULTS.md", "reproduction.json"} <= written
    assert {"tables/tab-norm.csv", "supplements/sup-norm.md", "figures/fig-norm.svg"} <= written
    found = json.loads((results / "provenance.json").read_text())
    assert (found["study"], found["runs"], found["rules"]) == ("small", 4, rules_digest(find_study(str(own)).claims))
    assert (found["only"], found["without"]) == (["all"], [])


def test_its_claims_are_printed_for_people_and_programs(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", str(own), "--claims", "--from", str(own / "results"), "--json"]) == 0
    shown = capsys.readouterr()
    [row] = json.loads(shown.out)
    assert (row["name"], row["verdict"], row["n"]) == ("norm-positive", "reproduced", 2)
    assert shown.err == "", "the stored rules are the study's of today"
    assert run(["reproduce", str(own), "--claims", "--from", str(own / "results")]) == 0
    assert "1 claim: 1 reproduced" in capsys.readouterr().out
    assert run(["reproduce", str(own), "--claims", "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert row.keys() == {"name", "origin", "statement", "where", "reported", "shown_in", "rule", "quantity"}


@pytest.mark.parametrize("stored", [{"rules": "0123456789abcdef"}, {}, None])
def test_verdicts_by_other_rules_are_reported(
    stored: dict[str, str] | None, own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(own / "results" / "claims.json", tmp_path)
    if stored is not None:
        (tmp_path / "provenance.json").write_text(json.dumps(stored))
    assert run(["reproduce", str(own), "--claims", "--from", str(tmp_path), "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)
    assert "follow from other rules than those of small today" in shown.err
    assert f"(digest {'0123456789ab' if stored else 'unknown'}, " in shown.err
    assert f"today {rules_digest(find_study(str(own)).claims)[:12]})" in shown.err


def test_its_results_are_made_again_from_records_or_runs(own: Path) -> None:
    exact = ("claims.json", "tables/tab-norm.csv", "figures/fig-norm.svg")  # from records, which keep seven digits
    for source, names in {"results": exact, "results/small.records.gz": exact, "results/runs": ()}.items():
        assert run(["reproduce", str(own), "--remake", "--from", str(own / source), "--out", "again"]) == 0
        for name in ("tables/tab-norm.md", *names):
            assert Path("again", name).read_bytes() == (own / "results" / name).read_bytes()


def test_a_figure_without_any_of_the_runs_says_so_and_fails(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Panel, "has_runs", False)
    with pytest.raises(SystemExit) as stop:
        run(["reproduce", str(own), "--figure", "all", "--from", str(own / "results"), "--out", "f"])
    assert stop.value.code == 1
    assert capsys.readouterr().err.endswith(
        "none of these runs is in it: it shows what is reported, and nothing else\n"
    )


def test_its_figures_are_drawn(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", str(own), "--figure", "all", "--from", str(own / "results"), "--out", "f"]) == 0
    assert "wrote f/fig-norm.svg" in capsys.readouterr().out
    assert Path("f/fig-norm.csv").read_bytes() == (own / "results" / "figures" / "fig-norm.csv").read_bytes()
    sentence = "small has no figure 'fig-nrom'; did you mean 'fig-norm'?"
    rejected(["reproduce", str(own), "--figure", "fig-nrom", "--from", "."], sentence, Path(), capsys)


def test_the_example_is_a_study(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", str(EXAMPLE), "--n-seeds", "2", "--device", "cpu", "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("6 runs, 18,000 optimiser steps in all")
    assert run(["reproduce", str(EXAMPLE), "--list"]) == 0
    assert capsys.readouterr().out.split() == ["tab-decay", "fig-decay", "decay"]
    assert run(["reproduce", str(EXAMPLE), "--claims"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("decay-speeds-up\n")
    assert shown.endswith(f"digest of these rules: {rules_digest(find_study(str(EXAMPLE)).claims)}\n")
    assert not list(Path().iterdir())


def test_studies_and_their_parts_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "--list"]) == 0
    shown = capsys.readouterr().out
    heads = [line.split(":")[0] for line in shown.splitlines() if not line.startswith(" ")]
    assert heads == [*study_names()]
    assert run(["reproduce", "--list", "--json"]) == 0
    rows = {row["study"]: row for row in json.loads(capsys.readouterr().out)}
    assert [*rows] == [*study_names()]
    for name, row in rows.items():
        study = find_study(name)
        trained = [spec for part in parts_of(study, "tf32") for spec in part.plan.runs]
        steps = (spec.training.steps - (spec.fork.step if spec.fork else 0) for spec in trained)
        assert (row["runs"], row["run_steps"]) == (len(trained), sum(steps))
        if not study.run_sets:
            assert {*trained} == {spec for runs in study.runs(precision="tf32").values() for spec in runs.values()}
        assert (row["title"], row["papers"], row["claims"]) == (study.title, dict(study.papers), len(study.claims))
        assert (row["verdicts"] is None) == (name not in stored_verdicts())
        assert row["gpu_minutes"] > 0
        lines = shown.split(f"{name}: {row['title']}")[1].splitlines()[1:4]
        assert all(f"arXiv:{number}" in lines[0] for number in row["papers"])
        assert ("no runs yet" in lines[1]) == (row["verdicts"] is None)
        assert f"{row['run_steps']:,} run-steps" in lines[2]
    assert run(["reproduce", "synchronization", "--list", "--json"]) == 0
    parts = json.loads(capsys.readouterr().out)
    assert {"tab-wd", "fig-wd", "base"} <= {*parts} == {*find_study("synchronization").items, "base"} | {*parts}


def test_a_study_is_found_by_the_number_of_a_paper_that_no_other_study_judges() -> None:
    judged = [(number, name) for name in study_names() for number in find_study(name).papers]
    assert len({number for number, _ in judged}) == len(judged) > 0
    for number, name in judged:
        for text in (number, f"arXiv:{number}", f"arxiv: {number}v3", f"https://arxiv.org/abs/{number}"):
            assert find_study(text).name == name


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["2606.12696"], "no study judges a paper with the arXiv number 2606.12696; near it are 2606.12966 (synchron"),
        (["arXiv:0901.0001", "--claims"], "no study judges a paper with the arXiv number 0901.0001; near it are 2"),
        (["2606.1296"], "no study judges a paper with the arXiv number 2606.1296; near it are 2606.12966 (synchroni"),
        ([], "name a study; `grokscope reproduce --list` lists them"),
        (["synchronisation"], "there is no study and no folder 'synchronisation'; did you mean 'synchronization'?"),
        (["bakeoff", "--claims"], "bakeoff has no claims"),
        (["synchronization", "--only", "tab-kann"], "has nothing called 'tab-kann'; did you mean 'tab-kan'"),
        (["synchronization", "--without", "sensitivty"], "has nothing called 'sensitivty'; did you mean"),
        (["synchronization", "--n-seeds", "0"], "--n-seeds must lie in 1 to 10,000, got 0"),
        (["synchronization", "--quick", "--n-seeds", "4"], "--quick has its own seeds"),
        (["synchronization", "--without", "all"], "nothing is left to reproduce: all that was asked for is left out"),
        (["bakeoff", "--only", "tuning", "--quick"], "nothing is left to reproduce: the quick version has no such run"),
        (["bakeoff", "--claims", "--remake"], "--claims and --remake exclude each other: give one of them"),
        (["bakeoff", "--remake", "--quick"], "--remake trains nothing: leave out --quick"),
        (["bakeoff", "--claims", "--device", "cpu"], "--claims trains nothing: leave out --device or --deterministic"),
        (
            ["bakeoff", "--from", "results"],
            "--from has no effect here: it needs --claims, --remake, --collection, --figure or --list-parts",
        ),
        (["bakeoff", "--remake", "--out", "x"], "--remake needs --from, where the records are, and --out"),
        (["bakeoff", "--remake", "--from", "x"], "--remake needs --from, where the records are, and --out"),
        (["bakeoff", "--remake", "--from", "x", "--out", "y"], "there is no folder 'x'"),
        (["synchronization", "--claims", "--from", "x"], "'x' has no claims.json"),
        (["synchronization", "--claims", "--from", "x", "y"], "--claims reads one folder of results, got 2"),
        (["bakeoff", "--dry-run", "--plan-only", "p.json"], "--dry-run writes nothing: leave out --plan-only"),
        (["bakeoff", "--claims", "--out", "x"], "--claims writes nothing: leave out --out"),
        (["--list", "--out", "x"], "--list writes nothing: leave out --out"),
        (["bakeoff", "--dry-run", "--damaged", "skip"], "--dry-run and --plan-only train nothing: leave out --damaged"),
        (["bakeoff", "--plan-only", "p", "--damaged", "stop"], "train nothing: leave out --damaged"),
        (["bakeoff", "--plan-only", "p", "--executor", "slurm"], "a plan for a worker: leave out --executor"),
        (
            ["bakeoff", "--dry-run", "--json"],
            "--json has no effect with --dry-run, --plan-only, --part, --collection or --figure",
        ),
        (["bakeoff", "--partition", "gpu"], "--partition has no effect with --executor local; use --executor slurm"),
        (["synchronization", "--figure", "fig-arhc", "--from", "x"], "no figure 'fig-arhc'; did you mean 'fig-arch'?"),
        (["synchronization", "--figure", "fig-arch"], "--figure needs --from, where the runs or records are"),
    ],
)
def test_what_cannot_be_reproduced_is_rejected(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rejected(["reproduce", *arguments], sentence, tmp_path, capsys)


@pytest.mark.parametrize("content", ["{}", "[]", "[1]", '[{"name": "x"}]', "nonsense"])
def test_a_foreign_file_of_claims_is_rejected(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "claims.json").write_text(content)
    rejected(["reproduce", "synchronization", "--claims", "--from", "."], "claims.json", tmp_path, capsys)
    sentence = "'claims.json' has no claims.json with claims as `grokscope reproduce` writes them\n"
    rejected(["reproduce", "synchronization", "--claims", "--from", "claims.json"], sentence, tmp_path, capsys)
