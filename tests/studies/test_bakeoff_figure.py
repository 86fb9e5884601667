from math import inf, isnan, nan
from pathlib import Path

from grokscope.stats import Estimate
from grokscope.studies.bakeoff.figures import fig_bakeoff
from grokscope.studies.bakeoff.tables import ArmResult, TaskResult
from grokscope.studies.figures import figure_csv, write_figure


def arm(name: str, median: float, high: float, grokked: int) -> ArmResult:
    share = Estimate(grokked / 8, 0.1, 0.9, 8)
    return ArmResult("add_mod97", name, share, Estimate(median, 1000.0, high, 8), None, 0, 0, 0, nan)


def test_medians_intervals_and_counts_are_drawn_and_never_is_no_number(tmp_path: Path) -> None:
    arms = (
        arm("fixed λ = 1", 3000.0, 3500.0, 8),
        arm("fixed λ = 2", 2000.0, inf, 8),
        arm("closed loop", 1500.0, inf, 6),
        arm("Grokfast", inf, inf, 1),
    )
    figure = fig_bakeoff([TaskResult("add_mod97", arms, "fixed λ = 1")])
    fixed, loop, grokfast = figure.panels[0].series
    assert (fixed.label, fixed.x, fixed.y, fixed.texts) == ("fixed", (0, 1), (3000.0, 2000.0), ("8/8", "8/8"))
    assert (fixed.low, fixed.high) == ((1000.0, 1000.0), (3500.0, 2000.0))
    assert (loop.x, loop.y) == ((2,), (1500.0,))
    assert isnan(grokfast.y[0])
    assert grokfast.texts == ("1/8",)
    assert [name for _, name in figure.panels[0].x_ticks] == ["1", "2", "", ""]
    assert "32 runs" in figure.title
    assert {path.suffix for path in write_figure(figure, tmp_path)} == {".svg", ".png", ".pdf", ".csv"}
    assert b"closed loop" in figure_csv(figure)
