"""`grokscope show` and `list`: stored runs, for people and programs."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from small_commands import TINY, rejected, words

import grokscope
from grokscope.cli import run
from grokscope.runs import RunOutcome, Store, run_name
from grokscope.runs.logs import columns_from
from grokscope.specs import Fork

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


def test_a_list_shows_what_varies_and_forks_after_their_parent(
    trained: None, capsys: pytest.CaptureFixture[str]
) -> None:
    run(words("train add_mod7 --spec tiny.json --width 32 --out runs"))
    run(words("fork runs add_mod7_s1 --at 4 --weight-decay 3 2"))
    wide = TINY.with_values({"width": 32})
    Store("runs").add(wide.with_seed(9))
    capsys.readouterr()
    assert run(words("list runs")) == 0
    header, *rows = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    assert header.split() == ["run", "λ", "width", "outcome", "memorised", "grokked", "stable", "forked", "at"]
    found = [re.split(r"  +", row) for row in rows]
    assert [(row[0].partition("-")[0], row[1]) for row in found[2:]] == [
        ("add_mod7_s1", "0.5"),
        ("add_mod7_s1", "2"),
        ("add_mod7_s1", "3"),
        ("add_mod7_s9", "0.5"),
    ]
    assert sorted(row[2] for row in found[:2]) == ["16", "32"]
    assert {row[3] for row in found[:5]} == {"not memorised"}
    assert found[-1][3] == "unfinished"


def test_an_unfinished_run_is_listed_as_far_as_its_log_goes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Store("runs").add(TINY)
    folder.append({"step": 0, "train_accuracy": 0.0, "validation_accuracy": 0.0})
    folder.append({"step": 2, "train_accuracy": 1.0, "validation_accuracy": 0.0})
    with folder.lock():
        assert run(words("list runs")) == 0
    assert re.search(r"  training +2 +– +– +\d+ %.*\n", capsys.readouterr().out)
    assert run(words("list runs")) == 0
    assert re.search(r"  unfinished +2 +– +– +\d+ %.*\n", capsys.readouterr().out)


def test_a_list_says_whether_runs_stayed_grokked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    curves = {"stable": [0.0, 1.0, 1.0, 1.0, 1.0], "no": [0.0, 1.0, 0.3, 1.0, 1.0], "open": [0.0, 0.0, 0.0, 0.0, 1.0]}
    for seed, values in enumerate(curves.values()):
        folder = Store("runs").add(TINY.with_seed(seed))
        for place, value in enumerate(values):
            folder.append({"step": 1000 * place, "train_accuracy": 1.0, "validation_accuracy": value})
    for known in (False, True):  # what the logs say is said of runs that have not ended, and of earlier versions' too
        for folder in Store("runs") if known else ():
            folder.finish(RunOutcome.from_evaluations(columns_from(folder.log())))
        assert run(words("list runs")) == 0
        rows = capsys.readouterr().out.splitlines()[1:4]
        assert [row.split()[-2:] for row in rows] == [["1,000", "1,000"], ["1,000", "no"], ["4,000", "open"]]


def test_a_fork_that_had_memorised_is_listed_so(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for spec, memorized in ((TINY, 2), (replace(TINY, fork=Fork(TINY.content_hash, 4)), 4)):
        Store("runs").add(spec).finish(RunOutcome("never", memorized=memorized))
    assert run(words("list runs")) == 0
    parent, fork = capsys.readouterr().out.splitlines()[1:3]
    assert re.search(r"not grokked +2 +– +– +–$", parent)
    assert re.search(r"not grokked +before the fork +– +– +4$", fork)


def test_two_runs_of_one_name_are_told_apart(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(words("train add_mod7 --weight-decay 1 2 --spec tiny.json --out runs"))
    names = "add_mod7_s0:weight_decay=1 and add_mod7_s0:weight_decay=2"
    for command in ("show runs add_mod7_s0", "fork runs add_mod7_s0 --at 4", "measure runs add_mod7_s0"):
        rejected(words(command), f"'add_mod7_s0' names 2 runs, such as {names}", here, capsys)
    assert run(words("show runs add_mod7_s0:weight_decay=2")) == 0
    assert "λ = 2" in capsys.readouterr().out


def test_an_empty_folder_has_no_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", str(here), "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"


def test_bad_input(trained: None, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    Path("loop").symlink_to("loop")
    for line, sentence in [
        ("list pipe", "'pipe' is no folder"),
        ("list loop", "'loop' is no folder"),
        ("list rns", "there is no folder 'rns'; did you mean 'runs'?"),
        ("list tiny.json", "'tiny.json' is a file, and runs are stored in folders"),
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
