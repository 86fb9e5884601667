import gzip
import json
from pathlib import Path

import pytest

from grokscope.errors import InputError
from grokscope.runs.foreign_logs.text_rows import BAD_LINE, json_rows, table_rows

ROWS = [{"step": step, "val_acc": step / 1000} for step in range(0, 1000, 100)]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}
LINES = "\n".join(map(json.dumps, ROWS))


@pytest.mark.parametrize(
    "text",
    [
        LINES,
        LINES + "\n",
        LINES.replace("\n", "\r\n"),
        LINES.replace("\n", "\t0123abcd\n"),
        json.dumps(ROWS),
        json.dumps(ROWS, indent=1),
        json.dumps(COLUMNS),
        json.dumps({"log_history": ROWS, "epoch": 3}, indent=1),
        json.dumps({"name": "x", "history": COLUMNS}),
    ],
)
def test_the_same_rows_in_every_form_of_json(text: str, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(text)
    assert [*json_rows(path)] == ROWS


def test_objects_in_a_row_are_groups_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [
        {"step": step, "metrics": {"train": {"accuracy": 1.0}, "test": {"loss": 0.5}, "none": {}}} for step in (0, 1)
    ]
    path.write_text("\n".join(map(json.dumps, [*rows, {"metrics": {}}])))
    flat = [{"step": step, "metrics/train/accuracy": 1.0, "metrics/test/loss": 0.5} for step in (0, 1)]
    assert [*json_rows(path)] == [*flat, BAD_LINE]


def test_a_long_list_is_decoded_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    rows = [{"step": step, "note": "x" * 50} for step in range(5000)]
    path.write_text(json.dumps(rows))
    assert [*json_rows(path)] == rows
    path.write_text(json.dumps(rows)[:-30])
    assert [*json_rows(path)] == [*rows[:-1], BAD_LINE]


@pytest.mark.parametrize("apart", [",", ";", "\t"])
def test_tables_with_any_separator_packed_or_not(apart: str, tmp_path: Path) -> None:
    text = "\n".join([apart.join(["step", '"val acc"']), apart.join(["0", "0.5"]), "", apart.join(["1"])])
    plain, packed = tmp_path / "log.csv", tmp_path / "log.csv.gz"
    plain.write_text("\ufeff" + text)
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (plain, packed):
        assert [*table_rows(path)] == [{"step": "0", "val acc": "0.5"}, BAD_LINE]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("a,a\n1,2\n", "two columns 'a'"),
        ("1,2\n3,4\n", "needs a first line with the names"),
        ("a,b\n" + "x" * 200_000 + ",1\n", "cannot be read as a table"),
    ],
)
def test_rejects_what_is_no_table(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        [*table_rows(path)]


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "is empty"), ("hello", "is not valid JSON"), ("3", "rows or columns"), ("[1, 2]", "must hold objects"),
     ('{"a": [1], "b": [1, 2]}', "not of one length"), ("[" * 2_000_000, "not a JSON list")],
)  # fmt: skip
def test_rejects_what_is_no_log(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        [*json_rows(path)]
    (tmp_path / "half.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n")[:-9])
    with pytest.raises(InputError, match="cannot be read"):
        [*table_rows(tmp_path / "half.csv.gz")]
