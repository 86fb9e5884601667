"""Evidence: records under what they were made for, each quantity computed once, nothing guessed; and its cells."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf, nan

import pytest
from planted import run

from grokscope.errors import InputError
from grokscope.runs.records import RunRecord
from grokscope.specs import Membership, RunSpec
from grokscope.stats import Estimate
from grokscope.studies import Bound, Evidence, Measured, Part, Quantity, Selection, cell
from grokscope.studies.evidence import QUICK, place_records
from grokscope.view.table import Cell

RUN = run(RunSpec(), grok=1000)
OTHER = run(RunSpec().with_seed(1), grok=1000)


def made_for(record: RunRecord, *places: tuple[str, str, str]) -> RunRecord:
    return replace(record, made_for=tuple(Membership(*place) for place in places))


def test_a_run_is_placed_in_every_experiment_it_was_made_for() -> None:
    shared = made_for(RUN, ("ours", "a", "x"), ("ours", "b", "y"), ("theirs", "a", "z"))
    found = place_records("ours", ("a", "b"), [shared])
    assert {name: list(runs) for name, runs in found.records.items()} == {"a": ["x"], "b": ["y"]}
    assert found.unplaced == ()


def test_what_matches_nothing_is_named() -> None:
    records = [made_for(RUN, ("ours", "a", "x")), made_for(OTHER, ("ours", "gone", "y")), run(RunSpec().with_seed(2))]
    found = place_records("ours", ("a",), records)
    assert found.unplaced == tuple(sorted(record.name for record in records[1:]))


def test_records_that_name_no_study_are_rejected_with_the_version_that_reads_them() -> None:
    with pytest.raises(InputError, match=r"trained for no study, or grokscope 0\.1\.0 packed them"):
        place_records("ours", ("a",), [RUN])
    assert place_records("ours", ("a",), []).records == {"a": {}}


def test_two_runs_of_one_place_are_rejected_with_their_names() -> None:
    first, second = (made_for(record, ("ours", "a", "x")) for record in (RUN, OTHER))
    with pytest.raises(InputError, match=f"{first.name} and {second.name} were both made as x of a in ours"):
        place_records("ours", ("a",), [first, second])


def test_the_quick_version_is_read_only_where_nothing_else_is_there() -> None:
    quick, full = made_for(RUN, ("ours" + QUICK, "a", "x")), made_for(OTHER, ("ours", "a", "x"))
    assert place_records("ours", ("a",), [quick]).is_quick
    both = place_records("ours", ("a",), [quick, full])
    assert not both.is_quick
    assert both.records["a"]["x"] is full
    assert both.unplaced == (quick.name,)


def test_a_quantity_is_computed_once() -> None:
    calls = []

    def count(records: Mapping[str, RunRecord]) -> Measured:
        calls.append(len(records))
        return Measured.of(len(records))

    evidence = Evidence({"a": {"x": RUN, "y": OTHER}})
    quantity = Quantity("runs", Selection(("a",)), count)
    assert evidence.measure(quantity).value == evidence.measure(replace(quantity)).value == 2
    assert calls == [2]
    assert evidence.measure(replace(quantity, runs=Selection(("a",), ("x", "z")))).missing.startswith("1 of the 2")


def test_quantities_of_other_functions_or_members_do_not_share_a_value() -> None:
    def half(records: Mapping[str, RunRecord]) -> Measured:
        return Measured.of(len(records) / 2)

    def total(members: Mapping[str, Measured]) -> Measured:
        return Measured.of(sum(member.number() for member in members.values()))

    evidence = Evidence({"a": {"x": RUN, "y": OTHER}})
    runs = Quantity("runs", Selection(("a",)), lambda records: Measured.of(len(records)))
    halves = replace(runs, function=half)
    assert [evidence.measure(one).value for one in (runs, halves)] == [2, 1]
    sums = [Quantity("sum", runs.runs, total, members={"only": one}) for one in (runs, halves)]
    assert [evidence.measure(one).value for one in sums] == [2, 1]


def test_an_unknown_experiment_is_named_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"negativ.*negatives"):
        Evidence({"negatives": {}}).experiment("negativ")


ONE = Evidence({"base": {"a": RUN}})


def _given(records: Mapping[str, RunRecord], part: Part) -> Measured:
    return Measured.of(part, n=len(records))


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (Estimate(2.0, 1.0, 3.0, 7), (2.0, (1.0, 3.0), 7)),
        (Estimate(2.0, nan, nan, 1), (2.0, None, 1)),
        (Estimate(inf, 1.0, inf, 7), ("never", (1.0, inf), 7)),
        (Bound(-300.0, 9), ("below −300", None, 9)),
        (1500, (1500, None, None)),
        ("never", ("never", None, None)),
        (nan, (None, None, None)),
        (None, (None, None, None)),
    ],
)
def test_a_cell_shows_every_kind_of_part(part: Part, shown: tuple[object, object, object]) -> None:
    quantity = Quantity("given", Selection(("base",)), _given, options={"part": part})
    found = cell(ONE, quantity, reported=1, reported_interval=(0, 2))
    assert (found.ours, found.interval, found.n) == shown
    assert (found.paper, found.paper_interval) == (1, (0, 2))
    assert found.quantity == (quantity.key if found.ours is not None else "")


def test_missing_runs_leave_an_empty_cell() -> None:
    gone = Quantity("given", Selection(("base",), ("b",)), _given, options={"part": 1})
    assert cell(ONE, gone, reported=1) == Cell(None, 1)
