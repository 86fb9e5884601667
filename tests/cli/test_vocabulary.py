"""One word for each outcome: in the list, the summary, SQL, frames, filters of the API and the report."""

import json
from pathlib import Path

import pytest

import grokscope
from grokscope.cli import run
from grokscope.law.runs import Ending
from grokscope.runs import RunOutcome, Store
from grokscope.runs.outcome import ENDINGS
from grokscope.timeline import Outcome
from grokscope.view.page.rows import row_of
from grokscope.view.page.sources import ShownRun
from short_runs import tiny

pytestmark = pytest.mark.usefixtures("here", "in_process")

STORED = {
    "grokked": RunOutcome("grokked", memorized=2, grokked=4),
    "grokked, then unstable": RunOutcome("unstable_after", memorized=2, grokked=4),
    "not grokked": RunOutcome("never", memorized=2),
    "unstable": RunOutcome("unstable", memorized=2),
    "not memorised": RunOutcome("unstable"),
    "diverged": RunOutcome("diverged", failed_at=3, memorized=2),
    "unfinished": None,
}


def test_every_ending_is_among_those_compared() -> None:
    assert {*STORED} == {*ENDINGS}


@pytest.mark.parametrize("word", STORED)
def test_an_outcome_has_one_word_everywhere(word: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    folder = Store("runs").add(tiny())
    if (ended := STORED[word]) is not None:
        folder.finish(ended)
    runs = grokscope.open("runs")
    assert runs[0].outcome == runs.table()[0]["outcome"] == runs.columns()["outcome"][0] == word
    assert repr(runs[0]).endswith(f", {word}>")
    assert len(runs.where(outcome=word)) == 1
    assert row_of(ShownRun(runs[0].name, runs[0].record))["outcome"] == word
    for command in (["list", "runs"], ["list", "runs", "--json"], ["query", "runs", "select outcome from runs"]):
        assert run(command) == 0
        assert word in capsys.readouterr().out
    if ended is not None:
        assert run(["status", "runs"]) == 0
        assert f"1 finished (1 {word})" in capsys.readouterr().out
        assert run(["show", "runs", "add_mod7_s0", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["outcome"]["outcome"] == word


def test_the_law_uses_the_same_words() -> None:
    assert (str(Ending.CENSORED), str(Ending.GROKKED)) == (str(Outcome.NEVER), str(Outcome.GROKKED))
