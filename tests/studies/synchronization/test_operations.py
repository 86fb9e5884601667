"""Every reading of multiplication, against counts."""

from functools import partial
from typing import Any

import built
import pytest
from built import sentence
from exact import holm, same_share
from planted import EMPTY, evidence

from grokscope.view.table import Cell

table = partial(built.table, "sup-multiplication")


def test_multiplication_is_read_in_each_basis() -> None:
    names = [f"mult_mod97_s{seed}" for seed in (42, 0, 1, 2, 3)]
    columns: dict[str, Any] = {"grok": 3000, "sync": 2400, "fsd": 2400, "fsd@sum": 13_000, "fsd@additive": None}
    runs = {name: dict(columns) for name in names}
    runs[names[0]]["sync"] = runs[names[0]]["fsd"] = 3200
    del runs[names[1]]["fsd@sum"]
    found = table(evidence("base", runs, 5))
    own = "own basis, every evaluation"
    same_share(found.cell(own, "Positive lead"), 4, 5)
    assert found.cell(own, "First crossing (median step)").ours == 2400
    assert found.cell(own, "Median lead (steps)").ours == 600
    same_share(found.cell("by a + b, checkpoints", "Positive lead"), 0, 4)
    assert found.cell("by a + b, checkpoints", "Mean lead (steps)").ours == -10_000
    assert found.cell("additive basis, checkpoints", "Never crossed").ours == 5
    assert found.cell("additive basis, checkpoints", "First crossing (median step)").ours == "never"
    p_values = [float(row[9].ours) for row in found.rows[:4]]  # type: ignore[arg-type]
    assert [row[10].ours for row in found.rows[:4]] == pytest.approx(holm(p_values))
    assert "0.80 [0.28, 0.99], n = 5 (own basis, every evaluation)" in sentence(found)


def test_without_runs_every_row_says_so_and_the_sentence_too() -> None:
    found = table(EMPTY)
    assert len(found.rows) == 8
    assert all(row[1:] == (Cell("no runs"), *(Cell(),) * 9) for row in found.rows)
    assert "not known" in sentence(found)
