"""Quantities: computed of the chosen runs at their cadence, and named by all that decides them."""

from collections.abc import Mapping
from dataclasses import replace
from math import isnan

from planted import run

from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.stats import Estimate
from grokscope.studies import Bound, Measured, Quantity, Selection

RECORDS = {"base": {"a": run(RunSpec(), grok=1300), "b": run(RunSpec().with_seed(1), grok=2100)}}


def _latest(records: Mapping[str, RunRecord], more: int = 0) -> Measured:
    steps = [record.timeline.grokked or 0 for record in records.values()]
    return Measured.of(max(steps) + more, n=len(steps))


def _earliest(records: Mapping[str, RunRecord], more: int = 0) -> Measured:
    return Measured.of(min(record.timeline.grokked or 0 for record in records.values()) + more)


LATEST = Quantity("latest grok step", Selection(("base",)), _latest)


def test_runs_cadence_and_options_decide_the_value() -> None:
    assert LATEST.compute(RECORDS).value == 2100
    assert replace(LATEST, cadence=500).compute(RECORDS).value == 2500
    assert replace(LATEST, options={"more": 1}).compute(RECORDS).value == 2101
    assert replace(LATEST, runs=Selection(("base",), ("a",))).compute(RECORDS).value == 1300


def test_whatever_decides_the_value_is_in_its_key_or_its_data() -> None:
    others = [
        replace(LATEST, cadence=500),
        replace(LATEST, options={"more": 1}),
        replace(LATEST, runs=Selection(("base",), ("a",))),
        replace(LATEST, function=_earliest),
    ]
    assert len({str(one.data) for one in (LATEST, *others)}) == 5
    assert len({one.key for one in (LATEST, *others[:3])}) == 4


def test_parts_as_numbers() -> None:
    estimate, bound = Estimate(2.0, 1.0, 3.0, 4), Bound(-5.0, 3)
    measured = Measured({"a": estimate, "b": bound, "c": "never", "d": None, "e": True})
    assert [measured.number(name) for name in "abe"] == [2.0, -5.0, 1.0]
    assert all(isnan(measured.number(name)) for name in ("c", "d", "absent"))
    assert str(bound) == "below −5"
    assert Measured.of(estimate).estimate == estimate
    assert Measured.of(1.0).estimate is None
