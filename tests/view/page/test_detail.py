"""Runs shown in detail."""

from dataclasses import replace
from pathlib import Path

import pytest
from page_runs import TINY, synthetic_records

from grokscope.errors import InputError
from grokscope.runs import Store
from grokscope.runs.packing import save_records
from grokscope.view.page import detail, source_of
from grokscope.view.page.detail import detail_of
from grokscope.view.page.embedded import embedded_data


def test_weights_that_are_gone_cannot_be_shown_in_detail(tmp_path: Path) -> None:
    save_records(tmp_path / "a.records.gz", synthetic_records(1))
    source = source_of(tmp_path)
    with pytest.raises(InputError, match="--detail needs stored weights"):
        embedded_data(source, [source.runs[0].name])


def test_a_word_that_names_several_runs_is_answered_with_what_tells_them_apart(store: Path) -> None:
    Store(store).add(replace(TINY, training=replace(TINY.training, weight_decay=3.0)))
    with pytest.raises(
        InputError, match=r"names 2 runs, expected one: add_mod7_s0-\w+ \(λ = [13]\), add_mod7_s0-\w+ \(λ = [13]\)$"
    ):
        embedded_data(source_of(store), ["add_mod7_s0"])


def test_formulas_have_their_strongest_waves_and_what_these_explain(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detail, "TOP_WAVES", 1)
    (run,) = source_of(store).runs
    assert run.stored is not None
    rows = detail_of(run.stored)["formulas"]
    assert sorted(row["neuron"] for row in rows) == list(range(TINY.architecture.mlp_width))
    assert [row["amplitude"] for row in rows] == sorted((row["amplitude"] for row in rows), reverse=True)
    for row in rows:
        assert row["text"].startswith(row["strongest"])
        assert row["strongest"].count("cos") == 1
        assert row["text"].count("cos") == 1 + row["left_out"]
        assert row["share"] <= row["r_squared"] + 1e-12
        assert (row["left_out"] > 0) == (row["share"] < row["r_squared"] - 1e-12)
    assert any(row["left_out"] for row in rows)
