"""Columns of numbers in few bytes."""

from math import nan

import numpy as np
import pytest
from page_runs import synthetic_records

from grokscope.view.page import packing
from grokscope.view.page.packing import packed_columns, rounded


@pytest.mark.parametrize("digits", [4, 5, 6])
def test_rounded_numbers_have_the_digits_that_were_stored(digits: int) -> None:
    generator = np.random.default_rng(0)
    values = generator.uniform(1, 10, 20_000) * 10.0 ** generator.integers(-12, 12, 20_000)
    values[:4] = 0, -values[3], nan, np.inf
    for stored, kept in zip(values.tolist(), rounded(values, digits).tolist(), strict=True):
        assert f"{kept:.{digits}g}" == f"{stored:.{digits}g}"


def test_many_runs_keep_to_the_budget_by_digits_and_then_by_evaluations() -> None:
    logs = [record.evaluations for record in synthetic_records(10)]
    names = [name for name in logs[0] if name != "step"]
    sizes = [
        (p.digits, p.stride, len(p.text)) for p in (packed_columns(logs, names, b) for b in (10**9, 60_000, 10**4))
    ]
    assert sizes[0][:2] == (None, 1)
    assert sizes[1][0] in (4, 5, 6)
    assert sizes[1][2] <= 60_000
    assert sizes[2][1] > 1
    assert sizes[2][2] <= 10**4
    thin = packed_columns(logs, names, 10**4)
    assert thin.lengths[0] == len({*range(0, 151, thin.stride), 150})


def test_a_guess_at_the_size_of_many_runs_changes_no_packing(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [record.evaluations for record in synthetic_records(40, evaluations=20)]
    names = [name for name in logs[0] if name != "step"]
    budgets = (10**9, 40_000, 30_000, 20_000, 5_000, 10)
    exact = [packed_columns(logs, names, budget) for budget in budgets]
    monkeypatch.setattr(packing, "SAMPLE", 8)
    assert [packed_columns(logs, names, budget) for budget in budgets] == exact
    assert len({(one.digits, one.stride) for one in exact}) > 3
