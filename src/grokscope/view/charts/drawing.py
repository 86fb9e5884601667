"""Charts drawn with matplotlib, in one style."""

from collections.abc import Callable
from math import ceil, isfinite, log10
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.charts.style import COLORS, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["draw"]

LETTERS = "abcdefghijkl"
TITLE_LETTER, LEGEND_LETTER, LINE_HEIGHT = 0.076, 0.060, 0.165  # inches: the mean letter, and a line of type
HANDLE = 0.42  # inches of the sign before a legend's words, and the space after them
ROOM, ROOM_FOR_WORDS = 0.06, 0.21  # shares of the y axis left free above and below
ROOM_FOR_LETTER = 0.03  # the same, of long words
TICK_WIDTH, TICK_HEIGHT = 0.55, 0.38  # inches that an interval between ticks needs
WORD_GAP, LONG = 4.0, 4  # points; a longer word stands upright
BESIDE = 3.5  # points
WIDE = 1e5  # end over end: a logarithmic axis that needs no ticks but powers of ten
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
BEHIND, BETWEEN, FRONT = 1, 2, 4


def draw(figure: Figure) -> "Canvas":
    """The figure as matplotlib's, to be saved under `house_style`; no global state is touched."""
    from matplotlib.figure import Figure as Canvas

    rows = ceil(len(figure.panels) / figure.columns)
    width = figure.columns * figure.panel_size[0]
    title = wrap(figure.title, int(width / TITLE_LETTER))
    entries = list(dict.fromkeys(one.entry for panel in figure.panels for one in panel.series if one.entry))
    across = _legend_columns(entries, width)
    extra = LINE_HEIGHT * (len(title) + 1 + ceil(len(entries) / across))
    canvas = Canvas(figsize=(width, rows * figure.panel_size[1] + extra), layout="constrained")
    handles: dict[str, Any] = {}
    for place, panel in enumerate(figure.panels):
        axes = canvas.add_subplot(rows, figure.columns, place + 1)
        _scale(axes, panel, figure.panel_size)
        handles = _draw_panel(axes, panel, LETTERS[place] if len(figure.panels) > 1 else "") | handles
        _thin_ticks(axes, panel, figure.panel_size)
    canvas.suptitle("\n".join(title), x=0.01, ha="left", fontweight="bold")
    if entries:
        canvas.legend([handles[entry] for entry in entries], entries, loc="outside lower center", ncols=across)
    canvas.draw_without_rendering()  # lays it out,
    canvas.set_layout_engine(None)  # once for all formats, none of which is then drawn twice
    return canvas


def _legend_columns(entries: list[str], width: float) -> int:
    """As many columns as fit; a legend is filled column by column, the first ones longest."""
    for across in range(len(entries), 1, -1):
        ends = [len(part) for part in np.array_split(np.arange(len(entries)), across)]
        columns = [entries[sum(ends[:i]) : sum(ends[: i + 1])] for i in range(across)]
        if sum(LEGEND_LETTER * max(map(len, column)) + HANDLE for column in columns) <= width:
            return across
    return 1


def _draw_panel(axes: "Axes", panel: Panel, letter: str) -> dict[str, Any]:
    """Draw every series; what the legend shows of each label."""
    drawn = [(one.entry, DRAWN[one.kind](axes, one, panel)) for one in panel.series if len(one)]
    axes.set_title(f"({letter}) {panel.title}" if letter else panel.title)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    _finish(axes, panel)
    if not panel.has_runs:
        box = {"facecolor": "white", "edgecolor": "none", "pad": 3}
        axes.text(0.5, 0.5, "no runs", transform=axes.transAxes, ha="center", va="center", color="#666666", bbox=box)
    return dict(reversed(drawn))  # the first of each label


def _scale(axes: "Axes", panel: Panel, size: tuple[float, float]) -> None:
    """Logarithms, and as many ticks as can be read."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    most = (int(size[0] / TICK_WIDTH), int(size[1] / TICK_HEIGHT))
    for axis, is_log, bins in ((axes.xaxis, panel.log_x, most[0]), (axes.yaxis, panel.log_y, most[1])):
        if is_log:
            (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)) if is_log else MaxNLocator(bins, steps=[1, 2, 2.5, 5, 10]))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(_tick))
    if panel.log_y and panel.y_range and panel.y_range[1] / panel.y_range[0] > WIDE:
        axes.yaxis.set_major_locator(LogLocator(numticks=most[1] + 1))
        axes.yaxis.set_major_formatter(FuncFormatter(_power))


def _thin_ticks(axes: "Axes", panel: Panel, size: tuple[float, float]) -> None:
    """Powers of ten alone on a logarithmic axis that is too short for 1, 2 and 5 of each."""
    from matplotlib.ticker import LogLocator

    for axis, is_log, most in (
        (axes.xaxis, panel.log_x and not panel.x_ticks, size[0] / TICK_WIDTH),
        (axes.yaxis, panel.log_y and not panel.y_ticks, size[1] / TICK_HEIGHT),
    ):
        low, high = axis.get_view_interval()
        if is_log and 3 * log10(high / low) > most:
            axis.set_major_locator(LogLocator(numticks=int(most) + 1))


def _tick(value: float, place: object = None) -> str:
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return text.replace("-", "−")


def _power(value: float, place: object = None) -> str:
    return f"10{str(round(log10(value))).translate(RAISED)}"


def _finish(axes: "Axes", panel: Panel) -> None:
    """Ticks by name, a line at zero, and ends that leave room."""
    if panel.y_ticks:
        axes.set_yticks(*zip(*panel.y_ticks, strict=True))
    if panel.x_ticks:
        places, names = zip(*panel.x_ticks, strict=True)
        axes.set_xticks(places, names)
        axes.grid(visible=panel.log_x, axis="x")
        axes.set_xlim(*(panel.x_range or (min(places) - 0.6, max(places) + 0.6)))
    elif panel.x_range:
        axes.set_xlim(*panel.x_range)
    if any(one.kind == "bars" and len(one) for one in panel.series):
        axes.axhline(0, color="#555555", linewidth=0.6, zorder=BETWEEN)
    ends = panel.y_range or _y_ends(panel)
    if ends:
        axes.set_ylim(*ends)


def _y_ends(panel: Panel) -> tuple[float, float] | None:
    """Ends of y that leave room around every number, and more where words stand; None without numbers."""
    drawn = [one for one in panel.series if one.kind not in ("span", "vertical")]
    values = [float(value) for one in drawn for part in (one.y, one.low, one.high) for value in part if isfinite(value)]
    has_bars = any(one.kind == "bars" for one in drawn)
    values += [0.0] if has_bars else []
    if not values or min(values) == max(values):
        return None
    low, high = (log10(end) if panel.log_y else end for end in (min(values), max(values)))
    longest = max((len(text) for one in drawn for text in one.texts), default=0)  # long ones are set upright
    room = (high - low) * (max(ROOM_FOR_WORDS, ROOM_FOR_LETTER * longest) if longest else ROOM)
    low, high = (low if has_bars and low == 0 else low - room), high + room
    return (10**low, 10**high) if panel.log_y else (low, high)


def _style(one: Series) -> dict[str, Any]:
    """Colour, width and dashes: by the role and the source of a series."""
    color = COLORS.get(one.role, "#000000")
    styles: dict[str, dict[str, Any]] = {
        "run": {"linewidth": 1.5, "zorder": FRONT},
        "seeds": {"linewidth": 0.9, "linestyle": (0, (5, 1.5)), "zorder": BETWEEN},
        "paper": {"linewidth": 1.1, "linestyle": ":", "zorder": FRONT},
        "fit": {"linewidth": 1.0, "linestyle": "--", "zorder": BETWEEN},
        "null": {"linewidth": 1.0, "linestyle": "-.", "zorder": BETWEEN},
    }
    return {"color": color} | styles[one.source]


def _line(axes: "Axes", one: Series, panel: Panel) -> Any:
    (line,) = axes.plot(one.x, one.y, **_style(one), drawstyle="steps-post" if one.kind == "step" else "default")
    if not one.low:
        return line
    return line, _band(axes, one, panel)


def _band(axes: "Axes", one: Series, panel: Panel) -> Any:
    style, step = _style(one), "post" if one.kind == "step" else None
    # The paper's bands are hatched, so that they differ from ours in any colour.
    filled = {"facecolor": style["color"], "alpha": 0.18, "linewidth": 0}
    if one.source == "null":  # may be so narrow that its edge is all there is to see
        filled = {"color": style["color"], "alpha": 0.3, "linewidth": 0.8}
    if one.source == "paper":
        filled = {"facecolor": "none", "edgecolor": style["color"], "hatch": "////", "linewidth": 0, "alpha": 0.45}
    return axes.fill_between(one.x, one.low, one.high, step=step, zorder=BEHIND, **filled)  # type: ignore[arg-type]


def _points(axes: "Axes", one: Series, panel: Panel) -> Any:
    color, is_paper = _style(one)["color"], one.source == "paper"
    y = np.array(one.y, dtype=np.float64)
    marker = "D" if is_paper else MARKERS.get(one.role, "o")
    size = {"D": 4.2, "*": 8.5}.get(marker, 4.5 if one.source == "run" else 3.8)
    face = "white" if is_paper or one.source == "seeds" else color
    made = axes.errorbar(
        one.x,
        y,
        yerr=_spread(one),
        fmt=marker,
        color=color,
        markersize=size,
        markerfacecolor=face,
        markeredgecolor=color if marker != "*" else "#000000",
        markeredgewidth=0.9 if marker != "*" else 0.5,
        elinewidth=0.9,
        capsize=1.8,
        capthick=0.9,
        zorder=FRONT + (1 if is_paper else 0),
        clip_on=False,
        transform=_beside(axes, one) if _share_places(panel) else axes.transData,
    )
    _words(axes, one, -2.5 * BESIDE if one.source == "seeds" and panel.x_ticks else 0.0)
    return made


def _spread(one: Series) -> Any:
    """From y to either end; nothing on a side without an end, and NaN without a y."""
    if not one.low:
        return None
    y = np.array(one.y, dtype=np.float64)
    ends = np.abs(np.stack([y - np.array(one.low, dtype=np.float64), np.array(one.high, dtype=np.float64) - y]))
    return np.where(np.isnan(y), np.nan, np.nan_to_num(ends))


def _share_places(panel: Panel) -> bool:
    """Whether points of several sources stand at the same named places."""
    sources = {one.source for one in panel.series if one.kind == "points" and len(one)}
    return bool(panel.x_ticks) and len(sources) > 1


def _beside(axes: "Axes", one: Series) -> Any:
    """Where several points share one place, ours of many seeds stand left of it and the paper's right."""
    from matplotlib.transforms import ScaledTranslation

    points = {"seeds": -BESIDE, "paper": BESIDE}.get(one.source, 0.0)
    scale = axes.get_figure(root=True).dpi_scale_trans  # type: ignore[union-attr]
    return axes.transData + ScaledTranslation(points / 72, 0, scale)


def _bars(axes: "Axes", one: Series, panel: Panel) -> Any:
    color = _style(one)["color"]
    made = axes.bar(
        one.x,
        np.array(one.y, dtype=np.float64),
        width=one.width,
        bottom=one.base or 0,
        yerr=_spread(one),
        color=color,
        alpha=0.85,
        zorder=BETWEEN,
        error_kw={"elinewidth": 0.8, "capsize": 1.5, "zorder": FRONT},
    )
    _words(axes, one)
    return made


def _words(axes: "Axes", one: Series, aside: float = 0.0) -> None:
    """Each word beyond its point or bar, clear of its interval; at the foot where there is no number."""
    ends = one.high or one.y
    for place, text in enumerate(one.texts):
        y, end = one.y[place], ends[place]
        is_below = y < 0
        top = end if isfinite(end) and end > y else y if isfinite(y) else 0.0
        axes.annotate(
            text,
            (one.x[place], y if is_below else top),
            xytext=(aside, -WORD_GAP if is_below else WORD_GAP),
            textcoords="offset points",
            ha="center",
            va="top" if is_below else "bottom",
            rotation=90 if len(text) > LONG else 0,
            fontsize=6.2,
            color="#333333",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.4} if text else None,
            zorder=FRONT + 2,
        )


def _cells(axes: "Axes", one: Series, panel: Panel) -> Any:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    color, places = _style(one)["color"], zip(one.x, one.y, strict=True)
    squares = [Rectangle((x - 0.5, y - 0.5), 1, 1) for x, y in places]
    axes.add_collection(PatchCollection(squares, facecolors=[(color, depth) for depth in one.depth], linewidths=0))
    return Rectangle((0, 0), 1, 1, color=color)


def _vertical(axes: "Axes", one: Series, panel: Panel) -> Any:
    marks = [axes.axvline(x, **_style(one) | {"linewidth": 0.9, "zorder": BETWEEN}) for x in one.x]
    for x, text in zip(one.x, one.texts, strict=False):  # left of it, at the top
        place: Any = {"xycoords": ("data", "axes fraction"), "xytext": (-2, -1), "textcoords": "offset points"}
        axes.annotate(text, (x, 1), **place, ha="right", va="top", fontsize=6.2, color="#333333")
    return marks[0]


def _horizontal(axes: "Axes", one: Series, panel: Panel) -> Any:
    marks = [axes.axhline(y, **_style(one) | {"linewidth": 0.9, "zorder": BETWEEN}) for y in one.y]
    return marks[0]


def _span(axes: "Axes", one: Series, panel: Panel) -> Any:
    color = _style(one)["color"]
    ends = zip(one.low, one.high, strict=True)
    marks = [axes.axvspan(low, high, color=color, alpha=0.10, linewidth=0, zorder=0) for low, high in ends]
    return marks[0]


DRAWN: dict[str, Callable[["Axes", Series, Panel], Any]] = {
    "line": _line,
    "step": _line,
    "points": _points,
    "bars": _bars,
    "band": _band,
    "vertical": _vertical,
    "horizontal": _horizontal,
    "span": _span,
    "cells": _cells,
}
