import json
from pathlib import Path

import numpy as np
import pytest
from small_commands import rejected

from grokscope.cli import run

STEPS = range(0, 5001, 100)
RUN = {
    "step": [*STEPS],
    "train_acc": [min(1.0, step / 500) for step in STEPS],
    "val_acc": [0.01 if step < 2000 else 1.0 for step in STEPS],
}


def table(path: Path, columns: dict[str, list[float]]) -> None:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")


def test_says_when_a_run_grokked_and_how_it_was_read(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table(Path("log.csv"), RUN | {"val_acc": [100 * value for value in RUN["val_acc"]]})
    table(Path("log.csv"), {name: [100 * x for x in xs] if "acc" in name else xs for name, xs in RUN.items()})
    assert run(["judge", "log.csv"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "It memorised its training data at step 500. It grokked at step 2,000. It was stable" in said
    assert "accuracies are read as percent" in said


def test_json_has_every_run_of_a_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"run": name, "step": step, "val_acc": 0.1} for name in ("b", "a") for step in (0, 100)]
    Path("log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert run(["judge", "log.jsonl", "--json", "--weight-decay", "1", "--learning-rate", "0.001"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["run"], one["grokked"], one["last_step"]) for one in found] == [("a", None, 100), ("b", None, 100)]
    assert found[0]["forecast"] is None
    assert "validation loss" in found[0]["why_no_forecast"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["gone.csv"], "there is no file 'gone.csv'"),
        (["log.csv", "--columns", "validation"], "--columns takes NAME=COLUMN"),
        (["log.csv", "--columns", "qq=val_acc"], "no column 'qq'; --columns names one of step, train_accuracy, valid"),
        (["log.csv", "--columns", "val_acc=val_acc"], "there is no column 'val_acc'"),
        (["log.csv", "--columns", "norm=gone"], "'log.csv' has no column 'gone'"),
        (["log.csv", "--horizon", "0"], "--horizon must be at least 1, got 0"),
        (["log.csv", "--weight-decay", "-1"], "--weight-decay must be a finite number of at least 0, got -1.0"),
        (["log.csv", "--accuracy", "share"], "accuracies must lie in [0, 1], got 100"),
    ],
)
def test_rejects_what_cannot_be_judged(
    words: list[str], sentence: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table(Path("log.csv"), {name: [100 * x for x in xs] if "acc" in name else xs for name, xs in RUN.items()})
    rejected(["judge", *words], sentence, here, capsys)


def test_a_log_without_validation_accuracy_is_no_log_of_grokking(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table(Path("log.csv"), {"step": [0, 1], "train_loss": [2.0, float(np.float32(1.5))]})
    rejected(["judge", "log.csv"], "has no validation accuracy, by which grokking is defined", here, capsys)
