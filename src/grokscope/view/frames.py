"""Columns as a frame of pandas or polars; what is unknown is missing there too."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grokscope.view import require_module

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["pandas_frame", "polars_frame"]

Table = Mapping[str, Sequence[Any]]
EXTRA = "frames"
# Types of columns that are unknown in every run; others are steps.
ABSENT = {"parent": str, "study": str, "weight_decay": float, "clip_norm": float, "problem": str}


def pandas_frame(table: Table) -> "pandas.DataFrame":
    """A pandas frame whose whole numbers stay whole where some are missing."""
    pandas = require_module("pandas", EXTRA)
    kinds = {int: "Int64", float: "float64", bool: "boolean", str: "string"}
    columns = {name: pandas.array(values, dtype=kinds[_type_of(name, values)]) for name, values in table.items()}
    return pandas.DataFrame(columns)


def polars_frame(table: Table) -> "polars.DataFrame":
    """A polars frame."""
    polars = require_module("polars", EXTRA)
    kinds = {int: polars.Int64, float: polars.Float64, bool: polars.Boolean, str: polars.String}
    return polars.DataFrame(
        [polars.Series(name, values, kinds[_type_of(name, values)]) for name, values in table.items()]
    )


def _type_of(name: str, values: Sequence[Any]) -> type:
    """The one type of all that is known."""
    kinds = {type(value) for value in values if value is not None} or {ABSENT.get(name, int)}
    return kinds.pop() if len(kinds) == 1 else float
