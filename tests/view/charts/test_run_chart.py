"""A run's chart holds its log, with its events."""

from dataclasses import replace
from math import isnan, nan

import pytest

from grokscope.errors import InputError
from grokscope.runs import RunOutcome, RunRecord
from grokscope.specs import Fork, RunSpec
from grokscope.view.charts.drawing import draw
from grokscope.view.charts.figure import Figure
from grokscope.view.charts.run_chart import run_chart
from grokscope.view.charts.style import COLORS, house_style

LOG = {
    "step": [0, 100, 200, 300],
    "train_accuracy": [0.0, 1.0, 1.0, 1.0],
    "validation_accuracy": [0.0, 0.1, 0.2, 1.0],
    "train_loss": [4.5, 0.5, 0.0, 0.25],
    "validation_loss": [4.5, 5.0, 5.0, 0.5],
    "fsd": [0.1, 0.5, 0.9, 0.9],
    "rank": [nan] * 4,
    "norm": [30.0, 29.0, 28.0, 27.0],
}
RUN = RunRecord(RunSpec(), RunOutcome("grokked"), LOG, {})


def marks(chart: Figure, place: int) -> dict[str, tuple[float, tuple[str, ...]]]:
    return {one.label: (*one.x, one.texts) for one in chart.panels[place].series if one.kind == "vertical"}


def test_every_logged_column_is_a_curve_and_what_is_undefined_has_no_panel() -> None:
    chart = run_chart("run", RUN)
    assert [panel.title for panel in chart.panels] == ["Accuracy", "Loss", "FSD", "Norm ‖W‖"]
    curves = {(panel.y_label, one.label): one.y for panel in chart.panels for one in panel.series if one.kind == "line"}
    assert curves["accuracy", "validation"] == tuple(LOG["validation_accuracy"])
    assert curves["FSD", "FSD"] == tuple(LOG["fsd"])
    assert {one.role for panel in chart.panels for one in panel.series} <= set(COLORS)


def test_the_null_of_fsd_is_a_line_in_its_panel_alone() -> None:
    chart = run_chart("run", RUN, 0.25)
    lines = [(panel.title, one.y, one.entry) for panel in chart.panels for one in panel.series if one.source == "null"]
    assert lines == [("FSD", (0.25,), "95 % of untrained networks")]


def test_a_loss_of_zero_has_no_place_on_a_logarithmic_axis() -> None:
    loss = run_chart("run", RUN).panels[1]
    assert loss.log_y
    assert [isnan(value) for value in loss.series[0].y] == [False, False, True, False]


def test_events_are_marked_in_every_panel_and_named_in_the_first() -> None:
    chart = run_chart("run", replace(RUN, spec=replace(RUN.spec, fork=Fork("0" * 16, 50))))
    steps = {"forked": 50, "memorised": 100, "synchronised": 200, "grokked": 300}
    assert marks(chart, 0) == {word: (step, (word,)) for word, step in steps.items()}
    assert marks(chart, 3) == {word: (step, ()) for word, step in steps.items()}
    assert "forked" not in marks(run_chart("run", RUN), 0)


def test_what_the_title_says_and_what_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    with house_style():
        drawn = draw(run_chart("$add_mod97$", RUN))
    assert drawn.get_suptitle() == "$add_mod97$: λ = 1"
    assert len(drawn.axes) == 4
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["train", "validation"]


@pytest.mark.parametrize("log", [{}, {"step": [0], "fsd": [nan]}])
def test_a_run_without_numbers_is_rejected(log: dict[str, list[float]]) -> None:
    with pytest.raises(InputError, match=r"^add_mod97_s0 has no evaluations to plot yet$"):
        run_chart("add_mod97_s0", replace(RUN, evaluations=log))
