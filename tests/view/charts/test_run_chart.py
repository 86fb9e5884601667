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


def test_real_answers_have_a_panel_of_errors_with_a_line_at_success() -> None:
    errors = {"train_relative_error": [9.0, 1e-3, 1e-5, 1e-7], "validation_relative_error": [9.0, 5.0, 0.5, 1e-3]}
    log = {name: values for name, values in LOG.items() if name not in ("fsd", "rank")} | errors
    chart = run_chart("run", replace(RUN, evaluations=log))
    assert [panel.title for panel in chart.panels] == ["Accuracy", "Loss", "Error", "Norm ‖W‖"]
    error = chart.panels[2]
    assert error.log_y
    assert [one.y for one in error.series if one.kind == "horizontal"] == [(1.0,)]
    assert error.y_range is not None, "eight powers of ten need an axis with ticks"
    assert error.y_range[0] < 1e-7 < 9.0 < error.y_range[1]
    assert chart.panels[1].y_range is None
    assert draw(chart) is not None


def test_groups_of_rows_that_are_held_out_have_curves_of_their_own() -> None:
    chart = run_chart("run", replace(RUN, evaluations=LOG | {"far_off_accuracy": [0.0] * 4, "far_off_loss": [4.0] * 4}))
    for panel in chart.panels[:2]:
        assert [one.label for one in panel.series if one.kind == "line"] == ["train", "validation", "far off"]
