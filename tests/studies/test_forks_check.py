"""Forks held against their parents, trained for real: equal where nothing was changed, and a changed bit is seen."""

from collections.abc import Callable
from dataclasses import replace
from math import isnan, nan
from pathlib import Path

import pytest

from grokscope.jobs import Stopped, run_all
from grokscope.runs import Store
from grokscope.runs.measuring import Measuring
from grokscope.runs.packing import save_records, unpack_records
from grokscope.runs.records import RunRecord
from grokscope.specs import Architecture, Cadence, Fork, NormHold, Plan, RunSpec, Training
from grokscope.studies.forks_check import check_forks
from grokscope.studies.sources import stored_records
from grokscope.view import collection_files
from grokscope.view.collection import open_collection

PARENT = RunSpec(
    "add_mod7",
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=32),
    training=Training(steps=16, batch_size=16),
    checkpoints=Cadence(4, at=(8,)),
    measurements=Cadence(2),
)
SHORT = replace(PARENT.training, steps=12)


def fork(**changes: object) -> RunSpec:
    options = {name: changes.pop(name) for name in ("scale", "moments") if name in changes}
    return replace(PARENT, fork=Fork(PARENT.content_hash, 8, **options), **{"training": SHORT} | changes)


CONTROLS = {
    "short": fork(checkpoints=Cadence(4)),
    "whole": fork(training=PARENT.training),
    "idle hold": fork(norm_hold=NormHold(start=8, level=0.01, side="at_least")),
}
OTHERS = {
    "decay": fork(training=replace(SHORT, weight_decay=3.0)),
    "order": replace(fork(), seeds=replace(PARENT.seeds, data_order=9)),
    "held": fork(norm_hold=NormHold(start=8)),
    "tempered": fork(architecture=replace(PARENT.architecture, temperature=2.0)),  # its losses are others at once
}
NEITHER = {"scaled": fork(scale=0.5), "reset": fork(moments="reset")}


def trained(path: Path, *runs: RunSpec, should_stop: Callable[[], bool] = lambda: False) -> list[RunRecord]:
    """The records of runs that are trained with signals; what is asked to stop is continued until all have ended."""
    store, plan = Store(path), Plan(str(path), runs, signals=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda descriptor: None)
        while True:
            try:
                run_all(runs, store, compiled=False, measuring=Measuring.from_plan(plan), should_stop=should_stop)
                return stored_records(store)
            except Stopped:
                continue


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[RunRecord]:
    return trained(tmp_path_factory.mktemp("forks"), PARENT, *CONTROLS.values(), *OTHERS.values(), *NEITHER.values())


def test_every_fork_begins_as_its_parent_is_and_controls_stay_equal(records: list[RunRecord]) -> None:
    found = check_forks(records)
    assert (found.forks, found.begin_equal) == (7, 7)
    assert (found.controls, found.equal, found.differing, found.without_parent) == (3, 3, (), ())
    assert found.fingerprints
    assert found.equal_weights == 3
    assert "3 of 3 end with its weights (SHA-256)" in str(found)
    assert "3 of 3 control forks equal their parent in every evaluation: log and fingerprints" in str(found)


def test_the_packed_records_say_the_same(records: list[RunRecord], tmp_path: Path) -> None:
    save_records(tmp_path / "all.records.gz", records)
    assert check_forks(unpack_records(tmp_path / "all.records.gz")).to_dict() == check_forks(records).to_dict()


def test_a_collection_says_the_same_where_it_leaves_sparse_columns_out(
    records: list[RunRecord], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(collection_files, "BEGINNING", 4)  # of runs of 16 steps with forks at 8
    monkeypatch.setattr(collection_files, "EVERY", 8)
    collection_files.write_collection(records, tmp_path, "forks", "Forks", ("norm_", "update_", "fingerprint"))
    again = open_collection(tmp_path).records()
    short = next(one for one in again if one.spec == CONTROLS["short"])
    assert [isnan(value) for value in short.evaluations["fingerprint"]] == [False, True, True]
    assert check_forks(again).to_dict() == check_forks(sorted(records, key=order_of(again))).to_dict()


def order_of(records: list[RunRecord]) -> Callable[[RunRecord], int]:
    """The place of a record among others, which a collection sorts by cell."""
    names = [record.name for record in records]
    return lambda record: names.index(record.name)


def test_a_column_that_is_nowhere_defined_in_a_fork_may_be_left_out(records: list[RunRecord]) -> None:
    control = next(one for one in records if one.spec == CONTROLS["short"])
    parent = next(one for one in records if one.spec == PARENT)
    fsd = [0.5 if step < 8 else nan for step in parent.evaluations["step"]]
    undefined = replace(parent, evaluations=parent.evaluations | {"fsd": fsd})
    without = {name: values for name, values in control.evaluations.items() if name != "fsd"}
    assert check_forks([undefined, replace(control, evaluations=without)]).equal == 1
    assert check_forks([parent, replace(control, evaluations=without)]).equal == 0


@pytest.mark.parametrize("column", ["fingerprint", "norm", "train_loss"])
@pytest.mark.parametrize("place", [0, 1, -1])
def test_one_value_that_differs_is_named(column: str, place: int, records: list[RunRecord]) -> None:
    control = next(one for one in records if one.spec == CONTROLS["short"])
    values = list(control.evaluations[column])
    values[place] += 1 if column == "fingerprint" else 1e-7
    altered = replace(control, evaluations={**control.evaluations, column: values})
    found = check_forks([altered if one is control else one for one in records])
    assert (found.equal, found.differing) == (2, (control.name,))
    assert found.begin_equal == (6 if place == 0 else 7)
    assert f"1 differ: {control.name}" in str(found)


def test_weights_that_differ_at_the_end_are_named_and_missing_digests_count_as_not_compared(
    records: list[RunRecord],
) -> None:
    control = next(one for one in records if one.spec == CONTROLS["short"])
    assert control.outcome.weights == {"12": next(one for one in records if one.spec == PARENT).outcome.weights["12"]}
    for digests, equal, differing in (({"12": "0" * 64}, 2, (control.name,)), (None, 2, ())):
        altered = replace(control, outcome=replace(control.outcome, weights=digests))
        found = check_forks([altered if one is control else one for one in records])
        assert (found.equal, found.equal_weights, found.differing) == (3, equal, differing)


def test_digests_of_steps_already_passed_survive_a_stop(records: list[RunRecord], tmp_path: Path) -> None:
    """The parent is stopped again and again, also between step 12, where its forks end, and its own end at 16."""
    calls, control = iter(range(1000)), CONTROLS["short"]
    stopped = trained(tmp_path, PARENT, control, should_stop=lambda: next(calls) % 2 == 1)
    assert next(calls) > 12
    weights = {one.spec: one.outcome.weights for one in records}
    assert {one.spec: one.outcome.weights for one in stopped} == {spec: weights[spec] for spec in (PARENT, control)}
    assert {*weights[PARENT]} == {"12", "16"}
    assert check_forks(stopped).equal_weights == 1


def test_a_fork_without_its_parent_is_named(records: list[RunRecord]) -> None:
    found = check_forks([one for one in records if one.spec.fork is not None])
    assert (found.forks, found.controls) == (0, 0)
    assert len(found.without_parent) == 9


def test_a_log_that_ends_early_is_not_equal(records: list[RunRecord]) -> None:
    control = next(one for one in records if one.spec == CONTROLS["short"])
    parent = next(one for one in records if one.spec == PARENT)
    cut = {name: values[:-3] for name, values in parent.evaluations.items()}
    found = check_forks([replace(parent, evaluations=cut), control])
    assert (found.controls, found.equal) == (1, 0)
