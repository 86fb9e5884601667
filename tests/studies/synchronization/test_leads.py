"""Tables 1 and 2 come out as reported from the reported events; the claims of §5.1 can hold and can fail."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from exact import t_interval
from judged import CLAIMS, finding, is_decisive, only, with_runs
from paper_runs import evidence as followed
from paper_runs import record_of
from planted import EMPTY, agree, evidence, ours, reported_base

from grokscope.stats import cluster_means
from grokscope.studies import Evidence, Verdict, judge
from grokscope.studies.synchronization import STUDY
from grokscope.studies.synchronization.lead_share import shares_by_prime
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.view.table import Cell, Table
from paper_tables import ADDITION, CROSS

LEADS = [row.lead for row in ADDITION.values()]
MEANS_BY_PRIME = cluster_means(LEADS, [row.modulus for row in ADDITION.values()]).tolist()


def table(name: str, found: Evidence) -> Table:
    built = STUDY.items[name].build(found)
    assert isinstance(built, Table)
    return built


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


def test_a_missing_run_is_named_and_its_neighbours_are_not() -> None:
    base = reported_base()
    del base["add_mod97_s1"]
    found = evidence("base", base)
    cross = table("tab-cross", found)
    assert ours(cross, "add_mod97_s1")[2:] == [None] * 5
    assert cross.cell("add_mod97_s1", "Lead").paper == 500
    assert cross.notes[-1] == "Not trained, so left empty: add_mod97_s1."
    assert cross.cell("mean, the paper's additions", "Lead").n == 8
    missing = judge(CLAIMS["lead-signs"], found)
    assert missing.verdict is Verdict.TOO_FEW
    assert "8 of the 9" in missing.why


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


def test_the_mean_of_the_claim_is_the_cell_of_the_table() -> None:
    found = followed(True)
    cross = table("tab-cross", found)
    for claim, row in (("lead-mean", "mean"), ("lead-mean-clustered", "mean by prime")):
        cell = cross.cell(f"{row}, the paper's additions", "Lead")
        estimate = finding(claim).estimate
        assert estimate is not None
        assert (estimate.value, (estimate.low, estimate.high)) == (cell.ours, cell.interval)
        assert CLAIMS[claim].quantity.key == cell.quantity
    share = cross.cell("add_mod53, all seeds", "FSD first?")
    assert share.quantity == shares_by_prime(500).key
    assert shares_by_prime(None).key == CLAIMS["lead-share-by-prime"].quantity.key


@pytest.mark.parametrize(
    "name", ["lead-signs", "lead-range", "lead-mean", "lead-mean-clustered", "lead-size", "fsd-2-at-113"]
)
def test_claims_hold_on_runs_that_follow_the_paper_and_fail_on_others(name: str) -> None:
    assert is_decisive(name)


def test_fsd_after_grokking_is_high_and_may_be_low() -> None:
    own = followed(True).records["base"]["add_mod97_s42"]
    assert finding("fsd-after").verdict is Verdict.REPRODUCED
    for sync, verdict in ((6000, Verdict.PARTLY), (None, Verdict.NOT)):
        changed = with_runs("base", add_mod97_s42=record_of(own.spec, 4000, sync))
        assert judge(CLAIMS["fsd-after"], changed).verdict is verdict


def test_the_share_by_prime_holds_at_ten_runs_a_prime_and_needs_them() -> None:
    assert is_decisive("lead-share-by-prime")
    base = followed(True).records["base"]
    few = only("base", **{name: run for name, run in base.items() if not name.startswith("add_mod71_s4")})
    found = judge(CLAIMS["lead-share-by-prime"], few)
    assert found.verdict is Verdict.TOO_FEW
    assert few.measure(shares_by_prime(None)).parts["add_mod53"] is not None


def test_correlations_are_counted_inside_the_reported_range() -> None:
    found = finding("fsd-correlation")
    assert found.why.endswith("of 9 lie in that range.")
    base = dict(followed(True).records["base"])
    record = base["add_mod97_s1"]
    flat = replace(record, evaluations=record.evaluations | {"fsd": [0.5] * len(record.evaluations["step"])})
    assert judge(CLAIMS["fsd-correlation"], with_runs("base", add_mod97_s1=flat)).verdict is Verdict.TOO_FEW


@pytest.mark.parametrize("name", ["lead-of-level", "sync-step"])
def test_contradictions_of_the_paper_stay_contradictions(name: str) -> None:
    for found in (finding(name), finding(name, False), judge(CLAIMS[name], EMPTY)):
        assert found.verdict is Verdict.INCONSISTENT
        assert len(found.why) > 20
        assert found.all_seeds_verdict is None
    assert judge(CLAIMS[name], EMPTY).value == "not measured"


def test_the_reported_table_gives_back_the_reported_mean_and_its_intervals() -> None:
    single, clustered = (finding(name).estimate for name in ("lead-mean", "lead-mean-clustered"))
    assert single is not None
    assert clustered is not None
    assert single.value == pytest.approx(1722, abs=0.5)
    assert clustered.value == pytest.approx(1740)
    assert (single.low, single.high) == pytest.approx(t_interval(LEADS))
    assert (clustered.low, clustered.high) == pytest.approx(t_interval(MEANS_BY_PRIME))
    assert finding("lead-mean").all_seeds.endswith("over 50 runs")
    assert finding("lead-mean").all_seeds_verdict in set(Verdict) - {Verdict.TOO_FEW}


def test_a_run_that_groks_and_never_synchronises_counts_against_the_lead() -> None:
    spec = followed(True).records["base"]["add_mod97_s1"].spec
    found = with_runs("base", add_mod97_s1=record_of(spec, 3000, None))
    assert judge(CLAIMS["lead-signs"], found).value.startswith("8 positive, 1 negative")
    mean = judge(CLAIMS["lead-mean"], found)
    assert mean.value == "below +333"  # (9 · 1,722.22 − 500 − 12,000) / 9
    assert mean.verdict is Verdict.PARTLY  # a bound has no interval above 0
    assert judge(CLAIMS["lead-size"], found).verdict is Verdict.NOT


def test_runs_that_never_grok_are_reported_where_signs_are_counted() -> None:
    spec = followed(True).records["base"]["add_mod97_s1"].spec
    found = judge(CLAIMS["lead-signs"], with_runs("base", add_mod97_s1=record_of(spec, None, None)))
    assert found.value == "8 positive, 0 negative, 0 tied of 9 runs, 1 never grok; sign test p = 0.0078"


def test_runs_that_learn_nothing_have_no_lead() -> None:
    base = {
        name: record_of(run.spec, None, None, memorized=None) for name, run in followed(True).records["base"].items()
    }
    for name in ("lead-signs", "lead-range", "lead-mean", "lead-size", "fsd-after"):
        assert judge(CLAIMS[name], only("base", **base)).verdict is Verdict.NOT, name


def test_all_seeds_are_all_runs_and_not_the_first() -> None:
    base = followed(True).records["base"]
    seeds = [name for name in base if name.startswith("add_mod97_s")]
    late = {name: record_of(base[name].spec, 9000, 2000 + 500 * i) for i, name in enumerate(seeds)}
    found = judge(CLAIMS["sync-step"], with_runs("base", **late))
    assert f"crossing at {2000 + 250 * (len(seeds) - 1):,} over {len(seeds)} runs" in found.all_seeds


def test_without_runs_nothing_of_ours_is_in_the_tables() -> None:
    for name in ("tab-configs", "tab-cross"):
        empty = table(name, EMPTY)
        assert any(note.startswith("Not trained, so left empty:") for note in empty.notes)
        assert all(cell.ours is None for row in empty.rows for cell in row if cell.paper is not None)
    assert table("tab-cross", EMPTY).cell("mean, the paper's additions", "FSD first?") == Cell(None, "9/9")
