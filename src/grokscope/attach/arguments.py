"""Arguments of callers as plain values, or one sentence that says what is wrong with them."""

from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grokscope.errors import InputError, require
from grokscope.shapes import Bool
from grokscope.tasks import Task

__all__ = ["as_tuple", "call_user", "is_whole", "one_line", "plain_step", "train_pairs", "whole_number"]


def is_whole(value: Any) -> bool:
    """Whether something is an integer, numpy's included."""
    return isinstance(value, Integral)


def whole_number(value: Any, name: str, of_what: str) -> int:
    """A count of at least 1; numpy's integers are as good.

    >>> whole_number(100, "every", "steps")
    100
    """
    require(is_whole(value) and value >= 1, f"{name} must be a whole number of {of_what}, at least 1", value)
    return int(value)


def plain_step(value: Any) -> int:
    """A step as a plain integer: numpy's and torch's too, which JSON does not know.

    >>> plain_step(torch.tensor(100)), plain_step(100.0)
    (100, 100)
    """
    try:
        step = int(value)
        is_step = bool(step == value) and step >= 0  # "3" and 1.5 have an int() too
    except (TypeError, ValueError, OverflowError, RuntimeError):
        is_step = False
    require(is_step, "a step must be a whole number, at least 0", value)
    return step


def as_tuple(values: Any, name: str) -> tuple[Any, ...]:
    """Several of something."""
    require(isinstance(values, Iterable), f"{name} must be a list of names", values)
    return tuple(values)


def call_user(what: str, function: Callable[[], Any]) -> Any:
    """What somebody's function gives, or one sentence that says which of them failed."""
    try:
        return function()
    except InputError:
        raise
    except Exception as error:  # whatever it raises
        raise InputError(f"{what} fails: {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """What somebody else's code raised, in one line."""
    return f"{type(error).__name__}: {(str(error).splitlines() or ['no message'])[0][:200]}"


def train_pairs(task: Task, train: Any) -> Bool[Tensor, " inputs"]:
    """A mask over the task's inputs from a mask, a square mask over (a, b), indices of inputs, or pairs."""
    n, count = task.symbols, task.rows
    accepted = f"a mask over {count} pairs, a mask [{n}, {n}], indices [k], or pairs [k, 2]"
    try:
        given = train.detach().cpu().numpy() if isinstance(train, Tensor) else np.asarray(train)
    except ValueError:
        raise InputError(f"train must be {accepted}: its rows differ in length") from None
    is_whole_numbers = np.issubdtype(given.dtype, np.integer)
    if given.dtype == bool and given.shape == (count,):
        mask = given.copy()
    elif given.dtype == bool and given.shape == (n, n):
        mask = given[task.inputs[:, 0], task.inputs[:, 1]]
    elif is_whole_numbers and given.ndim == 1:
        _require_below(count, given, "indices of training pairs")
        repeated = len(given) - len(np.unique(given))
        require(not repeated, f"indices of training pairs must differ, got {repeated} of {len(given)} repeated")
        mask = np.zeros(count, dtype=bool)
        mask[given] = True
    elif is_whole_numbers and given.ndim == 2 and given.shape[1] == 2:
        _require_below(n, given, "training pairs")
        square = np.zeros((n, n), dtype=bool)
        square[given[:, 0], given[:, 1]] = True
        mask = square[task.inputs[:, 0], task.inputs[:, 1]]
    else:
        raise InputError(f"train must be {accepted}, got {given.dtype} {list(given.shape)}")
    require(
        not mask.all() and mask.any(),
        f"train must name some pairs and leave some for validation, got {mask.sum()} of {count}",
    )
    return torch.from_numpy(mask)


def _require_below(limit: int, given: np.ndarray, what: str) -> None:
    outside = given[(given < 0) | (given >= limit)]
    require(not outside.size, f"{what} must lie in 0 … {limit - 1}", *outside[:1].tolist())
