"""One column of numbers, checked once; and what is known of a column with gaps.

>>> mean_known([0.25, float("nan"), 0.75])
0.5
"""

from collections.abc import Iterable, Sequence
from math import isnan, nan

import numpy as np

from grokscope.errors import InputError, shown
from grokscope.shapes import Bool, Float, Int

__all__ = ["Flags", "Numbers", "column", "flags", "known", "mean_known", "require_level", "same_length"]

Numbers = Sequence[float | int] | Float[np.ndarray, " items"] | Int[np.ndarray, " items"]
Flags = Sequence[bool | np.bool_] | Bool[np.ndarray, " items"]


def column(values: Numbers, name: str = "values", finite: bool = True) -> Float[np.ndarray, " items"]:
    """The values in float64; none may be NaN, and none infinite unless that is allowed.

    >>> column([1, 2])
    array([1., 2.])
    """
    found = np.asarray(values, dtype=np.float64)
    bad = ~np.isfinite(found) if finite else np.isnan(found)
    if bad.any():
        where = int(bad.argmax())
        raise InputError(f"{name} must be numbers, got {shown(float(found[where]))} at place {where}")
    return found


def known(values: Iterable[float | int]) -> list[float]:
    """The values that are numbers.

    >>> known([1, float("nan"), 3])
    [1.0, 3.0]
    """
    return [float(value) for value in values if not isnan(value)]


def mean_known(values: Iterable[float | int]) -> float:
    """The mean of the values that are numbers; NaN without any."""
    found = known(values)
    return sum(found) / len(found) if found else nan


def flags(values: Flags) -> Bool[np.ndarray, " items"]:
    """The values as an array of truths."""
    return np.asarray(values, dtype=bool)


def same_length(**columns: object) -> None:
    """Reject columns that are not equally long."""
    sizes = {name: len(values) for name, values in columns.items() if hasattr(values, "__len__")}
    if len(set(sizes.values())) > 1:
        raise InputError(f"columns must be equally long, got {sizes}")


def require_level(level: float) -> None:
    """Reject an interval's level that is not in (0, 1)."""
    if not 0 < level < 1:
        raise InputError(f"level must lie in (0, 1), got {shown(level)}")
