"""`grokscope query`: SQL over stored runs."""

import csv
import io
import json
from pathlib import Path
from typing import Annotated, Any

import tyro

from grokscope.cli.columns import aligned
from grokscope.errors import InputError
from grokscope.runs import open_runs
from grokscope.view.data import query as answer

__all__ = ["query"]

FORMULA = tuple("=+-@\t\r")  # how a text begins that a spreadsheet would compute


def query(
    sql: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SQL")],
    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")] = Path("runs"),
    as_csv: Annotated[bool, tyro.conf.arg(name="csv"), tyro.conf.FlagCreatePairsOff] = False,
    as_json: Annotated[bool, tyro.conf.arg(name="json"), tyro.conf.FlagCreatePairsOff] = False,
) -> None:
    """Ask all runs of a folder in SQL: one SELECT over the tables runs, log and measures.

    runs has a row per run (task, seed, weight_decay, outcome, memorized, synchronized, grokked, lead, …), log a row per
    look (run, step, validation_accuracy, fsd, …), measures a row per checkpoint measured while training. Nothing but
    these tables can be read, and nothing written. DESCRIBE runs lists a table's columns.

    Example: grokscope query "select task, count(*) as n, median(grokked) from runs group by task" runs/first

    Args:
        sql: The question, in DuckDB's SQL.
        out: A folder of runs.
        as_csv: Print CSV.
        as_json: Print a list of objects.
    """
    if as_csv and as_json:
        raise InputError("a result is printed as --csv or as --json, not as both")
    names, rows = answer(list(open_runs(out)), sql)
    if as_json:
        print(json.dumps([dict(zip(names, row, strict=True)) for row in rows], default=str))
    elif as_csv:
        print(_csv(names, rows), end="")
    else:
        numbers = {n for n, column in zip(names, zip(*rows, strict=True), strict=False) if _all_numbers(column)}
        print(aligned(names, [[_cell(value) for value in row] for row in rows], left=frozenset(names) - numbers))
        print(f"\n{len(rows):,} {'row' if len(rows) == 1 else 'rows'}")


def _csv(names: list[str], rows: list[tuple[Any, ...]]) -> str:
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([_neutral(name) for name in names])
    writer.writerows([[_neutral(value) for value in row] for row in rows])
    return file.getvalue()


def _neutral(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _all_numbers(values: tuple[Any, ...]) -> bool:
    return all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
