"""Table 3 and Figure 1 come out as reported; the claims of §5.2 can hold and can fail."""

from dataclasses import replace
from functools import cache, partial

import built
from built import labelled
from lifelike import lifelike
from paper_runs import evidence as followed
from planted import EMPTY, agree, evidence, only, reported_base

from grokscope.studies import Evidence
from grokscope.studies.synchronization.reported import REPORTED
from paper_tables import EXLOSS

table = partial(built.table, "tab-exloss")
figure = partial(built.figure, "fig-exloss")

NAMES = [name for name in REPORTED["tab:exloss"].rows if name != "mean"]


@cache
def wide() -> Evidence:
    return only("base", **lifelike(7, ["base"]).records["base"])


def test_the_restricted_loss_comes_out_as_reported() -> None:
    found = table(evidence("base", reported_base()))
    agree(found, list(EXLOSS), [column.name for column in found.columns[1:]])
    assert round(float(found.cell("mean, the paper's additions", "Restricted loss lead").ours)) == -167  # type: ignore[arg-type]
    assert found.cell("mean, the paper's additions", "FSD earlier?").ours == 1.0


def test_leads_are_drawn_as_reported() -> None:
    panel, reported = figure(followed(True)).panels[0], REPORTED["tab:exloss"]
    assert labelled(panel, "FSD").y == tuple(reported.get(name, "lead") for name in NAMES)
    assert labelled(panel, "restricted loss").y == tuple(reported.get(name, "restricted_lead") for name in NAMES)
    papers = [one for one in panel.series if one.source == "paper"]
    assert [one.y for one in papers] == [labelled(panel, name).y for name in ("FSD", "restricted loss")]


def test_the_medians_of_the_figure_are_those_of_the_seeds() -> None:
    drawn = figure(wide())
    assert [tick for _, tick in drawn.panels[1].x_ticks] == [f"{p}\nn = 7" for p in (53, 71, 97, 113, 131)]
    medians = [one for one in drawn.panels[1].series if one.source == "seeds"]
    assert len(medians) == 2
    assert all(one.quantity for one in medians)
    assert drawn.title.endswith("9 of the paper's 9 additions and all 35 runs of 5 primes")


def test_what_was_not_measured_is_in_the_bar() -> None:
    base = {name: replace(record, checkpoints={}) for name, record in wide().records["base"].items()}
    assert labelled(figure(only("base", **base)).panels[0], "restricted loss").texts == ("not measured",) * 9
    one = only("base", add_mod97_s42=base["add_mod97_s42"])
    assert labelled(figure(one).panels[0], "FSD").texts[1:] == ("no run",) * 8


def test_without_runs_the_paper_stands_alone() -> None:
    drawn = figure(EMPTY)
    assert {one.source for panel in drawn.panels for one in panel.series if len(one)} == {"paper"}
    assert any(note.startswith("Not trained, so left empty") for note in drawn.notes)
    assert all(cell.ours is None for row in table(EMPTY).rows for cell in row if cell.paper is not None)
