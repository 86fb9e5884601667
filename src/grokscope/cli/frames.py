"""The picture that `grokscope watch` shows, a pure function of what is known: a line per group, and what is new."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, isnan, nan

from rich.console import Group
from rich.table import Table
from rich.text import Text

__all__ = ["Ahead", "Line", "Watched", "duration", "frame", "sparkline"]

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = "_.-=+*%#"
SHOWN_ALERTS = 12
SHOWN_HISTORY = 12  # letters
WIDE = 100  # columns of a window


@dataclass(frozen=True)
class Line:
    """One group of runs."""

    label: str
    """What its runs have in common."""
    runs: int
    finished: int
    synchronized: int | None
    """How many have synchronised so far, unread ones estimated; None if that is not known."""
    grokked: int
    progress: float
    """Steps taken, as a share of all steps."""
    validation: tuple[float, ...]
    """Mean validation accuracy over time; NaN where nothing was measured."""
    fsd: tuple[float, ...]
    """Mean FSD over time."""
    rate: float | None
    """Steps of all its runs together per second; None if nothing is being written, or not known yet."""
    left: float | None
    """Seconds until its last run ends if none ends early; None without a rate."""
    quiet: float | None
    """Seconds since anything was written; None if all have ended, or none has begun."""
    unread: int = 0
    """How many had ended before the watch began, so that only their outcomes were read."""
    ahead: "Ahead | None" = None
    """Where its runs that have not ended are heading; None if there are none."""


@dataclass(frozen=True)
class Ahead:
    """Forecasts of the runs of one group."""

    runs: int
    """How many are forecast: of those that have neither grokked nor ended, 200 at most."""
    probability: float
    """Mean probability of grokking by their last steps."""
    history: tuple[float, ...]
    """The same as it was over time, in equal parts of the steps; NaN where there was no forecast."""
    low: float
    """Median over the runs of the step by which a run groks with probability 10 %; infinite where that never comes."""
    middle: float
    """The same with 50 %."""
    high: float
    """The same with 90 %."""
    outside: int
    """How many are unlike the runs that the forecaster was fitted to."""
    stops: int
    """How many it suggests to stop, grokked ones among them."""
    saves: int
    """Steps that this would save."""


@dataclass(frozen=True)
class Watched:
    """A folder at one moment."""

    folder: str
    groups: str
    """What the runs of one line have in common, in words."""
    lines: tuple[Line, ...]
    alerts: tuple[str, ...]
    """What happened since the watch began, oldest first."""
    damaged: tuple[str, ...] = ()
    """Lines about the runs that are left out because they are damaged."""


def frame(state: Watched, width: int = 120, ascii_only: bool = False) -> Group:
    """A picture of the state for a window of some width; the same state gives the same picture."""
    runs, finished = sum(line.runs for line in state.lines), sum(line.finished for line in state.lines)
    rates = [line.rate for line in state.lines if line.rate]
    speed = f", {sum(rates):,.0f} run-steps/s" if rates else ""
    heading = Text(f"{state.folder}: {finished:,} of {runs:,} runs finished{speed}", style="bold")
    damaged = [Text(line, style="bold") for line in state.damaged]
    if not state.lines:
        return Group(heading, *(damaged or [Text("no run here yet")]))
    table = Table(box=None, pad_edge=False, padding=(0, 1 if width < WIDE else 2, 0, 0))
    for column in ("runs", "done", "validation", "FSD", "sync", "grok", "steps/s", "left"):
        is_left = column in ("runs", "validation", "FSD")
        table.add_column(
            column, justify="left" if is_left else "right", no_wrap=True, min_width=None if column == "runs" else 4
        )
    for line in state.lines:
        table.add_row(*(Text(cell) for cell in _cells(line, width, ASCII if ascii_only else BLOCKS)))
    alerts = [Text(alert, style="bold") for alert in state.alerts[-SHOWN_ALERTS:]]
    unread = sum(line.unread for line in state.lines)
    unread_note = (
        f"\n{unread:,} had ended before; of them only the outcomes were read, and curves and ~ are of the others"
    )
    explained = Text(
        f"a line stands for {state.groups}; 2×128: 2 layers of width 128{unread_note if unread else ''}", style="dim"
    )
    forecasts = _forecasts(state, ASCII if ascii_only else BLOCKS)
    below = [line for part in (forecasts, damaged, alerts) if part for line in (Text(""), *part)]
    return Group(heading, explained, Text(""), table, *below)


def _forecasts(state: Watched, letters: str) -> list[Text]:
    """Where runs are heading, a line for each group, and whether stopping some would save steps."""
    groups = [(line, line.ahead) for line in state.lines if line.ahead is not None]
    lines = [_forecast(line, ahead, letters) for line, ahead in groups if ahead.runs]
    if lines:
        lines.insert(
            0, Text("forecast: runs, probability of grokking by the last step so far, median step (80 %)", "dim")
        )
    stops, saves = (sum(getattr(ahead, name) for _, ahead in groups) for name in ("stops", "saves"))
    if stops:
        lines.append(Text(f"advice: stopping {stops:,} of them now would save {saves:,} steps (grokscope forecast)"))
    return lines


def _forecast(line: Line, ahead: Ahead, letters: str) -> Text:
    history = sparkline(_shortened(ahead.history, SHOWN_HISTORY), letters).rstrip()
    steps = f"{_step(ahead.middle)} ({_step(ahead.low)} to {_step(ahead.high)})"
    doubt = f"; {ahead.outside:,} unlike the runs fitted to" if ahead.outside else ""
    return Text(f"{line.label}: {ahead.runs:,} {history} {100 * ahead.probability:.0f} %, {steps}{doubt}")


def _step(step: float) -> str:
    return f"{round(step, -2):,.0f}" if isfinite(step) else "never"


def _cells(line: Line, width: int, letters: str) -> tuple[str, ...]:
    room = 5 if width < WIDE else 12 if width < 120 else 24
    longest = max(width - 2 * room - (46 if width < WIDE else 56), 12)
    return (
        line.label if len(line.label) <= longest else f"{line.label[: longest - 1]}…",
        f"{int(100 * line.progress + 1e-9)}%",  # 100% is said of what has ended
        f"{sparkline(_shortened(line.validation, room), letters)} {_last(line.validation)}",
        f"{sparkline(_shortened(line.fsd, room), letters)} {_last(line.fsd)}",
        "–" if line.synchronized is None else f"{'~' if line.unread else ''}{line.synchronized:,}",
        f"{line.grokked:,}",
        "–" if line.rate is None else f"{line.rate:,.0f}",
        _left(line),
    )


def _shortened(values: Sequence[float], count: int) -> list[float]:
    """At most this many values, each the last known one of its part."""
    size = -(-len(values) // count)
    parts = [values[start : start + size] for start in range(0, len(values), size)] if size else []
    return [next((value for value in reversed(part) if not isnan(value)), nan) for part in parts]


def _left(line: Line) -> str:
    if line.finished == line.runs:
        return "finished"
    if line.left is not None:
        return duration(line.left)
    return "waiting" if line.quiet is None else f"quiet {duration(line.quiet)}"


def sparkline(values: Sequence[float], letters: str = BLOCKS) -> str:
    """Values from 0 to 1 as a row of letters; a gap where there is none.

    >>> sparkline([0.0, 0.5, nan, 1.0])
    '▁▅ █'
    """
    top = len(letters) - 1
    return "".join(" " if isnan(value) else letters[round(min(max(value, 0), 1) * top)] for value in values)


def _last(values: Sequence[float]) -> str:
    known = next((value for value in reversed(values) if not isnan(value)), nan)
    return "   –" if isnan(known) else f"{known:.2f}"


def duration(seconds: float) -> str:
    """A time for people.

    >>> [duration(seconds) for seconds in (5, 90, 7260, 200_000)]
    ['5 s', '2 min', '2 h 01', '2 d 07 h']
    """
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    if minutes < 100:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h {minutes % 60:02d}" if hours < 48 else f"{hours // 24} d {hours % 24:02d} h"
