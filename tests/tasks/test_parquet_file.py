"""A Parquet file of rows that is not trusted."""

import io
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from grokscope.errors import InputError
from grokscope.tasks import parquet_file
from grokscope.tasks.parquet_file import parquet_arrays
from grokscope.tasks.row_arrays import task_of_arrays

pa = pytest.importorskip("pyarrow", reason="Parquet files need: pip install 'grokscope[data]'")
pq = pytest.importorskip("pyarrow.parquet")

PAIRS = [[a, b] for a in range(4) for b in range(4)]
SUMS = [(a + b) % 4 for a, b in PAIRS]


def parquet(columns: Any, metadata: dict[Any, Any] | None = None, **options: Any) -> bytes:
    content = io.BytesIO()
    table = pa.table(columns) if isinstance(columns, dict) else columns
    pq.write_table(table.replace_schema_metadata(metadata) if metadata else table, content, **options)
    return content.getvalue()


def rows(**columns: Any) -> dict[str, Any]:
    return {"tokens": PAIRS, "answer": SUMS, **columns}


@pytest.mark.parametrize("kind", ["list", "large_list", "fixed"])
@pytest.mark.parametrize("row_group_size", [3, None])
def test_lists_of_every_kind_are_rows(kind: str, row_group_size: int | None) -> None:
    types = {"list": pa.list_(pa.int16()), "large_list": pa.large_list(pa.int64()), "fixed": pa.list_(pa.int32(), 2)}
    content = parquet(rows(tokens=pa.array(PAIRS, types[kind])), row_group_size=row_group_size)
    found = parquet_arrays(content, "mine")
    assert found["tokens"].tolist() == PAIRS
    assert found["answers"].tolist() == SUMS


def test_vectors_settings_and_groups_are_read() -> None:
    groups = ["drawn"] * 10 + ["train"] * 2 + ["validation"] * 2 + ["far"] * 2
    columns = {"vectors": np.array(PAIRS, dtype=float).tolist(), "answer": PAIRS, "group": groups, "note": ["x"] * 16}
    columns["answer"] = pa.array([[float(a), float(b)] for a, b in PAIRS])
    found = parquet_arrays(parquet(columns, {"success": "0.25", "author": "me"}), "mine")
    assert set(found) == {"vectors", "answers", "success", "train", "validation", "held_out_far"}
    task = task_of_arrays("mine", "", found)
    assert (task.is_real, task.classes, task.success, task.held_out) == (True, 2, 0.25, ("far",))
    sizes = {group.name: len(group.rows) for group in task.row_groups}
    assert sizes == {"drawn": 10, "train": 2, "validation": 2, "far": 2}
    whole = parquet_arrays(parquet(rows(), {"classes": "6", "vocabulary": "9"}), "mine")
    assert (whole["classes"], whole["vocabulary"]) == (6, 9)


GOOD = parquet(rows())
MANY = parquet({"tokens": [[0, 1]] * 65, "answer": [0] * 65, "group": [f"far{i}" for i in range(65)]})
TWICE = parquet(pa.Table.from_arrays([pa.array(PAIRS), pa.array(SUMS), pa.array(SUMS)], ["tokens", "answer", "answer"]))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "mine is not a Parquet file of rows"),
        (b"PAR1", "mine is not a Parquet file of rows"),
        (GOOD[:-9], "mine is not a Parquet file of rows"),
        (GOOD[: len(GOOD) // 2], "mine is not a Parquet file of rows"),
        (b"\x80\x04K\x01.", "mine is not a Parquet file of rows"),
        (parquet({"tokens": PAIRS}), "mine needs a column answer, got ['tokens']"),
        (parquet(rows(tokens=[[0], *PAIRS[1:]])), "the tokens of mine must have rows of one length: they are ragged"),
        (parquet(rows(tokens=[None, *PAIRS[1:]])), "the tokens of mine must have a value in every row"),
        (parquet(rows(tokens=[[0, None], *PAIRS[1:]])), "the tokens of mine must have a value in every place"),
        (parquet(rows(answer=[None, *SUMS[1:]])), "the answer of mine must have a value in every row"),
        (parquet(rows(tokens=[[["a"]]] * 16)), "the tokens of mine must be numbers, or lists of numbers, got 'list<"),
        (parquet(rows(tokens=[[[1, 2]]] * 16)), "the tokens of mine must be numbers, or lists of numbers, got 'list<"),
        (parquet(rows(tokens=[{"a": 1}] * 16)), "the tokens of mine must be numbers, or lists of numbers, got 'struct"),
        (parquet(rows(tokens=["01"] * 16)), "the tokens of mine must be numbers, or lists of numbers, got 'string'"),
        (parquet(rows(answer=["a"] * 16)), "the answer of mine must be numbers, or lists of numbers, got 'string'"),
        (parquet(rows(answer=pa.array(SUMS, pa.timestamp("s")))), "the answer of mine must be numbers, or lists"),
        (parquet(rows(answer=pa.nulls(16))), "the answer of mine must"),
        (parquet(rows(group=list(range(16)))), "the group of mine must be a text in every row"),
        (parquet(rows(group=["far"] * 15 + [None])), "the group of mine must be a text in every row"),
        (parquet(rows(), {"classes": "many"}), "classes in the metadata of mine must be numbers, got {'classes'"),
        (parquet(rows(), {b"classes": b"\xff"}), "classes in the metadata of mine must be numbers, got {'classes': "),
        (parquet(rows(tokens=pa.array([[]] * 16, pa.list_(pa.int8())))), "must have at least one number in every row"),
        (MANY, "mine may have at most 64 groups, got 65"),
        (TWICE, "mine is not a Parquet file of rows: "),
        (parquet(rows(), {"success": "0.1x"}), "success in the metadata of mine must be numbers"),
        (parquet({"tokens": pa.array([], pa.list_(pa.int8())), "answer": pa.array([], pa.int8())}), "mine has no row"),
    ],
)  # fmt: skip
def test_bad_files_are_one_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(InputError) as rejection:
        parquet_arrays(content, "mine")
    assert sentence in str(rejection.value)
    assert str(rejection.value).isprintable()
    assert len(str(rejection.value)) < 400


@pytest.mark.parametrize("place", range(0, len(GOOD), 41))
def test_a_damaged_byte_is_one_sentence_or_another_array(place: int) -> None:
    damaged = bytearray(GOOD)
    damaged[place] ^= 0xFF
    with suppress(InputError):  # and nothing else
        task_of_arrays("mine", "", parquet_arrays(bytes(damaged), "mine"))


def test_what_the_metadata_says_is_checked_before_a_column_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def unread(*args: Any, **options: Any) -> None:
        raise AssertionError("a column was read")

    monkeypatch.setattr(pq.ParquetFile, "read", unread)
    for name, sentence in {
        "MAX_ROWS": "mine may have at most 15 rows, got 16",
        "MAX_NUMBERS": "mine may hold at most 15 numbers, got 48",
    }.items():
        with monkeypatch.context() as patch:
            patch.setattr(parquet_file, name, 15)
            with pytest.raises(InputError, match=sentence):
                parquet_arrays(GOOD, "mine")


def test_metadata_of_others_may_be_anything() -> None:
    assert set(parquet_arrays(parquet(rows(), {b"\xff\xfe": b"\x80"}), "mine")) == {"tokens", "answers"}


@pytest.mark.parametrize("row_group_size", [3, None])
@pytest.mark.parametrize("is_coded", [False, True])
def test_groups_are_masks_however_they_are_stored(row_group_size: int | None, is_coded: bool) -> None:
    names = ["far", "drawn", "train", "near"] * 4
    column = pa.array(names).dictionary_encode() if is_coded else pa.array(names)
    found = parquet_arrays(parquet(rows(group=column), row_group_size=row_group_size), "mine")
    masks = {name.removeprefix("held_out_"): mask for name, mask in found.items() if name not in ("tokens", "answers")}
    assert {name: np.flatnonzero(mask).tolist() for name, mask in masks.items()} == {
        name: [row for row, other in enumerate(names) if other == name] for name in ("far", "near", "train")
    }


def test_a_long_name_of_very_many_rows_is_unpacked_once() -> None:
    """A file of kilobytes whose column of texts would be gigabytes."""
    many, long = 2**15, "x" * 2**17
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(many, dtype=np.int32)), [long])
    content = parquet({"tokens": pa.array([[0, 1]] * many), "answer": np.arange(many) % 2, "group": column})
    assert len(content) < 2**20
    before = pa.default_memory_pool().max_memory() or 0
    found = parquet_arrays(content, "mine")
    assert (pa.default_memory_pool().max_memory() or 0) - before < 2**28
    with pytest.raises(InputError, match="a group of rows of mine needs a name of lower-case letters"):
        task_of_arrays("mine", "", found)


def test_a_column_that_nothing_asks_for_is_not_read() -> None:
    content = parquet(rows(note=[{"deep": [["text"]]}] * 16))
    assert set(parquet_arrays(content, "mine")) == {"tokens", "answers"}


def test_a_file_that_unpacks_to_far_more_than_it_has_is_rejected_by_its_metadata() -> None:
    bomb = parquet({"tokens": pa.array(np.zeros(2**21, dtype=np.int64)), "answer": np.zeros(2**21)}, compression="zstd")
    assert len(bomb) < 2**17
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_file, "MAX_NUMBERS", 2**21)
        with pytest.raises(InputError, match="mine may hold at most 2,097,152 numbers, got 4194304"):
            parquet_arrays(bomb, "mine")


def test_without_pyarrow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(parquet_file, "import_module", missing)
    with pytest.raises(InputError, match=r"a Parquet file needs pyarrow; install it with: pip"):
        parquet_arrays(GOOD, "mine")
