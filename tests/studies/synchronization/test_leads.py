"""Tables 1 and 2 come out as reported from the reported events; the claims of §5.1 can hold and can fail."""

from typing import Any

import numpy as np
import pytest
from built import table
from exact import t_interval
from paper_runs import evidence as followed
from planted import EMPTY, agree, evidence, ours, reported_base

from grokscope.stats import cluster_means
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.view.table import Cell
from paper_tables import ADDITION, CROSS

LEADS = [row.lead for row in ADDITION.values()]
MEANS_BY_PRIME = cluster_means(LEADS, [row.modulus for row in ADDITION.values()]).tolist()


def test_configurations_and_leads_come_out_as_reported() -> None:
    base = evidence("base", reported_base())
    agree(table("tab-configs", base), list(REPORTED["tab:configs"].rows), ["Grok step"])
    cross = table("tab-cross", base)
    agree(cross, list(CROSS), ["Grok", "Sync", "Lead", "FSD first?"])
    mean, by_prime = (cross.cell(f"{name}, the paper's additions", "Lead") for name in ("mean", "mean by prime"))
    assert round(float(mean.ours or 0)) == mean.paper == 1722  # type: ignore[arg-type]
    assert by_prime.ours == by_prime.paper == 1740
    assert mean.n == 9
    assert by_prime.n == 5
    assert (mean.paper_interval, by_prime.paper_interval) == ((1111, 2333), (1240, 2400))
    assert mean.interval == pytest.approx(t_interval(LEADS))
    assert by_prime.interval == pytest.approx(t_interval(MEANS_BY_PRIME))
    assert cross.cell("mean, the paper's additions", "Sign-test p").ours == 2**-8
    assert not any("all seeds" in str(row[0].ours) for row in cross.rows)


def test_multiplication_is_read_three_ways() -> None:
    cross = table("tab-cross", evidence("base", reported_base()))
    assert ours(cross, "mult_mod97_s42, by answer, additive basis")[3:6] == ["never", "never", "no"]
    assert ours(cross, "mult_mod97_s42, by answer, discrete logarithm")[3:6] == [2000, 1000, "yes"]


def test_multiplication_that_was_not_read_by_the_sum_has_no_value_of_the_papers_reading() -> None:
    cross = table("tab-cross", evidence("base", {"mult_mod97_s42": {"grok": 3000, "sync": 2000}}))
    assert ours(cross, "mult_mod97_s42")[2:6] == [3000, None, None, None]
    assert "FSD in the paper's reading was not measured, so left empty: mult_mod97_s42." in cross.notes


def test_events_are_those_of_the_papers_evaluations() -> None:
    """A run that grokked at 3,100 and crossed at 1,900 does so at 3,500 and 2,000 when evaluated every 500 steps."""
    cross = table("tab-cross", evidence("base", {"add_mod97_s42": {"grok": 3100, "sync": 1900}}))
    assert ours(cross, "add_mod97_s42")[2:5] == [3500, 2000, 1500]


def test_steps_that_were_not_reached_are_never_and_no_number() -> None:
    cross = table("tab-cross", evidence("base", {"add_mod97_s42": {"grok": 3000}, "add_mod53_s42": {"sync": 500}}))
    assert ours(cross, "add_mod97_s42")[2:6] == [3000, "never", "never", "no"]
    assert ours(cross, "add_mod53_s42")[2:6] == ["never", 500, "n/a", "n/a"]
    assert cross.cell("mean, the paper's additions", "Lead").ours == "below −12,000"
    assert cross.cell("mean, the paper's additions", "FSD first?").ours == 0


def test_more_seeds_than_reported_give_medians_with_intervals() -> None:
    base = reported_base() | {f"add_mod97_s{seed}": {"grok": 2500 + 500 * seed, "sync": 1000} for seed in range(3, 9)}
    found = evidence("base", base, n_seeds=11)
    cell = table("tab-configs", found).cell("add_mod97, all seeds", "Grok step")
    steps = [row["grok"] for name, row in base.items() if name.startswith("add_mod97")]
    assert cell.ours == np.median(steps)
    assert cell.n == len(steps) == 11
    assert cell.interval is not None
    assert min(steps) <= cell.interval[0] <= cell.ours <= cell.interval[1] <= max(steps)  # type: ignore[operator]
    cross = table("tab-cross", found)
    assert cross.cell("add_mod97, all seeds", "FSD first?").interval == pytest.approx((1 - 0.2849, 1), abs=1e-4)
    every = cross.cell("mean, all additions", "Lead")
    assert every.n == 15
    assert every.paper is None
    assert cross.cell("mean by prime, all additions", "Lead").n == 5


def test_medians_of_all_seeds_hold_where_some_steps_were_not_reached() -> None:
    base: dict[str, dict[str, Any]] = {f"add_mod97_s{seed}": {"grok": 3000, "sync": 1000} for seed in (42, 0, 1)}
    base |= {f"add_mod97_s{seed}": {"grok": 3000, "sync": None} for seed in (2, 3, 4, 5)}
    cross = table("tab-cross", evidence("base", base, n_seeds=8))
    assert ours(cross, "add_mod97, all seeds")[3:5] == ["never", "never"]
    assert cross.cell("add_mod97, all seeds", "FSD first?").ours == pytest.approx(3 / 7)


def test_a_crossing_at_the_first_evaluation_is_doubted() -> None:
    cross = table("tab-cross", evidence("base", {"add_mod97_s42": {"grok": 3000, "sync": 0}}))
    assert any(note.startswith("Synchronised at the first") and "add_mod97_s42" in note for note in cross.notes)


def test_every_number_of_ours_is_a_quantity() -> None:
    for name in ("tab-configs", "tab-cross"):
        for row in table(name, followed(True)).rows:
            words = 4 if name == "tab-configs" else 2
            assert all(cell.quantity for cell in row[words:] if cell.ours is not None), row[0]


def test_without_runs_nothing_of_ours_is_in_the_tables() -> None:
    for name in ("tab-configs", "tab-cross"):
        empty = table(name, EMPTY)
        assert any(note.startswith("Not trained, so left empty:") for note in empty.notes)
        assert all(cell.ours is None for row in empty.rows for cell in row if cell.paper is not None)
    assert table("tab-cross", EMPTY).cell("mean, the paper's additions", "FSD first?") == Cell(None, "9/9")
