"""The table of a measured run: computed with a progress bar, written to a file, and printed as far as it fits."""

import json
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from grokscope.cli.columns import align
from grokscope.cli.grid import read_text
from grokscope.files import write_atomically
from grokscope.measures.catalogue import Row
from grokscope.runs import Reading, Run, measure_checkpoints
from grokscope.specs import ReadingSpec
from grokscope.view.render import csv_lines

__all__ = ["format_value", "measure_run", "read_reading"]


def measure_run(run: Run, names: Sequence[str], reading: Reading, path: Path, as_json: bool) -> None:
    """Measure a run at its checkpoints, write the table to the file, and print it."""
    parts = measure_checkpoints(run, names, reading)
    rows: list[Row] = []
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal) as bar:
        waiting = bar.add_task(f"measuring {escape(run.name)}", total=len(reading.steps or run.steps))
        for part in parts:
            rows += part
            bar.advance(waiting, len(part))
    table: list[Sequence[object]] = [[*rows[0]], *([row[column] for column in rows[0]] for row in rows)]
    write_atomically(path, _json(rows).encode() if path.suffix == ".json" else csv_lines(table))
    if as_json:
        print(_json(rows))
    else:
        _print(rows)
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


def _print(rows: list[Row]) -> None:
    """As many columns as fit into the window, and why some values are undefined."""
    columns = [column for column in rows[0] if column not in ("run", "undefined")]
    cells = {column: [format_value(row[column]) for row in rows] for column in columns}
    widths = accumulate(max(map(len, (column, *cells[column]))) + 2 for column in columns)
    shown = columns[: max(1, sum(width <= Console().width + 2 for width in widths))]
    print(align(shown, list(zip(*(cells[column] for column in shown), strict=True))))
    if len(columns) > len(shown):
        print(f"and {len(columns) - len(shown)} more columns in the file")
    for reason in dict.fromkeys(row["undefined"] for row in rows if row["undefined"]):
        steps = ", ".join(format_value(row["step"]) for row in rows if row["undefined"] == reason)
        print(f"undefined at step {steps}: {reason}")
