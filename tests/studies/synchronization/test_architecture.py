"""Table 8 and Figure 5 come out as reported; the claims of §5.7 can hold and can fail."""

from functools import cache

import pytest
from judged import CLAIMS, finding, is_decisive, only
from lifelike import lifelike
from paper_runs import evidence as followed
from planted import EMPTY, agree, evidence

from grokscope.studies import Evidence, Verdict, judge
from grokscope.studies.synchronization.architecture import FIGURES, TABLES
from grokscope.studies.synchronization.experiments import EXPERIMENTS
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.table import Cell, Table
from paper_tables import ARCH_ABLATION

SEEDS = 7


@cache
def wide() -> Evidence:
    return Evidence({name: {} for name in EXPERIMENTS} | dict(lifelike(SEEDS, ["architecture"]).records))


def table(found: Evidence) -> Table:
    built = TABLES[0].build(found)
    assert isinstance(built, Table)
    return built


def panel(found: Evidence) -> Panel:
    built = FIGURES[0].build(found)
    assert isinstance(built, Figure)
    return built.panels[0]


def labelled(found: Panel, label: str) -> Series:
    return next(one for one in found.series if one.label == label)


def test_architectures_come_out_as_reported() -> None:
    rows = dict(zip(("two_layers", "one_layer", "attention_only", "mlp_only"), ARCH_ABLATION.values(), strict=True))
    events = {f"{name}_s42": {"grok": row[0], "sync": row[1]} for name, row in rows.items()}
    found = table(evidence("architecture", events))
    agree(found, [str(row[0].ours) for row in found.rows[:4]], ["Grok step", "FSD sync", "Lead", "FSD precursor?"])
    assert found.rows[4][1:] == (Cell(), Cell(), Cell(), Cell())
    assert found.notes[-1] == "Not trained, so left empty: mlp_only_pooled_s42."


def test_all_seeds_have_a_row_and_a_crossing_at_the_start_is_doubted() -> None:
    found = table(wide())
    assert found.cell("1-layer standard, all seeds", "Grok step").n == SEEDS
    at_once = table(evidence("architecture", {"two_layers_s42": {"grok": 3000, "sync": 0}}))
    assert any(note.endswith(": two_layers_s42.") and "Synchronised at" in note for note in at_once.notes)


def test_leads_are_drawn_as_reported() -> None:
    found = panel(followed(True))
    bars = labelled(found, "seed 42")
    assert bars.y[:3] == (3500, -1000, 3500)
    assert bars.texts[3:] == ("not grokked", "not grokked")
    assert labelled(found, "paper").y == (1500, -1000, 3000)
    assert found.x_ticks[0][1] == "2 layers\n1/1"


def test_many_seeds_are_drawn_with_their_intervals_and_counts() -> None:
    found = panel(wide())
    medians = labelled(found, "median of all seeds that grokked")
    leads = [row[3] for row in table(wide()).rows if str(row[0].ours).endswith("all seeds")]
    assert medians.y[0] == leads[0].ours
    assert (medians.low[0], medians.high[0]) == leads[0].interval
    assert [name.rpartition("\n")[2] for _, name in found.x_ticks] == ["7/7", "7/7", "7/7", "0/7", "0/7"]


def test_without_runs_only_the_paper_is_shown() -> None:
    assert all(cell.ours is None for row in table(EMPTY).rows for cell in row[1:])
    found = panel(EMPTY)
    assert not found.has_runs
    assert {one.source for one in found.series} == {"paper"}


@pytest.mark.parametrize("name", ["attention-only-leads", "one-layer-lags", "mlp-only-never", "attention-is-necessary"])
def test_claims_hold_on_runs_that_follow_the_paper_and_fail_on_others(name: str) -> None:
    assert is_decisive(name)
    assert judge(CLAIMS[name], EMPTY).verdict is Verdict.TOO_FEW


def test_values_are_leads_with_their_order_and_counts_of_grokked_runs() -> None:
    assert finding("attention-only-leads").value == "lead 3,500, 1 before grokking, 0 after"
    assert finding("mlp-only-never").value == "0 of 1 groks"
    never = only(
        "architecture",
        **{name: one for name, one in followed(True).records["architecture"].items() if name.startswith("mlp")},
    )
    assert judge(CLAIMS["mlp-only-never"], never).verdict is Verdict.REPRODUCED
    uncrossed = evidence("architecture", {"one_layer_s42": {"grok": 3000}})
    found = judge(CLAIMS["one-layer-lags"], uncrossed)
    assert (found.value, found.verdict) == ("lead below −12,000, 0 before grokking, 1 after", Verdict.REPRODUCED)


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("attention-only-magnitude", Verdict.INCONSISTENT), ("mlp-only-sync", Verdict.NOT_TESTABLE)],
)
def test_claims_that_no_run_can_decide_say_so(name: str, verdict: Verdict) -> None:
    for found in (finding(name), finding(name, False), judge(CLAIMS[name], EMPTY)):
        assert found.verdict is verdict
        assert len(found.why) > 20
        assert found.all_seeds_verdict is None
    assert finding(name).value != "not measured"
    assert judge(CLAIMS[name], EMPTY).value == "not measured"
