"""`grokscope query`: SQL over stored runs."""

import json
import sys
from typing import Annotated, Any, Literal

import tyro

from grokscope.cli.columns import align
from grokscope.cli.damage import describe_damage
from grokscope.cli.nearby import describe_absence
from grokscope.cli.options import Folder, JsonFlag
from grokscope.errors import InputError
from grokscope.runs import open_runs

__all__ = ["query"]

FORMULA = tuple("=+-@\t\r")  # how a text begins that a spreadsheet would compute


def query(
    folder: Folder,
    sql: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SQL")],
    format: Literal["text", "csv", "json"] = "text",
    as_json: JsonFlag = False,
) -> None:
    """Query all runs of a folder in SQL.

    The query is one SELECT over three tables: runs has a row per run (task, seed, weight_decay, outcome, memorized,
    synchronized, grokked, lead, …), log a row per evaluation (run, step, validation_accuracy, fsd, …), measures a row
    per checkpoint measured while training. Nothing else can be read, and nothing written. DESCRIBE runs lists the
    columns of a table. An outcome has the word that `grokscope list` shows: grokked; grokked, then unstable;
    not grokked; unstable; not memorised; diverged; unfinished. Columns have American spelling (memorized).

    Args:
        sql: The query, in DuckDB's SQL.
        format: How the result is printed.

    Examples:
        grokscope query runs/first "select task, count(*) as n, median(grokked) from runs group by task"
        grokscope query runs/first "select run, step, fsd from log" --format csv
    """
    if as_json and format == "csv":
        raise InputError("a result is printed as --format csv or as --json, not as both")
    runs = open_runs(folder)
    if not runs:
        raise InputError(describe_absence(folder))
    from grokscope.view.data import query as answer

    damaged: dict[str, str] = {}
    names, rows = answer(runs, sql, damaged.__setitem__)
    if damage := describe_damage(damaged, folder):
        print(damage, file=sys.stderr)
    if as_json or format == "json":
        print(json.dumps([dict(zip(names, row, strict=True)) for row in rows], default=str))
    elif format == "csv":
        from grokscope.view.render import csv_lines

        print(csv_lines([_neutral(value) for value in row] for row in (names, *rows)).decode(), end="")
    else:
        names = [_printable(name) for name in names]
        numbers = {n for n, column in zip(names, zip(*rows, strict=True), strict=False) if _all_numbers(column)}
        print(align(names, [[_cell(value) for value in row] for row in rows], left=frozenset(names) - numbers))
        print(f"\n{len(rows):,} {'row' if len(rows) == 1 else 'rows'}")


def _neutral(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return f"'{_printable(value)}" if value.startswith(FORMULA) else _printable(value)


def _all_numbers(values: tuple[Any, ...]) -> bool:
    return all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return _printable(f"{value:.6g}" if isinstance(value, float) else str(value))


def _printable(text: str) -> str:
    """The text without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
