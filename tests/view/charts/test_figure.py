"""One description of a chart: what it holds, and that both renderers draw all of it."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from grokscope.errors import InputError
from grokscope.view.charts import figure as figures
from grokscope.view.charts.drawing import DRAWN, draw
from grokscope.view.charts.figure import Figure, Kind, Panel, Series
from grokscope.view.charts.files import figure_csv
from grokscope.view.charts.style import COLORS, HUES, house_style

ASSETS = Path(figures.__file__).parents[1] / "page" / "assets"
STACKED = Series("grokked", "bars", "validation", "run", (0, 1), (0.5, 1.0), base=(0.25, 0.0))
CELLS = Series("shares", "cells", "fsd", "run", (0, 1), (0, 0), depth=(0.5, 1.0))


def panel(*series: Series) -> Panel:
    return Panel("Shares", "task", "share of runs", series, x_ticks=((0, "S5"), (1, "A5")), y_ticks=((0, "none"),))


def test_matplotlib_and_the_page_draw_every_kind() -> None:
    script = (ASSETS / "marks.js").read_text()
    listed = script[script.index("const KINDS = {") : script.index("// The sign of a series")]
    in_page = set(re.findall(r"^  (\w+): \(?\w+", listed, re.MULTILINE)) | set(
        re.findall(r"^KINDS\.(\w+) =", listed, re.M)
    )
    assert set(get_args(Kind)) == set(DRAWN) == in_page == set(figures.FEWEST)


def test_the_page_has_a_colour_for_every_role_that_our_charts_use() -> None:
    used = {role for file in ASSETS.glob("*.js") for role in re.findall(r'role: "([\w ]+)"', file.read_text())}
    assert used - set(HUES) - {"alert", "group", "img", "region", "status"} <= {"theory", "null"}, (
        "these are ink and grey"
    )
    assert set(HUES) - {"chosen", "before"} <= set(COLORS)


def test_a_description_holds_what_was_chosen_and_is_json() -> None:
    found = json.loads(json.dumps(panel(STACKED, Series("none", "line", "fsd", "run")).to_dict()))
    assert found["x_ticks"] == [[0, "S5"], [1, "A5"]]
    (bars,) = found["series"]
    assert bars == {
        "label": "grokked",
        "kind": "bars",
        "role": "validation",
        "source": "run",
        "x": [0, 1],
        "y": [0.5, 1.0],
        "base": [0.25, 0.0],
    }


def test_bars_stand_on_their_base_and_cells_have_their_depth() -> None:
    with house_style():
        drawn = draw(Figure("f", "fig:f", "Both", (panel(STACKED), panel(CELLS)), columns=2))
    bars, cells = drawn.axes
    assert [(bar.get_y(), bar.get_height()) for bar in bars.patches] == [(0.25, 0.5), (0.0, 1.0)]
    assert cells.collections[0].get_facecolor()[:, 3].tolist() == [0.5, 1.0]
    assert [text.get_text() for text in bars.get_yticklabels()] == ["none"]


def test_base_and_depth_are_columns_of_the_csv_where_a_series_has_them() -> None:
    assert figure_csv(Figure("f", "fig:f", "Bars", (panel(STACKED),))).splitlines()[0].endswith(b",text,base")
    plain = Series("a", "points", "fsd", "run", (0,), (1,))
    assert (
        figure_csv(Figure("f", "fig:f", "Dots", (panel(plain),))).splitlines()[0] == b"panel,series,x,y,low,high,text"
    )


def test_a_series_without_what_its_kind_needs_is_rejected() -> None:
    with pytest.raises(InputError, match="cells needs depth"):
        Series("a", "cells", "fsd", "run", (0,), (1,))
    with pytest.raises(InputError, match="equally long"):
        Series("a", "bars", "fsd", "run", (0, 1), (1, 2), base=(0,))


@pytest.mark.parametrize(("last", "expected"), [(2_000, [200, 500, 1000, 2000]), (400_000, [1000, 10_000, 100_000])])
def test_a_logarithmic_axis_has_as_many_ticks_as_fit(last: int, expected: list[int]) -> None:
    line = Series("accuracy", "line", "validation", "run", (180, last), (0.5, 1.0))
    with house_style():
        (axes,) = draw(Figure("f", "fig:f", "One", (Panel("P", "step", "accuracy", (line,), log_x=True),))).axes
    low, high = axes.get_xlim()
    assert [tick for tick in axes.get_xticks() if low <= tick <= high] == expected
