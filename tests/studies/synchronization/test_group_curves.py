"""Figure 9 draws the runs' own columns, the nulls of FSD_gen, and what the paper reports."""

from functools import cache, partial

import built
from built import labelled
from lifelike import lifelike
from planted import EMPTY, only

from grokscope.studies import Evidence
from grokscope.studies.synchronization.series import independent_level

figure = partial(built.figure, "fig-transfer")


@cache
def wide() -> Evidence:
    return only("symmetric", **lifelike(7, ["symmetric"]).records["symmetric"])


def test_nulls_are_drawn_with_fsd_gen() -> None:
    found, runs = figure(wide()), wide().records["symmetric"]
    assert len(found.panels) == 9
    untrained = [record.at(0, "fsd") for name, record in runs.items() if name.startswith("S5_f0.7_")]
    for panel in found.panels[:7]:
        band = next(one for one in panel.series if one.label.startswith("untrained"))
        assert (band.low[0], band.high[0]) == (min(untrained), max(untrained))
        assert labelled(panel, "independent neurons, 95 %").y == (independent_level("S5", 512),)
    assert labelled(found.panels[2], "paper").x == (2100,)


def test_curves_are_the_runs_own_and_carry_their_quantity() -> None:
    record = wide().records["symmetric"]["S5_f0.7_s42"]
    curve = labelled(figure(wide()).panels[2], "FSD_gen")
    assert dict(zip(curve.x, curve.y, strict=True)) == {step: record.at(step, "fsd") for step in curve.x}
    assert "S5_f0.7_s42" in curve.quantity
    lower = figure(wide()).panels[8].series
    assert all(one.quantity for one in lower if one.source == "seeds")
    assert [len(one.low) > 0 for one in lower if one.source == "seeds"] == [True, False, True]


def test_without_runs_only_the_paper_is_shown() -> None:
    found = figure(EMPTY)
    assert found.title.endswith("no runs")
    assert not any(panel.has_runs for panel in found.panels)
    assert any(note.startswith("Not trained, so left empty") for note in found.notes)
