"""A figure's files: pictures, and the numbers that are in them."""

import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grokscope.view.charts.drawing import draw
from grokscope.view.charts.figure import Figure
from grokscope.view.charts.style import house_style
from grokscope.view.render import csv_lines, csv_text, csv_value, write_files

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["PICTURES", "figure_csv", "pictures_of", "png_of", "write_figure"]

DOTS = 180  # per inch of a PNG
PATH = re.compile(rb' d="[^"]*"')
DIGITS = re.compile(rb"(\.[0-9]{2})[0-9]+")
UNTURNED = re.compile(rb' transform="rotate\(-0 [^"]*"')
COLUMNS, SPECIAL = ("x", "y", "low", "high", "text"), ("base", "depth")  # special ones only where a series has them
# Without dates and versions, the same figure gives the same bytes.
PICTURES: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def figure_csv(figure: Figure) -> bytes:
    """All that is drawn: a line for each number, with its panel and series; empty where there is none."""
    series = [(panel.title, one) for panel in figure.panels for one in panel.series]
    names = [*COLUMNS, *(name for name in SPECIAL if any(one.columns[name] for _, one in series))]
    lines = [["panel", "series", *names]]
    for title, one in series:
        columns = [one.columns[name] or ("",) * len(one) for name in names]
        rows = zip(*columns, strict=True)
        lines += [
            [csv_text(title), csv_text(one.label), *("" if x != x else csv_value(x) for x in row)] for row in rows
        ]
    return csv_lines(lines)


def pictures_of(figure: Figure, endings: Iterable[str] = PICTURES) -> dict[str, bytes]:
    """The figure as SVG, PNG and PDF, or those of them that are asked for, by the files' endings."""
    found = {}
    with house_style():
        drawn = draw(figure)
        for ending in endings:
            content = _saved(drawn, ending)
            found[ending] = _tidied(content) if ending == "svg" else content
    return found


def png_of(drawn: "Canvas") -> bytes:
    """A figure that is drawn already as PNG."""
    with house_style():
        return _saved(drawn, "png")


def _saved(drawn: "Canvas", ending: str) -> bytes:
    file = io.BytesIO()
    drawn.savefig(file, format=ending, dpi=DOTS, metadata=PICTURES[ending])
    return file.getvalue()


def _tidied(svg: bytes) -> bytes:
    """Paths to a hundredth of a point, which is finer than any screen; no idle markup; a font where ours is missing."""
    shorter = PATH.sub(lambda path: DIGITS.sub(rb"\1", path[0]), svg)
    plain = re.sub(rb"\n +", b"\n", UNTURNED.sub(b"", shorter))
    return plain.replace(b"font-family: 'DejaVu Sans'", b"font-family: 'DejaVu Sans', Verdana, sans-serif")


def write_figure(figure: Figure, folder: Path) -> tuple[Path, ...]:
    """Write `<name>.svg`, `.png`, `.pdf` and `.csv` into a folder, each whole or not at all; their paths."""
    return write_files(folder, figure.name, pictures_of(figure) | {"csv": figure_csv(figure)})
