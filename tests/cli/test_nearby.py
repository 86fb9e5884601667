"""A folder without runs is no dead end."""

from pathlib import Path

import pytest
from small_commands import rejected

from grokscope.cli import run
from grokscope.runs import Store
from tiny_runs import TINY

pytestmark = pytest.mark.usefixtures("here", "quick_disk")


def store(folder: str, count: int) -> None:
    for seed in range(count):
        Store(folder).add(TINY.with_seed(seed))


def test_list_and_query_name_the_folders_one_level_down_that_have_runs(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store("runs/first", 2)
    store("runs/wide", 1)
    (here / "runs/empty").mkdir()
    (here / "runs/file").touch()
    sentence = "there are no runs in runs: 'runs/first' has 2, 'runs/wide' has 1\n"
    assert run(["list", "runs"]) == 0
    assert capsys.readouterr().out == sentence
    rejected(["query", "runs", "select weight_decay from runs"], f"grokscope: {sentence}", here, capsys)
    assert run(["query", "runs/wide", "select weight_decay from runs"]) == 0


def test_only_some_of_many_folders_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b", "c", "d", "e\n"):
        store(f"runs/{name}", 1)
    assert run(["list", "runs"]) == 0
    assert capsys.readouterr().out.endswith(
        "'runs/a' has 1, 'runs/b' has 1, 'runs/c' has 1, 2 more folders in it have some\n"
    )


def test_where_nothing_is_below_it_says_how_to_train(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "runs").mkdir()
    sentence = "there are no runs in runs; train some with: grokscope train add_mod97 --out runs\n"
    assert run(["list", "runs"]) == 0
    assert capsys.readouterr().out == sentence
    rejected(["query", "runs", "select 1"], f"grokscope: {sentence}", here, capsys)
    assert run(["list", "runs", "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"
