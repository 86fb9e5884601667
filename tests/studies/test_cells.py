"""Cells: what a quantity is, beside what is reported, and never a number that is not one."""

from collections.abc import Mapping
from math import inf, nan

import pytest
from planted import run

from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.stats import Estimate
from grokscope.studies import Bound, Evidence, Measured, Quantity, Selection, cell
from grokscope.studies.quantity import Part
from grokscope.view.table import Cell

EVIDENCE = Evidence({"base": {"a": run(RunSpec())}})


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
def test_every_kind_of_part(part: Part, shown: tuple[object, object, object]) -> None:
    quantity = Quantity("given", Selection(("base",)), _given, options={"part": part})
    found = cell(EVIDENCE, quantity, reported=1, reported_interval=(0, 2))
    assert (found.ours, found.interval, found.n) == shown
    assert (found.paper, found.paper_interval) == (1, (0, 2))
    assert found.quantity == (quantity.key if found.ours is not None else "")


def test_missing_runs_leave_an_empty_cell() -> None:
    gone = Quantity("given", Selection(("base",), ("b",)), _given, options={"part": 1})
    assert cell(EVIDENCE, gone, reported=1) == Cell(None, 1)
