"""Whether forecasts mean what they say, as a table and as a figure."""

from collections.abc import Sequence
from itertools import pairwise
from math import isnan

from grokscope.forecast.benchmark import Scores
from grokscope.forecast.benchmark.calibration import EDGES, LEVELS, Bin
from grokscope.forecast.benchmark.cell_means import Score
from grokscope.view.charts.figure import Figure, Panel, Series

__all__ = ["calibration_figure", "calibration_tables"]

MOST_DRAWN = 4  # curves that can be told apart


def calibration_tables(scores: Sequence[Scores]) -> list[str]:
    """Lines of Markdown: the share that came in each bin of probabilities, and the coverage of intervals.

    >>> calibration_tables([])[0]
    '| forecaster | tier | 0–5 % | 5–20 % | 20–40 % | 40–60 % | 60–80 % | 80–95 % | 95–100 % |'
    """
    bins = [f"{100 * low:.0f}–{100 * high:.0f} %" for low, high in pairwise(EDGES)]
    levels = [f"{100 * (high - low):.0f} % intervals" for low, high in LEVELS]
    known = [(one, one.calibration) for one in scores if one.calibration is not None]
    came = [[one.name, str(one.tier), *map(_cell, found.bins)] for one, found in known]
    held = [[one.name, str(one.tier), *(str(share) for _, share in found.coverage)] for one, found in known]
    return [*_table(["forecaster", "tier", *bins], came), "", *_table(["forecaster", "tier", *levels], held)]


def _cell(one: Bin) -> str:
    return f"{one.came} ({one.forecasts:,})" if one.forecasts else "–"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def calibration_figure(scores: Sequence[Scores], of: str) -> Figure:
    """Reliability and coverage of at most four forecasters, with intervals over cells; `of` says of which runs.

    >>> [panel.title for panel in calibration_figure([], "test cells").panels]
    ['Probabilities', 'Intervals']
    """
    drawn = [one for one in scores if one.calibration is not None][:MOST_DRAWN]
    sure = Series("as said", "line", "theory", "null", (0, 1), (0, 1))
    return Figure(
        "calibration",
        "fig:calibration",
        f"Whether forecasts mean what they say, {of}",
        (
            Panel(
                "Probabilities", "mean probability of grokking within the horizon", "share that grokked",
                (sure, *(_reliability(one, place) for place, one in enumerate(drawn))), x_range=(0, 1), y_range=(0, 1),
            ),
            Panel(
                "Intervals", "share of times that an interval should hold", "share that it held",
                (sure, *(_coverage(one, place) for place, one in enumerate(drawn))), x_range=(0, 1), y_range=(0, 1),
            ),
        ),
    )  # fmt: skip


def _reliability(one: Scores, place: int) -> Series:
    assert one.calibration is not None
    bins = [found for found in one.calibration.bins if found.forecasts]
    texts = tuple(f"{found.forecasts:,}" for found in bins)
    return _curve(one, place, [found.said for found in bins], [found.came for found in bins], texts)


def _coverage(one: Scores, place: int) -> Series:
    assert one.calibration is not None
    found = [(level, share) for level, share in one.calibration.coverage if not isnan(share.value)]
    return _curve(one, place, [level for level, _ in found], [share for _, share in found])


def _curve(
    one: Scores, place: int, said: Sequence[float], shares: Sequence[Score], texts: tuple[str, ...] = ()
) -> Series:
    y, low, high = ([getattr(share, name) for share in shares] for name in ("value", "low", "high"))
    return Series(
        one.name, "line", f"line {place}", "seeds", tuple(said), tuple(y), tuple(low), tuple(high), texts=texts
    )
