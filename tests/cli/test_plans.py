"""What a plan costs, before anything is written."""

from pathlib import Path

import pytest
from small_commands import words

from grokscope.cli import run
from grokscope.cli.plans import estimate
from grokscope.specs import Plan, RunSpec


def test_a_dry_run_prints_the_cost_and_trains_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = "train add_mod97 --seeds 0:256 --weight-decay 0.3 1 3 --steps 15000"
    assert run(words(f"{grid} --out runs --dry-run --device cpu")) == 0
    printed = capsys.readouterr().out
    assert "768, 11,520,000 steps in all" in printed
    assert "shards    48 in 1 waves" in printed
    assert all(word in printed for word in ("memory", "time", "disk"))
    assert run(words(f"{grid} --out runs --dry-run --device cpu --executor slurm --runs-per-shard 8")) == 0
    assert "shards    96 in 1 waves" in capsys.readouterr().out
    assert sorted(path.name for path in here.iterdir()) == ["tiny.json"]


def test_an_estimate_is_one_sentence() -> None:
    assert estimate(Plan("runs", (RunSpec(),))).startswith("1 runs, 15,000 optimiser steps in all: about ")
