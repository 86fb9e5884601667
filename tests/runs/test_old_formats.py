"""Folders, plans and records that earlier versions wrote: they open, list, resume and measure."""

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import grokscope
from grokscope.errors import InputError
from grokscope.jobs import run_all
from grokscope.runs import Measuring, RunRecord, Store, kept_plans, measure_checkpoints
from grokscope.runs.doctor import examine
from grokscope.runs.packing import unpack_records
from grokscope.specs import Membership

OLD = Path(__file__).with_name("old_formats")
"""Written by version 0.1.0 at d565413: one run, finished and interrupted at step 4, with its plan and its record."""
NAME = "add_mod5_s3"


def copied(which: str, tmp_path: Path) -> Path:
    return shutil.copytree(OLD / which, tmp_path / which)


def same(one: RunRecord, other: RunRecord) -> None:
    assert (one.spec, one.outcome.outcome) == (other.spec, other.outcome.outcome)
    for part in ("evaluations", "checkpoints"):
        mine, theirs = getattr(one, part), getattr(other, part)
        assert list(mine) == list(theirs)
        for column in mine:
            assert mine[column] == pytest.approx(theirs[column], rel=1e-4, abs=1e-4, nan_ok=True), column


def test_a_folder_opens_and_lists() -> None:
    run = grokscope.open(OLD / "finished")[NAME]
    (row,) = grokscope.open(OLD / "finished").table()
    assert (row["run"], row["task"], row["outcome"], row["study"]) == (run.name, "add_mod5", "not memorised", None)
    assert run.record.outcome.provenance["commit"] == "d565413"
    assert run.record.timeline.last == 8
    assert run.record.made_for == ()
    assert run.steps == (0, 8)
    assert not list(examine(Store(OLD / "finished")))


def test_a_checkpoint_is_measured() -> None:
    run = grokscope.open(OLD / "finished")[NAME]
    rows = [row for part in measure_checkpoints(run, ["fsd"]) for row in part]
    assert [row["fsd"] for row in rows] == pytest.approx(run.record.checkpoints["fsd"], abs=1e-6)


def test_an_interrupted_run_goes_on_and_ends_as_it_would_have(tmp_path: Path) -> None:
    store = Store(copied("interrupted", tmp_path))
    (plan,) = kept_plans(store)
    assert plan.made_for == ()
    evaluated: list[int] = []
    made_for = {plan.runs[0]: (Membership("synchronization", "base", NAME),)}
    run_all(
        plan.runs,
        store,
        measuring=Measuring.from_plan(plan),
        compiled=False,
        report=lambda message: evaluated.append(message.step),
        made_for=made_for,
    )
    assert evaluated == [6, 8], "what was there is not computed again"
    again, before = store.find(NAME).record(), Store(OLD / "finished").find(NAME).record()
    same(again, before)
    assert again.made_for == made_for[plan.runs[0]]


def test_packed_records_open_without_memberships() -> None:
    (record,) = unpack_records(OLD / "records-1.gz")
    same(replace(record), Store(OLD / "finished").find(NAME).record())
    assert record.made_for == ()


@pytest.mark.parametrize("version", ["grokscope records 3", "grokscope records 0", 2, None])
def test_records_of_another_version_are_rejected_in_a_sentence_that_names_both(version: object, tmp_path: Path) -> None:
    path = tmp_path / "records.gz"
    path.write_bytes(gzip.compress(json.dumps({"format": version}).encode()))
    with pytest.raises(InputError, match="this version reads grokscope records 1 and grokscope records 2") as caught:
        unpack_records(path)
    assert (str(version) if version else "None") in str(caught.value)


def test_a_folder_of_another_version_is_rejected_in_a_sentence_that_names_both(tmp_path: Path) -> None:
    path = copied("finished", tmp_path)
    (next(path.glob("add_*")) / "format").write_text("grokscope run 7\n")
    (row,) = grokscope.open(path).table()
    assert row["outcome"] == "damaged"
    sentence = "is of format 'grokscope run 7', which a newer grokscope wrote; this version reads 'grokscope run 1'"
    assert sentence in row["problem"]
