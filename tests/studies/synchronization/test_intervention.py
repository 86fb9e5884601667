"""Table 4 and Figure 3 come out as reported from the reported forks; the claims of §5.3 can hold and can fail."""

from math import isnan

import pytest
from built import figure, labelled, table
from lifelike import lifelike
from paper_runs import evidence as followed
from planted import EMPTY, agree, evidence
from planted_forks import reported_forks

from grokscope.studies import Evidence


def test_the_intervention_comes_out_as_reported() -> None:
    found = table("tab-wd", evidence("fork", reported_forks()))
    agree(found, ["1", "2", "3", "4", "5", "10"], ["Grok step", "Δt from fork", "Speedup vs. λ = 1"])
    assert [str(found.cell(decay, "Outcome").ours)[-1] for decay in ("4", "5", "10")] == ["†", "†", "‡"]
    assert found.cell("1", "Outcome").ours == "grokked"


def test_a_run_that_grokked_before_its_fork_has_no_time_to_grok() -> None:
    forks = reported_forks() | {"add_mod97_s42_x1": {"grok": 1000, "last": 9000}}
    found = table("tab-wd", evidence("fork", forks))
    assert found.cell("1", "Δt from fork").ours == "before the fork"
    assert found.cell("2", "Speedup vs. λ = 1").ours == "n/a"
    assert table("tab-timing", evidence("fork", forks)).cell("C, λ ≤ 5", "C").ours == (3000 + 3000 + 4000 + 5000) / 4


def test_more_seeds_give_shares_and_medians() -> None:
    forks = reported_forks()
    for seed, grok in ((0, 3000), (1, 5000)):
        forks |= {f"add_mod97_s{seed}_x{x:g}": {"grok": 1000 + (grok - 1000) // x, "last": 9000} for x in (1, 2, 5)}
    found = table("tab-wd", evidence("fork", forks, n_seeds=3))
    assert found.cell("1", "Δt, all seeds").ours == 3000
    assert found.cell("10", "Δt, all seeds").ours == "never"
    assert found.cell("10", "Grokked, all seeds").interval == pytest.approx((0, 0.975))


def test_every_cell_of_a_number_names_its_quantity_and_without_runs_there_is_none() -> None:
    whole = table("tab-wd", evidence("fork", reported_forks()))
    assert all(cell.quantity for row in whole.rows for cell in row[1:])
    empty = table("tab-wd", EMPTY)
    assert all(cell.ours is None for row in empty.rows for cell in row[1:])
    assert empty.notes[-1].startswith("Not trained, so left empty: add_mod97_s42_x1")


def test_times_and_the_law_are_drawn_as_reported() -> None:
    panel = figure("fig-wd", followed(True)).panels[-1]
    bars = labelled(panel, "Δt, seed 42")
    assert bars.y[:5] == labelled(panel, "Δt, paper").y
    assert isnan(bars.y[5])
    assert bars.texts[5] == "unstable"
    assert labelled(panel, "3,000/λ, our mean(λΔt) of λ ≤ 3").y == pytest.approx(labelled(panel, "3,000/λ, paper").y)


def test_the_share_that_grokked_ends_at_the_share_that_grokked() -> None:
    found = lifelike(7, ("fork",))
    panel = figure("fig-wd", found).panels[1]
    for decay in ("1", "5", "10"):
        step = labelled(panel, f"λ = {decay}")
        runs = [record for name, record in found.experiment("fork").items() if name.endswith(f"_x{decay}")]
        until = [run.timeline.grokked for run in runs]
        assert step.y[-1] == pytest.approx(sum(at is not None and at <= max(step.x) for at in until) / len(runs))
        assert all(low <= y <= high for low, y, high in zip(step.low, step.y, step.high, strict=True))


def test_a_title_says_how_many_seeds_a_branch_has() -> None:
    runs = lifelike(7, ("fork",)).experiment("fork")
    few = {name: record for name, record in runs.items() if "s42" in name or name.endswith("_x1")}
    assert "all seeds, 1 to 7 per λ" in figure("fig-wd", Evidence({"fork": few})).title
