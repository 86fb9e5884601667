"""The embedded data: exact where they fit, and complete."""

import json
from pathlib import Path

from page_runs import EVALUATION, TINY, columns, facts, synthetic_records

from grokscope.runs import Store, run_name
from grokscope.runs.packing import save_records
from grokscope.view.page import source_of
from grokscope.view.page.embedded import embedded_data


def test_columns_come_back_exactly_where_they_fit(tmp_path: Path) -> None:
    records = synthetic_records(4, evaluations=20)
    save_records(tmp_path / "a.records.gz", records)
    source = source_of(tmp_path)
    found = columns(embedded_data(source))
    for name, values in found.items():
        assert values.tolist() == [x for run in source.runs for x in run.record.evaluations[name]], name


def test_unfinished_and_planned_runs_are_shown_as_far_as_they_are(store: Path) -> None:
    waiting = Store(store).add(TINY.with_seed(1))
    begun = Store(store).add(TINY.with_seed(2))
    begun.append({"step": 0, **EVALUATION})
    begun.append({"step": 2, **EVALUATION, "validation_accuracy": 0.99})
    rows = {row["name"]: row for row in facts(embedded_data(source_of(store)))["rows"]}
    assert rows[waiting.name]["outcome"] == "unfinished"
    assert rows[waiting.name]["last"] is None
    assert rows[begun.name]["outcome"] == "unfinished, grokked"
    assert (rows[begun.name]["last"], rows[begun.name]["grokked"]) == (2, 2)


def test_a_studys_message_is_embedded_as_it_was_written(tmp_path: Path) -> None:
    message = [{"topic": "What holds", "text": "It groks.", "claims": ["groks"]}]
    save_records(tmp_path / "a.records.gz", synthetic_records(2, evaluations=20))
    assert facts(embedded_data(source_of(tmp_path)))["message"] == []
    (tmp_path / "message.json").write_text(json.dumps([*message, "no sentence"]))
    assert facts(embedded_data(source_of(tmp_path)))["message"] == message


def test_what_is_damaged_is_left_out_and_named(store: Path) -> None:
    broken = store / "broken"
    broken.mkdir()
    (broken / "spec.json").write_text("{")
    source = source_of(store)
    assert [run.name for run in source.runs] == [run_name(TINY)]
    assert "'broken' is left out" in source.problems[0]
    assert facts(embedded_data(source))["method"]["problems"] == list(source.problems)
