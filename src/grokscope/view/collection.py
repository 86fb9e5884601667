"""A study's records as Parquet tables: opened without torch, and by any program that reads Parquet.

`cells.parquet` has a row for each configuration, `runs.parquet` for each run, `curves.parquet` for each evaluation that
is kept, `checkpoints.parquet` and `readings.parquet` for each checkpoint; `croissant.json` describes them.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.files import named, read_json
from grokscope.runs.logs import Columns
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import Membership, RunSpec
from grokscope.view import require_module

if TYPE_CHECKING:
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame

__all__ = ["DESCRIPTION", "TABLES", "UNDEFINED", "Collection", "open_collection"]

TABLES = ("cells", "runs", "curves", "checkpoints", "readings")
DESCRIPTION = "croissant.json"
UNDEFINED = (
    "undefined"  # of a run: the columns of evaluations, and of checkpoints, that it has and that are nowhere defined
)
DIGITS = 7  # significant, as packed records have
PLACE = Path("results", "{}", "collection")


@dataclass(frozen=True)
class Collection:
    """The tables of a study's records in a folder."""

    folder: Path
    """Where they are."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that are there."""
        return tuple(name for name in TABLES if (self.folder / f"{name}.parquet").is_file())

    @cached_property
    def description(self) -> dict[str, Any]:
        """What the tables and their columns are, as Croissant JSON-LD."""
        return read_json(self.folder / DESCRIPTION, dict)

    def arrow(self, table: str) -> Any:
        """A table in Arrow."""
        if table not in self.tables:
            raise InputError(f"{named(self.folder)} has no table {shown(table)}{did_you_mean(table, self.tables)}")
        path = self.folder / f"{table}.parquet"
        parquet, arrow = require_module("pyarrow.parquet", "data"), require_module("pyarrow", "data")
        try:
            return parquet.read_table(path)
        except (OSError, arrow.ArrowException) as error:
            raise InputError(f"{named(path)} cannot be read: {str(error).splitlines()[0]}") from None

    def pandas(self, table: str) -> "PandasFrame":
        """A table as a pandas frame; whole numbers stay whole where some are missing."""
        pandas = require_module("pandas", "frames")
        arrow = require_module("pyarrow", "data")
        kinds = {arrow.int64(): pandas.Int64Dtype(), arrow.int32(): pandas.Int32Dtype(), arrow.bool_(): "boolean"}
        frame: PandasFrame = self.arrow(table).to_pandas(
            types_mapper=lambda kind: pandas.api.types.pandas_dtype(kinds[kind]) if kind in kinds else None
        )
        return frame

    def polars(self, table: str) -> "PolarsFrame":
        """A table as a polars frame."""
        polars = require_module("polars", "frames")
        frame: PolarsFrame = polars.from_arrow(self.arrow(table))
        return frame

    def records(self, experiment: str | None = None) -> list[RunRecord]:
        """The runs as records, all or those of one experiment, with the evaluations that are kept."""
        rows = self.arrow("runs").to_pylist()
        if experiment is not None:
            known = {member["experiment"] for row in rows for member in json.loads(row["made_for"])}
            if experiment not in known:
                raise InputError(f"there is no experiment {shown(experiment)} here{did_you_mean(experiment, known)}")
            rows = [row for row in rows if any(m["experiment"] == experiment for m in json.loads(row["made_for"]))]
        wanted = {row["run"] for row in rows}
        logs = dict(self._columns("curves", wanted))
        measured: dict[str, Columns] = {}
        for table in ("checkpoints", "readings"):
            for name, columns in self._columns(table, wanted) if table in self.tables else ():
                measured[name] = columns
        return [_record(row, logs.get(row["run"], {}), measured.get(row["run"], {})) for row in rows]

    def _columns(self, table: str, wanted: set[str]) -> Iterator[tuple[str, Columns]]:
        """Each run's columns, those that are nowhere known of it left out; a run's rows stand together."""
        read = self.arrow(table)
        names = read.column("run").to_pylist()
        starts = [i for i, name in enumerate(names) if i == 0 or names[i - 1] != name]
        for start, end in zip(starts, [*starts[1:], len(names)], strict=True):
            if names[start] in wanted:
                part = read.slice(start, end - start).drop_columns(["run"])
                known = [name for name in part.column_names if part.column(name).null_count < len(part)]
                values = {name: part.column(name).to_pylist() for name in known}
                yield names[start], {name: [*map(_number, own)] for name, own in values.items()}


def open_collection(name: str | Path) -> Collection:
    """The collection of a study by its name, or the one in this folder.

    A name is looked for under `results` here and in the source tree that this package belongs to.

    Example::

        runs = grokscope.collection("synchronization").pandas("runs")
    """
    places = [Path(name)]
    if str(name).isidentifier():
        roots = (Path(), Path(__file__).parents[3])
        places += [root / Path(*(part.format(name) for part in PLACE.parts)) for root in roots]
    for place in places:
        if (place / "runs.parquet").is_file():
            return Collection(place)
    raise InputError(
        f"there is no collection {shown(str(name))}: a folder with runs.parquet, as `grokscope reproduce STUDY "
        "--collection --from RECORDS --out FOLDER` writes it"
    )


def _number(value: int | float | None) -> int | float:
    """A value as a record has it: float32 has seven digits, and 0.95 is 0.95 again; null is what was undefined."""
    return nan if value is None else value if isinstance(value, int) else float(f"{value:.{DIGITS}g}")


def _record(row: dict[str, Any], evaluations: Columns, checkpoints: Columns) -> RunRecord:
    logged, measured = json.loads(row[UNDEFINED])
    return RunRecord(
        RunSpec.from_json(row["spec"]),
        RunOutcome.from_dict(json.loads(row["details"])),
        evaluations | {name: [nan] * len(evaluations["step"]) for name in logged},
        checkpoints | {name: [nan] * len(checkpoints["step"]) for name in measured},
        tuple(map(Membership.from_dict, json.loads(row["made_for"]))),
    )
