"""What a page shows: which runs of a folder, and which folders are rejected."""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from page_runs import EVALUATION, TINY, synthetic_records

from grokscope.errors import InputError
from grokscope.runs import RunOutcome, Store, open_runs, run_name
from grokscope.runs import index as indexing
from grokscope.runs.packing import save_records
from grokscope.specs import Membership
from grokscope.studies.sources import read_records
from grokscope.view.page import live, source_of, sources
from grokscope.view.page.rows import row_of


def test_a_run_in_several_files_is_shown_as_the_claims_judge_it(tmp_path: Path) -> None:
    first, again = synthetic_records(1, evaluations=20)[0], synthetic_records(1, evaluations=30)[0]
    save_records(tmp_path / "a.records.gz", [first])
    save_records(tmp_path / "b.records.gz", [replace(again, spec=first.spec)])
    (shown,) = source_of(tmp_path).runs
    (judged,) = read_records(tmp_path)
    assert shown.record.evaluations == judged.evaluations
    assert len(shown.record.evaluations["step"]) == len(again.evaluations["step"]) != len(first.evaluations["step"])


def test_runs_are_chosen_by_the_beginning_or_the_pattern_of_their_names(store: Path) -> None:
    for seed in (1, 12, 2):
        Store(store).add(TINY.with_seed(seed))
    (store / f".damaged-{run_name(TINY)}").mkdir()
    (store / f".damaged-{run_name(TINY)}" / "spec.json").write_text(TINY.to_json())

    def seeds(match: str) -> list[int]:
        return sorted(run.record.spec.seeds.split for run in source_of(store, match=match).runs)

    assert seeds("") == [0, 1, 2, 12], "what was set aside is hidden"
    assert seeds("add_mod7_s1") == [1, 12]
    assert seeds("*_s[02]-*") == [0, 2]
    with pytest.raises(InputError, match="no run has a name like 'mult'"):
        source_of(store, match="mult")


def test_more_runs_than_a_page_shows_are_rejected_before_they_are_read(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MOST_RUNS", 3)
    save_records(tmp_path / "a.records.gz", synthetic_records(4, evaluations=20))
    for seed in (1, 2, 3):
        Store(store).add(TINY.with_seed(seed))
    assert len(source_of(store, match="add_mod7_s1").runs) == 1
    monkeypatch.setattr(sources, "read_runs", lambda path, names: pytest.fail("it was read"))
    for folder in (store, tmp_path):
        with pytest.raises(InputError, match=r"has 4 runs to show, and a page shows at most 3: .*--match.*query"):
            source_of(folder)
    with pytest.raises(InputError, match="at most 3"):
        live.serve_live(store, 0, "", lambda address: None)


def test_a_page_reads_specs_outcomes_and_studies_from_the_index_and_agrees_with_the_list(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "PAYS_FROM", 2)
    monkeypatch.setattr(indexing, "SETTLED", 0)
    run = Store(store).add(TINY.with_seed(1), [Membership("mine", "base", "one")])
    run.append({"step": 0, **EVALUATION})
    run.finish(RunOutcome("never", trigger={"fired_at": 3}, provenance={"commit": "abc"}))
    time.sleep(0.02)  # a tick of the clock that stamps files
    direct = source_of(store)
    assert (store / indexing.INDEX).exists()
    opened: list[str] = []
    open_file = os.open

    def noted(file: Any, *args: Any, **options: Any) -> int:
        opened.append(Path(file).name)
        return open_file(file, *args, **options)

    monkeypatch.setattr(os, "open", noted)
    indexed = source_of(store)
    assert "log.jsonl" in opened
    assert not {"spec.json", "made_for.jsonl"} & {*opened}, "an outcome is, for the digests of the logs"
    for one, other in zip(indexed.runs, direct.runs, strict=True):
        for part in ("spec", "outcome", "made_for", "evaluations", "checkpoints"):
            assert repr(getattr(one.record, part)) == repr(getattr(other.record, part))  # NaN is not itself
    (found,) = [one for one in indexed.runs if one.name == run.name]
    assert (found.record.outcome.fired_at, found.record.made_for) == (3, run.made_for)
    rows, facts = [row_of(one) for one in indexed.runs], open_runs(store).facts()
    names = {"name": "run", "sync": "synchronized", "last": "last_step"}
    for name in ("name", "task", "seed", "weight_decay", "memorized", "sync", "grokked", "lead", "last"):
        assert [row.get(name) for row in rows] == [row[names.get(name, name)] for row in facts]


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({}, "there is nothing to show in"),
        ({"a.records.gz": b"no"}, "cannot be read"),
        ({"claims.json": b"{}"}, "must hold a list"),
        ({"claims.json": b"[" * 100_000}, "is not valid JSON"),
        ({"provenance.json": b"[]"}, "must hold an object"),
    ],
)
def test_folders_that_cannot_be_used_are_rejected(files: dict[str, bytes], sentence: str, store: Path) -> None:
    folder = store if files and "records" not in next(iter(files)) else store.parent
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        source_of(folder)
