"""Figure 7 draws the norms of the runs; the claims of the threshold mechanism can hold and can fail."""

import pytest
from built import figure, labelled
from paper_runs import evidence as followed
from planted import EMPTY


def test_the_rate_is_that_of_an_exponential() -> None:
    rates = labelled(figure("fig-threshold", followed(True)).panels[2], "rate, seed 42")
    assert rates.y == pytest.approx([0.2 * decay for decay in rates.x], rel=1e-6)


def test_without_runs_the_paper_is_shown_alone() -> None:
    made = figure("fig-threshold", EMPTY)
    assert not any(panel.has_runs for panel in made.panels)
    assert made.title.endswith("no runs")
    assert made.notes[-1].startswith("Not trained, so left empty: add_mod97_d42_x1")
