"""Rows as named arrays, checked: what a user's own file or function has to give."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from grokscope.errors import InputError, did_you_mean, require, shown
from grokscope.shapes import Bool, Float, Int
from grokscope.tasks.row_groups import DRAWN, RowGroup, Rule
from grokscope.tasks.task import MAX_ROWS, Task

__all__ = ["HELD_OUT_PREFIX", "MAX_NUMBERS", "NAMES", "task_of_arrays"]

NAMES = ("tokens", "vectors", "answers", "classes", "vocabulary", "success", "train", "validation")
HELD_OUT_PREFIX = "held_out_"
MAX_NUMBERS = 2**27  # of all arrays together: a gigabyte


def task_of_arrays(name: str, title: str, given: Mapping[str, Any]) -> Task:
    """The task of some arrays.

    `tokens` [rows, length] or `vectors` [rows, features]; `answers`, whole numbers [rows] for classes or real ones
    [rows] or [rows, outputs]; and, if wished, `classes`, `vocabulary` (by default one more than the largest number) and
    groups of rows as masks or indices: `train` (always trained on), `validation` (never), `held_out_NAME` (reported
    apart). From all other rows the split draws. Real answers need `success`.

    >>> task_of_arrays("xor", "", {"tokens": [[0, 0], [0, 1], [1, 0], [1, 1]], "answers": [0, 1, 1, 0]}).classes
    2
    """
    for key in given:
        if key not in NAMES and not str(key).startswith(HELD_OUT_PREFIX):
            raise InputError(f"{name} has an unknown array {shown(key)}{did_you_mean(str(key), NAMES)}")
    require("answers" in given, f"{name} needs an array answers, got {', '.join(map(shown, given)) or 'nothing'}")
    arrays = {key: _array(name, key, value) for key, value in given.items()}
    numbers = sum(array.size for array in arrays.values())
    require(numbers <= MAX_NUMBERS, f"{name} may hold at most {MAX_NUMBERS:,} numbers", numbers)
    answers = _answers(name, arrays["answers"])
    inputs = {key: arrays[key] for key in ("tokens", "vectors") if key in arrays}
    require(len(inputs) == 1, f"{name} needs either tokens or vectors, got {' and '.join(inputs) or 'neither'}")
    ((kind, rows),) = inputs.items()
    require(
        rows.ndim == 2 and rows.size, f"the {kind} of {name} must have shape [rows, …] and not be empty", rows.shape
    )
    require(len(rows) <= MAX_ROWS, f"{name} may have at most {MAX_ROWS:,} rows", len(rows))
    require(len(rows) == len(answers), f"{name} has {len(rows):,} rows and {len(answers):,} answers")
    is_real = answers.ndim == 2
    rule = "it needs success, the share of their variance below which a squared error counts as right"
    require(not is_real or "success" in arrays, f"{name} has real answers: {rule}")
    require(is_real or "success" not in arrays, f"success is of real answers, and those of {name} are classes")
    outputs = answers.shape[1] if is_real else int(answers.max()) + 1
    return Task(
        name=name,
        title=title,
        answers=answers,
        classes=_count(name, "classes", arrays, outputs),
        tokens=_whole(name, "tokens", rows) if kind == "tokens" else None,
        vectors=_real(rows) if kind == "vectors" else None,
        vocabulary=_count(name, "vocabulary", arrays, int(rows.max()) + 1) if kind == "tokens" else 0,
        row_groups=_groups(name, arrays, len(rows)),
        success=_success(name, arrays) if is_real else 0.0,
    )


def _array(name: str, key: str, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value)  # what is kept of it is copied later
    except ValueError:
        raise InputError(f"the {key} of {name} must have rows of one length: they are ragged") from None
    except Exception as error:  # whatever a function gave makes of itself
        raise InputError(f"the {key} of {name} must be an array: {type(error).__name__}") from None
    require(array.dtype.kind in "biuf", f"the {key} of {name} must be numbers", str(array.dtype))
    return array


def _answers(name: str, answers: np.ndarray) -> np.ndarray:
    require(answers.size, f"{name} has no answers")
    if answers.dtype.kind in "biu":
        require(answers.ndim == 1, f"classes as answers of {name} must be one number per row", answers.shape)
        return _whole(name, "answers", answers)
    require(answers.ndim in (1, 2), f"real answers of {name} must be [rows] or [rows, outputs]", answers.shape)
    return _real(answers).reshape(len(answers), -1)


def _real(values: np.ndarray) -> Float[np.ndarray, "..."]:
    """A copy of 64 bits; a longer number that has none becomes infinite, which the task rejects."""
    with np.errstate(over="ignore"):
        return values.astype(np.float64)


def _whole(name: str, key: str, values: np.ndarray) -> Int[np.ndarray, "..."]:
    require(values.dtype.kind in "biu", f"the {key} of {name} must be whole numbers", str(values.dtype))
    if values.dtype.kind == "u" and values.size and values.max() >= 2**63:
        raise InputError(f"the {key} of {name} must be below 2^63, got {values.max()}")
    return values.astype(np.int64)


def _count(name: str, key: str, arrays: Mapping[str, np.ndarray], least: int) -> int:
    """A number that may be left out; whether it is large enough is seen when the task is made."""
    value = arrays.get(key, np.array(least))
    require(value.ndim == 0 and value.dtype.kind in "iu", f"{key} of {name} must be one whole number", value.tolist())
    return int(value)


def _success(name: str, arrays: Mapping[str, np.ndarray]) -> float:
    value = arrays["success"]
    require(value.ndim == 0, f"success of {name} must be one number", value.tolist())
    return float(value)


def _groups(name: str, arrays: Mapping[str, np.ndarray], rows: int) -> tuple[RowGroup, ...]:
    """The named groups, and all other rows as those from which the split draws."""
    rules: dict[str, Rule] = {"train": "train", "validation": "validation"}
    found, left = [], np.ones(rows, dtype=bool)
    for key, value in arrays.items():
        if key in rules or key.startswith(HELD_OUT_PREFIX):
            members = _members(name, key, value, rows)
            found.append(RowGroup(key.removeprefix(HELD_OUT_PREFIX), rules.get(key, "held_out"), members))
            left[members] = False
    rest = np.flatnonzero(left)
    return (*([RowGroup("drawn", DRAWN, rest)] if len(rest) else []), *found)


def _members(name: str, key: str, value: np.ndarray, rows: int) -> Int[np.ndarray, " members"]:
    """Rows of a mask, or indices of rows."""
    if value.dtype.kind == "b":
        mask: Bool[np.ndarray, "..."] = value
        require(mask.shape == (rows,), f"the mask {key} of {name} must have one value per row", mask.shape)
        return np.flatnonzero(mask)
    require(value.ndim == 1, f"{key} of {name} must be a mask or a list of rows", value.shape)
    members = _whole(name, key, value)
    inside = not len(members) or (members.min() >= 0 and members.max() < rows)
    require(inside, f"rows of {key} of {name} must lie in 0 … {rows - 1}")
    require(len(np.unique(members)) == len(members), f"{key} of {name} names a row twice")
    return members
