"""Stored runs as three tables for other programs: `runs`, `log` and `measures`, in Arrow, Parquet or SQL.

What was undefined (NaN, null in a log) is null. Needs pyarrow, and for SQL duckdb: `pip install 'grokscope[data]'`.
"""

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from grokscope.errors import InputError, shown
from grokscope.files import DamagedError, make_folder, named, write_atomically
from grokscope.runs import DamagedRunWarning, Run, Runs
from grokscope.runs.runs import with_settings
from grokscope.view import require_module

__all__ = ["TABLES", "query", "tables_of", "write_parquet"]

TABLES = ("runs", "log", "measures")
Row = Mapping[str, Any]
ReportDamage = Callable[[str, str], None]
"""Is called with each damaged run's name and what is wrong with it."""


def warn_of_damage(name: str, why: str) -> None:
    """Warn that a run is damaged."""
    warnings.warn(f"{name} is damaged: {why}", DamagedRunWarning, stacklevel=2)


def tables_of(
    runs: Runs | Sequence[Run], names: Iterable[str] = TABLES, report: ReportDamage = warn_of_damage
) -> dict[str, Any]:
    """The Arrow tables with these names; others are not read.

    `runs` has a row per run, `log` one per evaluation, `measures` one per checkpoint that was measured
    while training; both begin with the run's name and the step. A damaged run is reported; it has a row in `runs`, with
    its problem, and none in the others.

    Example::

        tables_of(open_runs("runs/first"), ["log"])["log"].column_names
    """
    arrow = require_module("pyarrow", "data")
    return {name: _table(arrow, _rows(runs, name, report)) for name in names}


def _rows(runs: Runs | Sequence[Run], table: Any, report: ReportDamage) -> Sequence[Row]:
    if table == "runs":
        rows = runs.facts() if isinstance(runs, Runs) else [run.facts() for run in runs]
        for row in rows:
            if row["problem"] is not None:
                report(row["run"], row["problem"])
        return with_settings(rows)
    whole, damaged = runs.survey() if isinstance(runs, Runs) else (runs, {})
    found = []
    for run in whole:
        try:
            found += [{"run": run.name, **row} for row in run.folder.log(table)]
        except DamagedError as error:
            damaged[run.name] = str(error)
    for name, why in damaged.items():
        report(name, why)
    return found


def write_parquet(
    runs: Runs | Sequence[Run], folder: Path, report: ReportDamage = warn_of_damage, replace: bool = False
) -> list[Path]:
    """Write runs.parquet, log.parquet and measures.parquet into a folder, which must not hold them unless replaced.

    Example::

        write_parquet(open_runs("runs/first"), Path("parquet"))
    """
    parquet, arrow = require_module("pyarrow.parquet", "data"), require_module("pyarrow", "data")
    paths = {name: folder / f"{name}.parquet" for name in TABLES}
    for path in paths.values():
        if path.exists() and not (replace and path.is_file()):
            raise InputError(f"{named(path)} exists already; nothing was overwritten (--force replaces it)")
    make_folder(folder)
    for name, table in tables_of(runs, report=report).items():
        stream = arrow.BufferOutputStream()
        parquet.write_table(table, stream, compression="zstd")
        write_atomically(paths[name], stream.getvalue().to_pybytes())
    return list(paths.values())


def query(
    runs: Runs | Sequence[Run], sql: str, report: ReportDamage = warn_of_damage
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The result of one SELECT over the tables: its columns and rows.

    The database is in memory and sees the tables alone: no file, no network, no extension, no setting.

    Example::

        runs = open_runs("runs/first")
        query(runs, "select run, grokked from runs where weight_decay = 2")
    """
    duckdb = require_module("duckdb", "data")
    if not _is_text(sql):
        raise InputError(f"a query is a text of whole letters, got {shown(sql)}")
    settings = dict.fromkeys(("autoinstall_known_extensions", "autoload_known_extensions"), "false")
    settings |= {"python_enable_replacements": "false", "temp_directory": ""}
    with duckdb.connect(":memory:", config=settings) as database:
        ask = partial(_execute, duckdb)
        statements = ask(database.extract_statements, sql)
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            kinds = " and ".join(statement.type.name for statement in statements) or "nothing"
            raise InputError(f"a query is one SELECT over {', '.join(TABLES)}, got {kinds}")
        database.execute("SET enable_external_access = false")
        mentioned = ask(database.get_table_names, sql)
        for name, table in tables_of(runs, [name for name in TABLES if name in mentioned], report).items():
            database.register(name, table)
        database.execute("SET lock_configuration = true")
        answer = ask(database.execute, sql)
        return [column[0] for column in answer.description], ask(answer.fetchall)


def _execute(duckdb: Any, ask: Any, *sql: str) -> Any:
    """The database's result; its error as one sentence."""
    try:
        return ask(*sql)
    except duckdb.Error as error:
        lines = str(error).strip().split("\n")
        sentence, hint = lines[0], ""
        if isinstance(error, duckdb.CatalogException):
            hint = f"; the tables are {', '.join(TABLES)}"
        elif candidates := next((line for line in lines if line.startswith("Candidate bindings: ")), ""):
            hint = f" It has {candidates.removeprefix('Candidate bindings: ').strip()} and others: DESCRIBE shows them"
        raise InputError(
            f"the query cannot be answered: {sentence.encode('ascii', 'replace').decode()}{hint}"
        ) from None


def _table(arrow: Any, rows: Sequence[Row]) -> Any:
    """Columns in the order in which they first appear; a row without a column has null there."""
    names = dict.fromkeys(name for row in rows for name in row) or dict.fromkeys(("run", "step"))
    return arrow.table({name: _column(arrow, [row.get(name) for row in rows]) for name in names})


def _column(arrow: Any, values: list[Any]) -> Any:
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {int, float} and float in kinds:
        return arrow.array(values, arrow.float64())
    if len(kinds) > 1 or kinds - {int, float, bool, str}:  # nothing of ours is: somebody else's log
        return arrow.array([None if value is None else json.dumps(value) for value in values], arrow.string())
    return arrow.array(values, None if kinds else arrow.float64())


def _is_text(sql: str) -> bool:
    try:
        return bool(sql.encode()) or sql == ""
    except UnicodeEncodeError:  # half a letter, as a terminal may pass on what is not UTF-8
        return False
