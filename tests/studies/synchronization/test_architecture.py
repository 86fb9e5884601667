"""Table 8 and Figure 5 come out as reported; the claims of §5.7 can hold and can fail."""

from functools import cache, partial

import built
from built import labelled
from lifelike import lifelike
from paper_runs import evidence as followed
from planted import EMPTY, agree, evidence, only

from grokscope.studies import Evidence
from grokscope.view.charts.figure import Panel
from grokscope.view.table import Cell
from paper_tables import ARCH_ABLATION

table = partial(built.table, "tab-arch")

SEEDS = 7


@cache
def wide() -> Evidence:
    return only("architecture", **lifelike(SEEDS, ["architecture"]).records["architecture"])


def panel(found: Evidence) -> Panel:
    return built.figure("fig-arch", found).panels[0]


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
    assert found.x_ticks[0][1] == "2 layers\n4/4"


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
