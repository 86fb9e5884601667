"""`grokscope show` and `list`: stored runs, for people and programs."""

import json
import re
from pathlib import Path

import pytest
from small_commands import TINY, rejected, words

import grokscope
from grokscope.cli import run
from grokscope.runs import run_name

pytestmark = pytest.mark.usefixtures("here", "in_process")


@pytest.fixture
def trained(here: Path, in_process: None, capsys: pytest.CaptureFixture[str]) -> None:
    run(words("train add_mod7 --seeds 0:2 --spec tiny.json --out runs"))
    capsys.readouterr()


def test_a_run_is_shown_in_full(trained: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words("show runs add_mod7_s1")) == 0
    shown = capsys.readouterr().out
    log = grokscope.open("runs")["add_mod7_s1"].log()
    for step, norm in zip(log["step"], log["norm"], strict=True):
        assert re.search(rf"^ *{step} .* {norm:.3f} ", shown, re.MULTILINE)
    assert "weights at 3 steps: 0 … 8" in shown
    assert '"weight_decay": 0.5' in shown


def test_a_folder_is_summarised(trained: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words("show runs")) == 0
    shown = capsys.readouterr().out
    assert "add_mod7_s0 (λ = 0.5)" in shown
    assert "add_mod7_s1 (λ = 0.5)" in shown
    assert run(words("show runs --json")) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["run"] for row in rows] == [run_name(TINY.with_seed(seed)) for seed in (0, 1)]
    assert {"memorized", "synchronized", "grokked", "outcome"} <= set(rows[0])


def test_a_list_has_every_run(trained: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words("list runs")) == 0
    listed = capsys.readouterr().out
    assert all(run_name(TINY.with_seed(seed)) in listed for seed in (0, 1))


def test_an_empty_folder_has_no_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", str(here), "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"


def test_bad_input(trained: None, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line, sentence in [
        ("list rns", "there is no folder 'rns'; did you mean 'runs'?"),
        ("list tiny.json", "there is no folder 'tiny.json'"),
        ("show runs add_mod7_s3", "there is no run 'add_mod7_s3' in 'runs'; did you mean 'add_mod7_s"),
        ("show runs add_mod7", "'add_mod7' names 2 runs, such as"),
        ("show rns x", "there is no folder 'rns'; did you mean 'runs'?"),
        ("show add_mod7_s0 --out runs", "`grokscope show` has no option '--out'"),
    ]:
        rejected(words(line), sentence, here, capsys)


@pytest.mark.parametrize("name", ["spec.json", "outcome.json", "weights-00000008.safetensors"])
def test_a_damaged_file_is_named(name: str, trained: None, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = here / "runs" / run_name(TINY) / name
    path.write_bytes(path.read_bytes()[:-10])
    if "weights" in name:
        rejected(words("export runs add_mod7_s0"), name, here, capsys)
    for command in ("list", "show", "status"):
        assert run(words(f"{command} runs")) == 0
        shown = capsys.readouterr().out
        assert (f"{name}' " in shown) == ("weights" not in name)
        assert run_name(TINY.with_seed(1)).partition("-")[0] in shown or command == "status", "the others are shown"
