"""Runs as frames of pandas and polars: every row and value of the table, and types that the values do not change."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import grokscope
from grokscope.errors import InputError
from grokscope.runs import RunOutcome, Store
from grokscope.runs.runs import with_settings
from grokscope.specs import RunSpec
from grokscope.view.frames import pandas_frame, polars_frame

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run that grokked, and one that has not begun."""
    store = Store(tmp_path)
    ended = store.add(RunSpec())
    for step, validation in ((0, 0.0), (300, 0.1), (4000, 1.0)):
        ended.append({"step": step, "train_accuracy": 1.0, "validation_accuracy": validation, "fsd": 0.9, "norm": 1.0})
    ended.finish(RunOutcome("grokked"))
    store.add(RunSpec().with_seed(1))
    return tmp_path


def rows_of_pandas(frame: Any) -> list[dict[str, Any]]:
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def test_both_frames_hold_what_the_facts_say(folder: Path) -> None:
    runs = grokscope.open(folder)
    expected = [
        {name: value for name, value in facts.items() if name not in ("spec", "details", "made_for")}
        for facts in with_settings(runs.facts())
    ]
    assert [row["grokked"] for row in expected].count(4000) == 1
    assert rows_of_pandas(runs.to_pandas()) == runs.to_polars().to_dicts() == expected
    assert list(runs.to_pandas().columns) == runs.to_polars().columns == list(runs.columns())


def test_what_a_grid_varies_is_a_column(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for rate in (0.001, 0.01):
        store.add(replace(RunSpec(), training=replace(RunSpec().training, learning_rate=rate)))
    store.add(RunSpec().with_seed(1))
    frame = grokscope.open(tmp_path).to_pandas()
    assert sorted(frame["learning_rate"]) == [0.001, 0.001, 0.01]
    assert set(frame["batch_size"]) == {512}
    assert "seeds.split" in frame
    assert "trigger.signal" not in frame


def test_types_are_those_of_the_columns_whatever_is_known(folder: Path) -> None:
    runs = grokscope.open(folder)
    for chosen in (runs, runs.where(grokked=None), runs[:0]):
        kinds = chosen.to_pandas().dtypes.astype(str).to_dict()
        named = ("grokked", "lead", "fork_step", "weight_decay", "parent", "study")
        assert [kinds[name] for name in named] == ["Int64", "Int64", "Int64", "float64", "string", "string"]
        schema = chosen.to_polars().schema
        assert [schema[name] for name in named] == [*[polars.Int64] * 3, polars.Float64, polars.String, polars.String]


def test_whole_numbers_beside_others_are_numbers() -> None:
    table = {"value": [1, 0.5, None]}
    assert pandas_frame(table)["value"].tolist()[:2] == polars_frame(table)["value"].to_list()[:2] == [1.0, 0.5]
    assert polars_frame(table)["value"].to_list()[2] is None


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_without_the_library_one_sentence_says_how_to_install_it(
    library: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        InputError, match=rf"^this needs {library}; install it with: pip install 'grokscope\[frames\]'$"
    ):
        getattr(grokscope.open(folder), f"to_{library}")()
