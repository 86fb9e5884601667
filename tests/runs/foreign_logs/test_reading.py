import json
import random
import tracemalloc
from math import isnan
from pathlib import Path

import pytest
from event_files import event_file, scalar

from grokscope.errors import InputError
from grokscope.runs.foreign_logs import read_foreign_logs

ROWS = [
    {"step": step, "train_acc": min(1.0, step / 400), "val_acc": float(step >= 1000), "loss": 1 / (1 + step)}
    for step in range(0, 2001, 100)
]


def as_table(rows: list[dict[str, object]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join("" if row.get(name) is None else str(row[name]) for name in names) for row in rows]
    return "\n".join([",".join(names), *lines])


def read(text: str, tmp_path: Path, **options):
    path = tmp_path / "log.csv"
    path.write_text(text)
    return read_foreign_logs(path, **options)


def test_the_order_of_rows_changes_nothing(tmp_path: Path) -> None:
    shuffled = random.Random(3).sample(ROWS, len(ROWS))
    first, second = (read(as_table(rows), tmp_path)[0] for rows in (ROWS, shuffled))
    assert first.columns == second.columns
    assert first.columns["validation_accuracy"] == [row["val_acc"] for row in ROWS]


def test_every_format_gives_the_same_log(tmp_path: Path) -> None:
    [table] = read(as_table(ROWS), tmp_path)
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    assert read_foreign_logs(path)[0].columns == table.columns
    folder = tmp_path / "board"
    folder.mkdir()
    events = [(row["step"], scalar("train/acc", row["train_acc"]) + scalar("val/acc", row["val_acc"])) for row in ROWS]
    (folder / "events.out.tfevents.1.a").write_bytes(event_file(events[:9]))
    (folder / "events.out.tfevents.2.a").write_bytes(event_file(events[9:]))
    [board] = read_foreign_logs(folder)
    for name in ("step", "train_accuracy", "validation_accuracy"):
        assert board.columns[name] == pytest.approx(table.columns[name])


@pytest.mark.parametrize("bad", ["x,y,z,u", "300,1.0,high,0.1", "late,1.0,0.5,0.1"])
def test_a_line_with_text_for_a_number_is_left_out_whole_and_counted(bad: str, tmp_path: Path) -> None:
    [whole] = read(as_table(ROWS), tmp_path)
    [found] = read(f"{as_table(ROWS)}\n{bad}", tmp_path)
    assert found.columns == whole.columns
    [note] = set(found.notes) - set(whole.notes)
    assert note.startswith("1 line that could not be read left out (the column ")


def test_values_of_at_most_1_among_percents_are_counted(tmp_path: Path) -> None:
    [log] = read("step,val_acc\n0,0\n1,0.99\n2,1.0\n3,100\n", tmp_path)
    assert log.notes == ("accuracies are read as percent, also 2 values of at most 1",)


def test_a_folder_of_our_own_runs_names_the_command_that_reads_them(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "spec.json").write_text("{}")
    with pytest.raises(InputError, match="grokscope show "):
        read_foreign_logs(tmp_path)


def test_rows_of_one_step_are_joined_and_of_two_values_the_last_counts(tmp_path: Path) -> None:
    rows = [{"_step": 0, "train_acc": 0.1}, {"_step": 0, "val_acc": 0.2}, {"_step": 5, "val_acc": 0.3}]
    rows += [{"_step": 5, "val_acc": 0.4}]
    [log] = read(as_table(rows), tmp_path)
    assert log.columns["validation_accuracy"] == [0.2, 0.4]
    assert isnan(log.columns["train_accuracy"][1])
    assert "1 value given anew for the same step: the last counts" in log.notes


def test_an_export_with_several_runs_has_a_log_for_each(tmp_path: Path) -> None:
    text = "Step,one - val_acc,one - val_acc__MIN,two - val_acc\n0,0.1,0,0.3\n1,0.2,0,\n"
    logs = read(text, tmp_path)
    assert [(log.name, log.columns) for log in logs] == [
        ("one", {"step": [0, 1], "validation_accuracy": [0.1, 0.2]}),
        ("two", {"step": [0], "validation_accuracy": [0.3]}),
    ]


def test_percent_is_told_from_shares_by_any_of_the_accuracies(tmp_path: Path) -> None:
    [log] = read("step,train_acc,val_acc\n0,100,0.9\n", tmp_path)
    assert log.columns["validation_accuracy"] == pytest.approx([0.009])
    [log] = read("step,train_acc,val_acc\n0,1.0,0.9\n", tmp_path)
    assert log.columns["validation_accuracy"] == [0.9]
    [log] = read("step,train_acc,val_acc\n0,1.0,0.9\n", tmp_path, unit="percent")
    assert log.columns["train_accuracy"] == [0.01]


def test_what_was_decided_is_noted(tmp_path: Path) -> None:
    [log] = read("epoch,val_acc,test_acc\n0,0.1,0.5\n1,0.2,0.5\n,0.2,0.5\n1\n", tmp_path)
    assert log.columns["validation_accuracy"] == [0.1, 0.2]
    assert log.notes == (
        "validation_accuracy is read from 'val_acc', not from 'test_acc'",
        "1 line that could not be read left out",
        "1 row without a step left out",
        "'epoch' is read as steps: one step per epoch",
    )
    [log] = read("val_acc\n0.1\n0.2\n", tmp_path)
    assert log.columns["step"] == [0, 1]
    assert log.notes == ("no column counts steps: rows are numbered from 0",)


def test_a_loss_that_stays_no_number_is_a_failure_and_one_that_recovers_is_not(tmp_path: Path) -> None:
    [log] = read("step,val_acc,loss\n0,0,1\n1,0,nan\n2,0,1\n3,0,nan\n4,0,inf\n", tmp_path)
    assert log.failed_at == 3
    [log] = read("step,val_acc,loss\n0,0,1\n1,0,nan\n2,0,1\n", tmp_path)
    assert log.failed_at is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "has no column that can be recognised; .* it has 'a', 'b'"),
        ("step,val_acc\n", "has no rows"),
        ("step,val_acc\n-1,0.5\n", "at least 0; the column 'step' holds another, got '-1'"),
        ("step,val_acc\n1.5,0.5\n", "got '1.5'"),
        ("step,val_acc\n1e99,0.5\n", "got '1e99'"),
        ("step,val_acc\nnan,0.5\n", "got 'nan'"),
        (
            "step,val_acc\n1,high\n",
            "1 line of 1 of .* cannot be read: the column 'val_acc' must hold numbers, got 'high'",
        ),
        ("step;val_acc\n1;0,5\n", "'val_acc' must have decimal points, not commas, got '0,5'"),
        ("step,val_acc\n1,-0.5\n", r"\[0, 1\], got -0.5"),
        ("step,val_acc\n1,101\n", r"\[0, 100\], got 101"),
        ("step,val_acc\n1\n2\n3,0.1\n", "2 lines of 3 of .* cannot be read"),
    ],
)
def test_rejects_what_is_no_log(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        read(text, tmp_path)


def test_a_long_log_is_thinned_in_bounded_memory_and_its_crossings_are_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grokscope.runs.foreign_logs.reading.MOST_VALUES", 2000)
    path = tmp_path / "log.csv"

    def peak(rows: int) -> int:
        lines = (f"{step},{0.001 * step / rows:.6f},{float(step >= rows // 3)}\n" for step in range(rows))
        path.write_text("step,train_acc,val_acc\n" + "".join(lines))
        tracemalloc.start()
        [log] = read_foreign_logs(path)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        grokked = log.columns["step"][log.columns["validation_accuracy"].index(1.0)]
        assert grokked == rows // 3
        assert len(log.columns["step"]) < 3000
        assert any(note.startswith("thinned to one evaluation in") for note in log.notes)
        return used

    short, long = peak(20_000), peak(100_000)
    assert long < 1.3 * short
