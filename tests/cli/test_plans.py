"""What a plan costs, and training that is interrupted."""

import functools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from small_commands import EXECUTORS, TINY, contents, trained_here, words

import grokscope
from grokscope.cli import run
from grokscope.cli.plans import estimate
from grokscope.runs import Store, run_name
from grokscope.specs import Plan, RunSpec, Training

pytestmark = pytest.mark.usefixtures("here")


def test_a_dry_run_prints_the_cost_and_trains_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = "train add_mod97 --seeds 0:256 --weight-decay 0.3 1 3 --steps 15000"
    assert run(words(f"{grid} --out runs --dry-run --device cpu")) == 0
    printed = capsys.readouterr().out
    assert "768, 11,520,000 steps in all" in printed
    assert "shards" not in printed  # the workers of one machine share a plan
    assert all(word in printed for word in ("memory", "time", "disk"))
    assert run(words(f"{grid} --out runs --dry-run --device cpu --executor slurm --runs-per-shard 8")) == 0
    assert "shards    96 in 1 wave\n" in capsys.readouterr().out
    assert sorted(path.name for path in here.iterdir()) == ["tiny.json"]


def test_an_estimate_is_one_sentence() -> None:
    assert estimate(Plan("runs", (RunSpec(),))).startswith("1 run, 15,000 optimiser steps in all: about ")
    assert estimate(Plan("runs", (RunSpec(), RunSpec().with_seed(1)))).startswith("2 runs, 30,000 ")
    assert ": about 1 min on 1 core " in estimate(Plan("runs", (replace(RunSpec(), training=Training(steps=1)),)))


def test_interrupted_it_says_how_to_continue_and_resuming_ends_where_a_straight_run_does(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "train add_mod7 --seeds 0:2 --spec tiny.json --out"
    monkeypatch.setattr(f"{EXECUTORS}.run_locally", functools.partial(trained_here, stop_after=3))
    with pytest.raises(SystemExit) as stop:
        run([*words(command), "runs"])
    assert stop.value.code == 75
    shown = capsys.readouterr().out
    assert shown.splitlines()[-1] == "stopped; everything is stored: continue with `grokscope resume runs`"
    assert "unfinished at step 4" in shown
    assert "not begun" in shown
    assert run(words("list runs --json")) == 0
    assert [row["outcome"] for row in json.loads(capsys.readouterr().out)] == ["unfinished"] * 2
    assert run(words("show runs add_mod7_s1")) == 0
    monkeypatch.setattr(f"{EXECUTORS}.run_locally", trained_here)
    assert run(words("resume runs")) == 0
    assert run([*words(command), "straight"]) == 0
    assert contents(here / "runs") == contents(here / "straight")
    before = contents(here / "runs")
    assert run([*words(command), "runs"]) == 0, "the same command again has nothing to do"
    assert contents(here / "runs") == before


def test_runs_that_had_not_begun_when_it_stopped_are_resumed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{EXECUTORS}.run_locally", functools.partial(trained_here, stop_after=2))
    with pytest.raises(SystemExit):
        run(words("train add_mod7 --seeds 0:3 --spec tiny.json --out runs"))
    assert [len(one.folder.log()) > 0 for one in grokscope.open("runs")].count(True) == 1
    monkeypatch.setattr(f"{EXECUTORS}.run_locally", trained_here)
    assert run(words("resume runs")) == 0
    assert [one.folder.outcome.is_finished for one in grokscope.open("runs")] == [True] * 3


@pytest.mark.usefixtures("in_process")
def test_a_run_that_another_process_writes_is_rejected_and_its_owner_named(capsys: pytest.CaptureFixture[str]) -> None:
    with Store("runs").add(TINY).lock():
        assert run(words("train add_mod7 --spec tiny.json --out runs")) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert re.fullmatch(rf"grokscope: {run_name(TINY)} is being written by process [0-9]+ on \S+", last)
