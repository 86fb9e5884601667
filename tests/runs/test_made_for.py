"""A run carries the studies it was trained for, wherever it goes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from studied_runs import BASE, LAW, MADE_FOR_BASE, OTHER, RUNS, SPEC, studies

import grokscope
from grokscope.errors import InputError
from grokscope.jobs import Stopped, prepare_plan, run_all
from grokscope.jobs.shards import shards_of
from grokscope.jobs.worker import work
from grokscope.runs import Store, keep_plan, kept_plans, run_name
from grokscope.runs.packing import finished_records, pack_records, save_records, unpack_records
from grokscope.runs.records import merge_records
from grokscope.runs.run_folder import MADE_FOR
from grokscope.specs import Membership, Plan


def test_a_plan_gives_each_run_its_studies_through_a_stop_and_a_resume(tmp_path: Path) -> None:
    plan, store = Plan(str(tmp_path), RUNS, made_for=MADE_FOR_BASE), Store(tmp_path)
    assert prepare_plan(plan) == [run_name(spec) for spec in RUNS]
    assert studies(store) == (BASE, LAW)
    with pytest.raises(Stopped):
        run_all(plan.runs, store, compiled=False, should_stop=lambda: True)
    (kept,) = kept_plans(store)
    assert kept == plan
    work(kept, lambda message: None)
    assert (studies(store), studies(store, RUNS[1])) == ((BASE, LAW), ())
    assert [row["study"] for row in grokscope.open(tmp_path).table()] == ["synchronization", None]
    assert grokscope.open(tmp_path)[run_name(SPEC)].facts()["study"] == "synchronization"


def test_a_finished_run_may_be_asked_for_by_another_study(tmp_path: Path) -> None:
    store = Store(tmp_path)
    work(Plan(str(tmp_path), RUNS, made_for=MADE_FOR_BASE), lambda message: None)
    before = (store.find(run_name(SPEC)).path / "log.jsonl").stat().st_mtime_ns
    work(Plan(str(tmp_path), (SPEC,), made_for=((OTHER, BASE),)), lambda message: None)
    assert studies(store) == (OTHER, BASE, LAW)
    assert (store.find(run_name(SPEC)).path / "log.jsonl").stat().st_mtime_ns == before
    assert store.find(run_name(SPEC)).record().summary()["study"] == "bakeoff, synchronization"
    lines = (store.find(run_name(SPEC)).path / MADE_FOR).read_bytes().splitlines()
    assert len(lines) == 3, "each once"


def test_studies_are_no_part_of_what_a_run_is(tmp_path: Path) -> None:
    plain, named = Store(tmp_path / "plain"), Store(tmp_path / "named")
    assert plain.add(SPEC).name == named.add(SPEC, [BASE]).name
    run_all([SPEC], plain, compiled=False)
    run_all([SPEC], named, compiled=False)
    files = {path.name: path.read_bytes() for path in named.find(run_name(SPEC)).path.iterdir()}
    assert files.pop(MADE_FOR)
    assert files == {path.name: path.read_bytes() for path in plain.find(run_name(SPEC)).path.iterdir()}


def test_a_torn_line_is_not_believed_and_hides_no_other(tmp_path: Path) -> None:
    folder = Store(tmp_path).add(SPEC, [BASE])
    path = folder.path / MADE_FOR
    whole = path.read_bytes()
    for cut in range(1, len(whole)):
        path.write_bytes(whole[:cut])
        assert folder.made_for == ((BASE,) if cut == len(whole) - 1 else ())
        folder.add_memberships([LAW])
        assert LAW in folder.made_for
        folder.add_memberships([BASE])
        assert folder.made_for == (BASE, LAW)


def test_a_plan_is_cut_and_stored_with_its_studies(tmp_path: Path) -> None:
    plan = Plan(str(tmp_path), RUNS, made_for=MADE_FOR_BASE)
    cut = shards_of(plan, runs_per_shard=1)
    assert [shard.plan.made_for for shard in cut] == [((BASE, LAW),), ((),)]
    assert Plan.from_json(plan.to_json()) == plan
    keep_plan(plan, Store(tmp_path))
    assert kept_plans(Store(tmp_path)) == [plan]
    with pytest.raises(InputError, match="made_for must have an entry for each of 2 runs, got 1"):
        replace(plan, made_for=((BASE,),))


def test_packed_records_keep_them_and_merging_unites_them(tmp_path: Path) -> None:
    plan = Plan(str(tmp_path / "runs"), RUNS, made_for=MADE_FOR_BASE)
    work(plan, lambda message: None)
    records = finished_records(plan)
    save_records(tmp_path / "records.gz", records)
    back = unpack_records(tmp_path / "records.gz")
    assert [record.made_for for record in back] == [(BASE, LAW), ()]
    assert pack_records(back) == (tmp_path / "records.gz").read_bytes()
    changed = replace(back[0], made_for=(OTHER,), evaluations=back[0].evaluations | {"norm": [0.0] * 3})
    merged = merge_records([*back, changed])
    assert [record.made_for for record in merged] == [(OTHER, BASE, LAW), ()]
    assert merged[0].evaluations["norm"] == [0.0] * 3, "the last of them counts"


@pytest.mark.parametrize("parts", [{"study": ""}, {"name": ""}, {"experiment": 3}])
def test_a_membership_names_study_experiment_and_run(parts: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"a membership names study, experiment and run|experiment must be a text"):
        Membership.from_json(json.dumps(BASE.to_dict() | parts))
