"""Table 10 and Figure 6 come out as reported from draws with the reported means; their claims can hold and can fail."""

from math import isnan
from typing import Any

import pytest
from built import figure, labelled, table
from judged import CLAIMS, finding, is_decisive
from lifelike import lifelike
from paper_runs import evidence as followed
from planted import EMPTY, evidence

from grokscope.studies import Evidence, Verdict, judge
from grokscope.studies.synchronization.crossprime import LAWS
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
        assert fit.quantity == ours.cell(modulus, "C_p").quantity == LAWS[f"p = {modulus}"].key


def test_a_title_says_how_many_draws_a_prime_has() -> None:
    runs = lifelike(7, ("crossprime",)).experiment("crossprime")
    draws = {name: record for name, record in runs.items() if "mod53" in name or "_d42" in name}
    title = figure("fig-crossprime", Evidence({"crossprime": draws})).title
    assert title.endswith(" replicates per prime")
    assert "forks, 1 to " in title


@pytest.mark.parametrize("name", ["law-fits-three-primes", "law-constant-falls", "law-131-fails"])
def test_claims_hold_where_runs_follow_the_paper_and_fail_where_they_contradict_it(name: str) -> None:
    assert is_decisive(name)


def test_a_time_that_does_not_depend_on_the_decay_falls_more_slowly_than_its_inverse() -> None:
    """Both kinds of planted runs flatten; of forks that obey C/λ exactly the claim is not reproduced."""
    assert finding("law-flattens").verdict is finding("law-flattens", follows=False).verdict is Verdict.REPRODUCED
    obeying = {
        f"add_mod97_d{draw}_x{decay}": {"grok": 1000 + 3000 // decay, "last": 9000}
        for draw in (42, 123, 0, 1, 2)
        for decay in (1, 2, 3, 5)
    }
    assert judge(CLAIMS["law-flattens"], evidence("crossprime", obeying)).verdict is Verdict.NOT


def test_single_draws_vary_where_their_times_do() -> None:
    assert finding("law-per-draw").verdict is Verdict.NOT  # the planted draws are all alike
    draws = {name: what for name, what in reported_draws().items() if what["grok"]}
    for modulus in (53, 97):
        draws[f"add_mod{modulus}_d42_x1"] = {"grok": 2600, "last": 9000}
    found = evidence("crossprime", reported_draws() | draws)
    assert judge(CLAIMS["law-per-draw"], found).verdict is Verdict.REPRODUCED


def test_fewer_forks_than_reported_leave_the_claims_undecided_and_the_table_filled() -> None:
    draws = {name: what for name, what in reported_draws().items() if "mod53_d2_" not in name}
    found = evidence("crossprime", draws)
    for name in ("law-fits-three-primes", "law-constant-falls", "law-per-draw"):
        assert judge(CLAIMS[name], found).verdict is Verdict.TOO_FEW
        assert judge(CLAIMS[name], found).why == "16 of the 20 forks that it needs are there."
    assert table("tab-crossprime", found).cell("53", "C_p").ours is not None


def test_the_paper_contradicts_itself_on_the_number_of_draws() -> None:
    found = finding("five-draws")
    assert found.verdict is Verdict.INCONSISTENT
    assert found.value.startswith("p = 53: 5 of 5 grok at λ = 5, ")
    assert finding("law-constant-falls").n == finding("law-fits-three-primes").n == 60
