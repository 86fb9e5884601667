"""The table of a measured run: computed with a progress bar, printed, and written to a file if one is named."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from grokscope.cli.columns import align
from grokscope.cli.grid import read_text
from grokscope.cli.measure_lines import MeasuringLines
from grokscope.errors import plural
from grokscope.files import write_atomically
from grokscope.measures.catalogue import MEASURES, Row
from grokscope.runs import Reading, Run, measure_checkpoints
from grokscope.specs import ReadingSpec
from grokscope.view.render import csv_lines

__all__ = ["format_value", "measure_run", "read_reading"]


def measure_run(
    run: Run, names: Sequence[str], reading: Reading, path: Path | None, is_whole: bool, as_json: bool
) -> None:
    """Measure a run at its checkpoints, write the table to a file if one is named, and print it."""
    parts = measure_checkpoints(run, names, reading)
    rows: list[Row] = []
    total = len(reading.steps or run.steps)
    console = Console(stderr=True)
    if console.is_terminal:
        with Progress(console=console) as bar:
            waiting = bar.add_task(f"measuring {escape(run.name)}", total=total)
            for part in parts:
                rows += part
                bar.advance(waiting, len(part))
    else:
        with MeasuringLines(run.name, total) as lines:
            for part in parts:
                rows += part
                lines.advance(len(part))
    table: list[Sequence[object]] = [[*rows[0]], *([row[column] for column in rows[0]] for row in rows)]
    if path is not None:
        write_atomically(path, _json(rows).encode() if path.suffix == ".json" else csv_lines(table))
    if as_json:
        print(_json(rows))
    else:
        _print(rows, None if is_whole else names)
        if path is not None:
            print(f"wrote {path}")


def read_reading(path: Path | None) -> ReadingSpec:
    """The ReadingSpec in a JSON file, or the usual one."""
    return ReadingSpec() if path is None else ReadingSpec.from_json(read_text(path, "the reading"))


def format_value(value: float | str) -> str:
    """A value of a measure in four significant digits."""
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _json(rows: list[Row]) -> str:
    return json.dumps([{k: None if v != v else v for k, v in row.items()} for row in rows], indent=1)


def _print(rows: list[Row], names: Sequence[str] | None) -> None:
    """The main column of each measure, or all columns, in as many tables as needed; then why some are undefined."""
    every = [column for column in rows[0] if column not in ("run", "step", "undefined")]
    first = [MEASURES[name].headline_of(every) for name in dict.fromkeys(names or ())]
    chosen = every if names is None else [column for column in first if column is not None]
    for columns in _blocks(rows, chosen):
        print(align(columns, [[format_value(row[column]) for column in columns] for row in rows]))
    if len(chosen) < len(every):
        print(f"{plural(len(every) - len(chosen), 'more column')}: --all prints them, --out FILE.csv writes them")
    for reason in dict.fromkeys(row["undefined"] for row in rows if row["undefined"]):
        steps = ", ".join(format_value(row["step"]) for row in rows if row["undefined"] == reason)
        print(f"undefined at step {steps}: {reason}")


def _blocks(rows: list[Row], columns: Sequence[str]) -> Iterator[list[str]]:
    """The columns in parts that fit into the window, each after the step."""

    def width(column: str) -> int:
        return max(len(column), *(len(format_value(row[column])) for row in rows)) + 2

    room = Console().width + 2 - width("step")
    block, used = ["step"], 0
    for column in columns:
        if used + width(column) > room and len(block) > 1:
            yield block
            block, used = ["step"], 0
        block, used = [*block, column], used + width(column)
    yield block
