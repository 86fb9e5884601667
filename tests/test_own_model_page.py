"""The page about your own model: its code runs, and what it says of costs was measured."""

import ast
import json
import re
from pathlib import Path

import pytest

from grokscope.attach import ENCODERS, foreign_measures
from pages import blocks, run_blocks

PATH = Path(__file__).parents[1] / "docs" / "own-model.md"
PAGE = PATH.read_text(encoding="utf-8")


def test_every_block_of_the_page_runs_in_order_and_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_blocks(PATH, seed=1)  # so that the page must seed itself
    assert [row["step"] for row in names["monitor"].log] == [*range(0, 1001, 100)]
    shown, printed = (ast.literal_eval(text) for text in (blocks(PAGE, "text")[0], capsys.readouterr().out))
    assert printed.keys() == shown.keys()
    for column in ("step", "train_accuracy", "weight_decay"):
        assert printed[column] == shown[column]
    for column in ("validation_accuracy", "accuracy", "norm", "answer_share"):  # machines round differently
        assert printed[column] == pytest.approx(shown[column], rel=0.1)


def test_the_page_names_every_measure_and_encoder() -> None:
    named = set(re.findall(r"`\"?([a-z_]+)\"?`", PAGE))
    assert set(foreign_measures()) | set(ENCODERS) <= named


def test_the_costs_on_the_page_are_those_that_were_measured() -> None:
    measured = json.loads((PATH.parents[1] / "benchmarks" / "results" / "monitor-cpu.json").read_text())["measured"]
    assert (measured["every"], measured["p"]) == (100, 113)
    share = {
        (row["evaluation"], row["training"]): f"{100 * row['share_of_training']:.1f} %" for row in measured["rows"]
    }
    whole, part = "step of 3830 pairs", "step of 512 pairs"
    plain, more = "FSD and rank", "with restricted and excluded loss"
    words = " ".join(PAGE.split())
    assert (
        f"add {share[plain, whole]} to training with the whole batch of 3,830 pairs and {share[plain, part]}" in words
    )
    assert f"{more} it is {share[more, whole]} and {share[more, part]}" in words
