from math import isnan
from pathlib import Path

from bakeoff_runs import evidence, planted, record, specs_of

from grokscope.studies.bakeoff import STUDY
from grokscope.view.charts.figure import Figure
from grokscope.view.charts.files import figure_csv, write_figure


def test_medians_intervals_and_counts_are_drawn_and_never_is_no_number(tmp_path: Path) -> None:
    runs = planted({"fixed λ = 1": 3000, "fixed λ = 2": 2000})
    for seed, (name, spec) in enumerate(specs_of("closed loop").items()):
        runs[name] = record(spec, 1500 if seed < 5 else None)
    for seed, (name, spec) in enumerate(specs_of("Grokfast").items()):
        runs[name] = record(spec, None if seed else 100)
    figure = STUDY.items["fig-bakeoff"].build(evidence(runs))
    assert isinstance(figure, Figure)
    fixed, loop, grokfast = figure.panels[0].series
    assert (fixed.label, fixed.x, fixed.y, fixed.texts) == ("fixed", (0, 1), (3300.0, 2300.0), ("8/8", "8/8"))
    assert fixed.low[0] < 3300 < fixed.high[0]
    assert (loop.x, loop.y, loop.high) == ((2,), (1500.0,), (1500.0,)), "an end that is not known is left out"
    assert isnan(grokfast.y[0])
    assert grokfast.texts == ("1/8",)
    assert [name for _, name in figure.panels[0].x_ticks] == ["1", "2", "", ""]
    assert "32 runs" in figure.title
    assert all(one.quantity for one in figure.panels[0].series)
    assert {path.suffix for path in write_figure(figure, tmp_path)} == {".svg", ".png", ".pdf", ".csv"}
    assert b"closed loop" in figure_csv(figure)
