import json
from pathlib import Path

import pytest
from small_commands import TINY, rejected, words

from grokscope.cli import run
from grokscope.runs import Store


def begun(folder: Path, steps: int) -> str:
    """A run that was evaluated so often, and is not finished."""
    stored = Store(folder).add(TINY)
    for step in range(0, 2 * steps, 2):
        loss = 3.0 - 0.01 * step
        row = {"step": step, "train_accuracy": 1.0, "validation_accuracy": 0.1, "train_loss": 0.1, "norm": 30.0}
        stored.append(row | {"validation_loss": loss})
    return stored.name


def test_forecasts_an_unfinished_run_and_says_that_it_is_unlike_others(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = begun(Path("runs"), 3)
    assert run(words("forecast runs")) == 0
    said = capsys.readouterr().out
    assert name in said
    assert "go on: unlike the runs that the forecaster was fitted to" in said
    assert "(?) width = 16, fitted to 128\n" in said
    assert "basis: tier 5 (" in said
    assert run(words("forecast runs --json --horizon 500")) == 0
    [found] = json.loads(capsys.readouterr().out)
    assert (found["run"], found["step"], found["horizon"]) == (name, 4, 500)
    assert 0 <= found["probability"] <= 1


def test_a_forecast_of_an_earlier_step_sees_nothing_later(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun(Path("long"), 4)
    begun(Path("short"), 2)
    answers = []
    for folder in ("long", "short"):
        assert run(["forecast", folder, "--at", "2", "--horizon", "100", "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]


def test_list_and_show_say_where_an_unfinished_run_is_heading(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun(Path("runs"), 3)
    assert run(words("list runs")) == 0
    assert "forecast" in capsys.readouterr().out.splitlines()[0]
    assert run(words("show runs")) == 0
    assert "Forecast: it groks within" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("forecast runs --horizon 0", "--horizon must be at least 1, got 0"),
        ("forecast runs --at -1", "--at must be at least 0, got -1"),
        ("forecast gone", "gone"),
    ],
)
def test_rejects_what_cannot_be_forecast(
    line: str, sentence: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(Path("runs"), 1)
    rejected(words(line), sentence, here, capsys)


def test_a_folder_without_evaluations_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Store("runs").add(TINY)
    assert run(words("forecast runs")) == 0
    assert capsys.readouterr().out == "no run has an evaluation to forecast from\n"
