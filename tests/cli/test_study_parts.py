"""`grokscope reproduce --list-parts` and `--part`: a study trained part by part, packed, checked and put together."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import small_study
from small_commands import EXECUTORS, rejected, trained_here

from grokscope.cli import run
from grokscope.runs.packing import read_head, unpack_records
from grokscope.runs.provenance import provenance
from grokscope.studies import parts
from grokscope.studies.part_run import read_part


@pytest.fixture(autouse=True, scope="module")
def quick_machine() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr(f"{EXECUTORS}.run_locally", trained_here)
        patch.setattr(parts, "SECONDS", 1e-9)  # a part for each family
        patch.setenv("GROKSCOPE_COMMIT", "the same")
        patch.setenv("COLUMNS", "250")
        provenance.cache_clear()
        yield
    provenance.cache_clear()


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("study")
    shutil.copy(small_study.__file__, folder / "study.py")
    return str(folder)


@pytest.fixture(scope="module")
def packed(study: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both parts, each trained in a folder of its own, as two machines would, and then put together."""
    together = tmp_path_factory.mktemp("packed")
    for number in ("1", "2"):
        own = tmp_path_factory.mktemp("own") / "out"
        assert run(["reproduce", study, "--part", number, "--out", str(own), "--device", "cpu"]) == 0
        shutil.copy(own / f"part-0{number}.records.gz", together)
    return together


def test_a_part_is_packed_with_what_it_is_and_what_was_compared(packed: Path) -> None:
    heads = [read_head(packed / f"part-0{number}.records.gz") for number in (1, 2)]
    assert [(head["part"], head["of"], head["finished"], head["commit"]) for head in heads] == [
        (1, 2, 2, "the same"),
        (2, 2, 2, "the same"),
    ]
    for head in heads:
        assert (head["forks"]["controls"], head["forks"]["equal"], head["forks"]["differing"]) == (1, 1, [])
        assert head["run_steps"] == 18
        assert head["seconds"] > 0
    names = {member.name for one in unpack_records(packed / "part-01.records.gz") for member in one.made_for}
    assert names == {"tiny_s0", "tiny_s0_x1"}


def test_parts_together_give_the_results(study: str, packed: Path, tmp_path: Path) -> None:
    command = ["reproduce", study, "--remake", "--from", str(packed), "--out", str(tmp_path / "results")]
    assert run(command) == 0
    claims = json.loads((tmp_path / "results" / "claims.json").read_text())
    assert [claim["n"] for claim in claims] == [2]


def test_a_collection_of_parts_says_what_they_say_of_themselves(
    study: str, packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    out = tmp_path / "results" / "collection"
    assert run(["reproduce", study, "--collection", "--from", str(packed), "--out", str(out)]) == 0
    found = json.loads((out / "parts.json").read_text())
    assert [head["part"] for head in found["parts"]] == [1, 2]
    assert (found["all"]["finished"], found["all"]["run_steps"]) == (4, 36)
    assert found["all"]["seconds"] == pytest.approx(sum(head["seconds"] for head in found["parts"]))
    capsys.readouterr()
    assert run(["reproduce", study, "--list-parts", "--precision", "float32", "--from", str(out.parent)]) == 0
    assert capsys.readouterr().out.count("here") == 2


def test_parts_are_listed_with_their_cost(study: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", study, "--list-parts", "--precision", "float32"]) == 0
    assert "2 parts, 4 runs, 36 optimiser steps in all" in capsys.readouterr().out
    assert run(["reproduce", study, "--list-parts", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["part"], row["runs"], row["steps"]) for row in rows] == [(1, 2, 18), (2, 2, 18)]


def test_what_is_missing_is_named(study: str, packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listing = ["reproduce", study, "--list-parts", "--precision", "float32", "--from"]
    assert run([*listing, str(packed)]) == 0
    assert capsys.readouterr().out.count("here") == 2
    shutil.copy(packed / "part-02.records.gz", tmp_path)
    with pytest.raises(SystemExit, match="1"):
        run([*listing, str(tmp_path)])
    shown = capsys.readouterr()
    assert "missing" in shown.out
    assert "1 part of 2 missing or not usable" in shown.err


def test_the_cost_of_one_part_is_printed_and_its_plan_written(
    study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["reproduce", study, "--part", "2", "--dry-run", "--device", "cpu"]) == 0
    assert "part 2 of 2: 2 runs, 18 optimiser steps" in capsys.readouterr().out
    plan = tmp_path / "plan.json"
    assert run(["reproduce", study, "--part", "2", "--plan-only", str(plan), "--device", "cpu"]) == 0
    assert "train and pack it with: python -m grokscope.studies.part_run --spec" in capsys.readouterr().out
    about, written = read_part(plan)
    assert (about["part"], len(written.runs)) == (2, 2)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--part", "3"], "--part must lie in 1 to 2, the parts of small, got 3"),
        (["--part", "0"], "--part must lie in 1 to 2"),
        (["--part", "1", "--quick"], "--part is a part of the whole study: leave out"),
        (["--part", "1", "--only", "tab-norm"], "--part is a part of the whole study: leave out"),
        (["--part", "1", "--json"], "--json has no effect"),
        (["--list-parts", "--out", "there"], "--list-parts writes nothing: leave out --out"),
        (["--list-parts", "--part", "1"], "--list-parts trains nothing: leave out --part"),
        (["--list-parts", "--from", "a", "b"], "--list-parts reads one folder of packed parts, got 2"),
    ],
)
def test_options_that_make_no_sense_are_rejected(
    options: list[str], sentence: str, study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rejected(["reproduce", study, *options], sentence, tmp_path, capsys)
