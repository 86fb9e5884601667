"""From rows of any program to logs: which column is what, in which unit, and what is left out.

Rows are streamed. At most `MOST_VALUES` values are kept of a file; beyond that the longest columns are thinned evenly,
while the first steps at which a run memorised and grokked stay exact.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite, nan
from pathlib import Path
from typing import Any, Literal

from grokscope.errors import InputError, did_you_mean, for_shell, plural, require, shown
from grokscope.files import named
from grokscope.runs.foreign_logs.column_names import READ, STEP, column_meaning, run_and_column
from grokscope.runs.foreign_logs.event_rows import event_rows, is_event_file
from grokscope.runs.foreign_logs.log import ForeignLog
from grokscope.runs.foreign_logs.series import Series
from grokscope.runs.foreign_logs.text_rows import BAD_LINE, Row, json_rows, table_rows

__all__ = ["MOST_VALUES", "Unit", "read_foreign_logs"]

Unit = Literal["auto", "share", "percent"]
MOST_VALUES = 400_000  # about 100 MB
MOST_SERIES = 5_000  # columns of all runs of a file
CHECKED_EVERY = 4_096  # rows
LEVELS = (0.95, 0.99, 95.0, 99.0)  # at which a run has grokked or memorised, as shares and in percent
ABOVE_ONE = 1.001  # what rounding may make of 1
RUN_COLUMNS = ("run", "run_id", "run_name", "Run", "run id", "run name")
LARGEST_STEP = 2**53
MOST_BAD = 0.5  # share of lines that may be unreadable
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
NO_NUMBERS = {"", "none", "null", "na", "n/a", "-", "–"}
Key = tuple[str, str]  # run, column as the file calls it


def read_foreign_logs(path: Path, columns: Mapping[str, str] | None = None, unit: Unit = "auto") -> list[ForeignLog]:
    r"""The runs in a log: a CSV or TSV table, a W&B export, JSON, JSON lines, or TensorBoard's events and their folder.

    `columns` says what the file calls a column of ours where its name does not tell. Rows may be in any order; a value
    that is missing stays missing, and of one step's values the last counts.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "log.csv").write_text("step,train_acc,val_acc\n100,99.5,3\n0,1.5,2\n")
    ...     [log] = read_foreign_logs(Path(folder, "log.csv"))
    >>> log.columns["step"], log.columns["train_accuracy"], log.notes
    ([0, 100], [0.015, 0.995], ('accuracies are read as percent',))
    """
    given = dict(columns or {})
    for name in given:
        known = (STEP, *READ)
        if name not in known:
            listed = f"; --columns names one of {', '.join(known)}"
            raise InputError(f"there is no column {shown(name)}{did_you_mean(name, known) or listed}")
    meant = {raw: name for name, raw in given.items()}
    series, counts = _collect(_rows_of(path), meant)
    if unknown := [raw for raw in given.values() if raw not in counts.names]:
        raise InputError(f"{named(path)} has no column {shown(unknown[0])}{did_you_mean(unknown[0], counts.names)}")
    require(counts.rows, f"{named(path)} has no rows that can be read")
    why = f": {counts.why}" if counts.why else ""
    is_readable = counts.bad <= MOST_BAD * counts.rows
    require(is_readable, f"{plural(counts.bad, 'line')} of {counts.rows:,} of {named(path)} cannot be read{why}")
    runs: dict[str, dict[str, Series]] = {}
    for (run, raw), values in series.items():
        runs.setdefault(run, {})[raw] = values
    if not runs:
        raise InputError(
            f"{named(path)} has no column that can be recognised; say what they are with --columns "
            f"validation_accuracy=NAME; it has {', '.join(sorted(map(shown, counts.names))[:12])}"
        )
    return [_log(run or path.stem, one, meant, unit, counts) for run, one in sorted(runs.items())]


class _UnreadableError(Exception):
    """A line holds text where a number is needed; it is left out and counted."""


class _Counts:
    """What was met while rows were read."""

    def __init__(self) -> None:
        self.why = ""  # the first line with text in place of a number could not be read
        self.rows = self.bad = self.without_step = 0
        self.names: dict[str, None] = {}
        self.has_steps = True
        self.step_name = STEP


def _rows_of(path: Path) -> Iterator[Row]:
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if is_event_file(file) and file.is_file())
        other = "name one file of another kind"
        if any(path.glob("*/spec.json")):  # runs of our own
            other = f"its runs are grokscope's own: grokscope show {for_shell(path)}"
        require(files, f"the folder {named(path)} has no event files; {other}")
        for file in files:
            run = "" if file.parent == path else str(file.parent.relative_to(path))
            yield from ({**row, "run": run} for row in event_rows(file))
    elif is_event_file(path):
        yield from event_rows(path)
    elif {".json", ".jsonl", ".ndjson"} & {*path.suffixes} or path.name == "log":
        yield from json_rows(path)
    else:
        yield from table_rows(path)


def _collect(rows: Iterable[Row], given: Mapping[str, str]) -> tuple[dict[Key, Series], _Counts]:
    series: dict[Key, Series] = {}
    counts = _Counts()
    layouts: dict[tuple[str, ...], _Layout] = {}
    for row in rows:
        counts.rows += 1
        if row is BAD_LINE:
            counts.bad += 1
            continue
        if (layout := layouts.get(key := tuple(row))) is None:
            layout = _Layout(key, given)
            counts.names |= dict.fromkeys(key)
            if len(layouts) < MOST_SERIES:
                layouts[key] = layout
        try:
            step = _step(row, layout.step, counts)
            values = {raw: _number(raw, row[raw]) for raw, _, _ in layout.read if not _is_missing(row[raw])}
        except _UnreadableError as error:
            counts.bad += 1
            counts.why = counts.why or str(error)
            continue
        if step is None:
            counts.without_step += 1
            continue
        label = str(row[layout.label]) if layout.label and row[layout.label] is not None else ""
        for raw, run, is_accuracy in layout.read:
            if (value := values.get(raw)) is None:
                continue
            place = (run or label, raw)
            if (one := series.get(place)) is None:
                require(len(series) < MOST_SERIES, f"at most {MOST_SERIES:,} columns of all runs are read")
                one = series[place] = Series(LEVELS if is_accuracy else ())
            one.add(step, value)
        if counts.rows % CHECKED_EVERY == 0:
            _thin(series)
    _thin(series)
    return series, counts


class _Layout:
    """What is read of all rows with the same columns."""

    def __init__(self, names: tuple[str, ...], given: Mapping[str, str]) -> None:
        meanings = {raw: _meaning(raw, given) for raw in names}
        steps = [(rank, raw) for raw, (name, rank) in meanings.items() if name == STEP]
        self.step = min(steps)[1] if steps else None
        self.label = next((name for name in RUN_COLUMNS if name in names), None)
        self.read = [
            (raw, run_and_column(raw)[0], name.endswith("accuracy"))
            for raw, (name, _) in meanings.items()
            if name in READ
        ]


def _meaning(raw: str, given: Mapping[str, str]) -> tuple[str, int]:
    """Our name of a column of the file and its rank; an empty name where it is not read."""
    return (given[raw], -2) if raw in given else column_meaning(run_and_column(raw)[1]) or ("", 0)


def _thin(series: Mapping[Key, Series]) -> None:
    total = sum(map(len, series.values()))
    while total > MOST_VALUES:
        longest = max(series.values(), key=len)
        total -= len(longest)
        longest.halve()
        total += len(longest)


def _step(row: Row, name: str | None, counts: _Counts) -> int | None:
    """The step of a row; its number where no column counts steps, None where that is empty."""
    if name is None:
        counts.has_steps = False
        return counts.rows - 1
    counts.step_name, value = name, row[name]
    if _is_missing(value):
        return None
    step = _number(name, value)
    is_step = isfinite(step) and step == int(step) and 0 <= step < LARGEST_STEP
    require(is_step, f"steps must be whole numbers of at least 0; the column {shown(name)} holds another", value)
    return int(step)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in NO_NUMBERS)


def _number(name: str, value: Any) -> float:
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        return float(value)
    except (ValueError, OverflowError):
        if isinstance(value, str) and DECIMAL_COMMA.fullmatch(value.strip()):
            rule = f"the column {shown(name)} must have decimal points, not commas"
            raise InputError(f"{rule}, got {shown(value)}") from None
        raise _UnreadableError(f"the column {shown(name)} must hold numbers, got {shown(value)}") from None


def _chosen(series: Mapping[str, Series], given: Mapping[str, str], notes: list[str]) -> dict[str, Series]:
    """For each column of ours the one of the file's that is read."""
    ranked: dict[str, list[tuple[int, str]]] = {}
    for raw in series:
        name, rank = _meaning(raw, given)
        ranked.setdefault(name, []).append((rank, raw))
    for name, candidates in ranked.items():
        if len(candidates) > 1:
            first, *others = (shown(run_and_column(raw)[1]) for _, raw in sorted(candidates))
            notes.append(f"{name} is read from {first}, not from {' or '.join(others[:3])}")
    return {name: series[min(candidates)[1]] for name, candidates in ranked.items()}


def _log(run: str, found: Mapping[str, Series], given: Mapping[str, str], unit: Unit, counts: _Counts) -> ForeignLog:
    notes: list[str] = []
    chosen = _chosen(found, given, notes)
    accuracies = {name: one for name, one in chosen.items() if name.endswith("accuracy") and one.most >= one.least}
    divisor = _divisor(accuracies, unit)
    points = {name: one.points() for name, one in chosen.items()}
    if divisor > 1 and unit == "auto":
        small = sum(0 < value <= 1 for name in accuracies for value in points[name].values())
        among = f", also {plural(small, 'value')} of at most 1" if small else ""
        notes.append(f"accuracies are read as percent{among}")
    steps = sorted({step for values in points.values() for step in values})
    columns: dict[str, list[int | float]] = {STEP: [*steps]}
    for name, values in points.items():
        scale = divisor if name in accuracies else 1.0
        columns[name] = [values[step] / scale if step in values else nan for step in steps]
    if counts.bad:
        why = f" ({counts.why})" if counts.why else ""
        notes.append(f"{plural(counts.bad, 'line')} that could not be read left out{why}")
    if counts.without_step:
        notes.append(f"{plural(counts.without_step, 'row')} without a step left out")
    if not counts.has_steps:
        notes.append("no column counts steps: rows are numbered from 0")
    elif "epoch" in counts.step_name.lower():
        notes.append(f"{counts.step_name!r} is read as steps: one step per epoch")
    if repeated := sum(one.repeated for one in chosen.values()):
        notes.append(f"{plural(repeated, 'value')} given anew for the same step: the last counts")
    stride = max((one.stride for one in chosen.values()), default=1)
    if stride > 1:
        notes.append(f"thinned to one evaluation in {stride:,} steps at most; first crossings are exact")
    return ForeignLog(run, columns, _failed_at(points.get("train_loss", {})), tuple(notes))


def _divisor(accuracies: Mapping[str, Series], unit: Unit) -> float:
    """100 where accuracies are percent: if any of them is above 1."""
    most = max((one.most for one in accuracies.values()), default=0.0)
    least = min((one.least for one in accuracies.values()), default=0.0)
    is_percent = unit == "percent" or (unit == "auto" and most > ABOVE_ONE)
    limit = 100 * ABOVE_ONE if is_percent else ABOVE_ONE
    rule = f"accuracies must lie in [0, {'100' if is_percent else '1'}]"
    require(least >= 0, rule, least)
    require(most <= limit, rule, most)
    return 100.0 if is_percent else 1.0


def _failed_at(losses: Mapping[int, float]) -> int | None:
    """The step from which on the training loss is no finite number; None if the last one is."""
    finite = [step for step, loss in losses.items() if isfinite(loss)]
    after = max(finite, default=-1)
    return next((step for step, loss in losses.items() if step > after and not isfinite(loss)), None)
