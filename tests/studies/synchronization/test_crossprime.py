"""Table 10 and Figure 6 come out as reported from draws with the reported means; their claims can hold and can fail."""

from math import isnan
from typing import Any

import pytest
from built import figure, labelled, table
from lifelike import lifelike
from paper_runs import evidence as followed
from planted import EMPTY, evidence

from grokscope.studies import Evidence
from grokscope.studies.synchronization.crossprime import task_law
from grokscope.view.table import Cell
from paper_tables import CROSSPRIME


def reported_draws() -> dict[str, dict[str, Any]]:
    """Draws whose cells have the reported means; at p = 97 some did not grok, as the reported means require."""
    times = {
        53: {1: [4100] * 5, 2: [2200] * 5, 3: [1500, 1500, 1500, 1600, 1600], 5: [1200] * 5},
        97: {1: [2400, 2400, 2400, 2500], 2: [1300] * 5, 3: [800, 800, 900, 900], 5: [600, 700, 700]},
        131: {1: [1700, 1700, 1700, 1700, 1600], 2: [900] * 5, 3: [600] * 5, 5: []},
    }
    found = {}
    for modulus, by_decay in times.items():
        start = 2000 if modulus == 53 else 1000
        for decay, steps in by_decay.items():
            for draw, step in zip((42, 123, 0, 1, 2), [*steps, *[None] * (5 - len(steps))], strict=True):
                name = f"add_mod{modulus}_d{draw}_x{decay}"
                found[name] = {"grok": step and start + step, "learnt": step is not None, "last": 9000}
    return found


def test_the_law_across_primes_comes_out_as_reported() -> None:
    found = table("tab-crossprime", evidence("crossprime", reported_draws()))
    for modulus, (cells, constant, r_squared) in CROSSPRIME.items():
        row = str(modulus)
        for decay, (mean, _) in cells.items():
            cell = found.cell(row, f"Δt(λ = {decay:g})")
            assert round(float(cell.ours or 0)) == mean == cell.paper
            assert cell.interval is None
        assert int(float(found.cell(row, "C_p").ours or 0)) == constant
        assert round(float(found.cell(row, "R²").ours or 0), 2) == r_squared
    assert found.cell("131", "std(λ = 1)").ours == pytest.approx(40)
    assert found.cell("53", "std(λ = 3)").ours == pytest.approx(49, abs=0.5)
    never = found.cell("131", "Δt(λ = 5)")
    assert (never.ours, never.paper, never.n) == ("never", "never", 5)
    assert found.cell("97", "Δt(λ = 5)").n == 3
    assert "Of 60 forks, not in the means: 9 unstable." in found.notes


def test_draws_that_all_grokked_before_the_fork_are_not_never() -> None:
    draws: dict[str, dict[str, Any]] = {f"add_mod131_d{draw}_x1": {"grok": 1000} for draw in (42, 0)}
    found = table("tab-crossprime", evidence("crossprime", draws))
    cell = found.cell("131", "Δt(λ = 1)")
    assert (cell.ours, cell.paper, cell.n) == ("before the fork", 1680, 2)
    assert found.cell("131", "C_p").ours is None
    mixed = draws | {"add_mod131_d1_x1": {"grok": None}}
    assert table("tab-crossprime", evidence("crossprime", mixed)).cell("131", "Δt(λ = 1)").ours == "never"


def test_more_draws_than_reported_give_intervals() -> None:
    draws = reported_draws() | {f"add_mod131_d{draw}_x1": {"grok": 2500 + 100 * draw} for draw in (3, 4)}
    cell = table("tab-crossprime", evidence("crossprime", draws, n_seeds=7)).cell("131", "Δt(λ = 1)")
    assert cell.n == 7
    assert cell.interval is not None
    assert not any(isnan(end) for end in cell.interval)


def test_without_runs_nothing_is_filled_in() -> None:
    found = table("tab-crossprime", EMPTY)
    assert all(cell == Cell(None, cell.paper) for row in found.rows for cell in row[1:])
    assert found.notes[-1].startswith("Not trained, so left empty:")
    drawn = figure("fig-crossprime", EMPTY)
    assert not any(panel.has_runs for panel in drawn.panels)
    assert drawn.title.endswith("no runs")


def test_the_figure_draws_the_law_of_the_table() -> None:
    found = followed(True)
    ours, panel = table("tab-crossprime", found), figure("fig-crossprime", found).panels[0]
    for modulus in ("53", "97", "131"):
        points = labelled(panel, f"p = {modulus}, ours")
        for decay, mean, low, high in zip(points.x, points.y, points.low, points.high, strict=True):
            assert mean == ours.cell(modulus, f"Δt(λ = {decay:g})").ours
            assert (high - low) / 2 == pytest.approx(ours.cell(modulus, f"std(λ = {decay:g})").ours)
        fit = next(one for one in panel.series if one.label.startswith(f"p = {modulus}: C = "))
        assert fit.y[0] == ours.cell(modulus, "C_p").ours
        assert fit.quantity == ours.cell(modulus, "C_p").quantity == task_law(f"add_mod{modulus}").key


def test_a_title_says_how_many_draws_a_prime_has() -> None:
    runs = lifelike(7, ("crossprime",)).experiment("crossprime")
    draws = {name: record for name, record in runs.items() if "mod53" in name or "_d42" in name}
    title = figure("fig-crossprime", Evidence({"crossprime": draws})).title
    assert title.endswith(" replicates per prime")
    assert "forks, 1 to " in title
