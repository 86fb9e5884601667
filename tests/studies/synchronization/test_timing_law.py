"""Table 9 comes out as reported from the reported forks; its claims can hold and can fail."""

import pytest
from built import table
from planted import EMPTY, agree, evidence, ours
from planted_forks import reported_forks

from paper_tables import TIMING_FIT


def test_the_timing_law_comes_out_as_reported() -> None:
    found = table("tab-timing", evidence("fork", reported_forks()))
    for decay, (observed, predicted, error) in TIMING_FIT.items():
        row = ours(found, f"{decay:g}")
        assert row[1] == (observed or "never")
        assert row[2] == pytest.approx(predicted)
        assert row[3] == (None if error is None else pytest.approx(error))
    agree(found, ["C, λ ≤ 5", "C, λ ≤ 3"], ["C"])
    assert round(float(found.cell("C, λ ≤ 5", "R²").ours or 0), 2) == 0.81
    assert found.cell("C, λ ≤ 3", "R²").ours == pytest.approx(1.0)


def test_ten_times_the_decay_is_not_in_the_fit_even_where_it_grokked() -> None:
    forks = reported_forks() | {"add_mod97_s42_x10": {"grok": 4000, "last": 9000}}
    found = table("tab-timing", evidence("fork", forks))
    assert found.cell("10", "Δt observed").ours == 3000
    assert found.cell("C, λ ≤ 5", "C").ours == 3600


def test_more_seeds_give_an_interval_of_the_constant() -> None:
    forks = reported_forks()
    for seed, grok in ((0, 3000), (1, 5000)):
        forks |= {f"add_mod97_s{seed}_x{x:g}": {"grok": 1000 + (grok - 1000) // x, "last": 9000} for x in (1, 2, 5)}
    cell = table("tab-timing", evidence("fork", forks, n_seeds=3)).cell("C, λ ≤ 5, all seeds", "C")
    assert cell.n == 3
    assert cell.interval is not None


def test_without_runs_nothing_is_filled_in() -> None:
    found = table("tab-timing", EMPTY)
    assert all(cell.ours is None for row in found.rows for cell in row[1:])
    assert found.notes[-1].startswith("Not trained, so left empty:")
