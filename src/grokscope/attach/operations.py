"""Somebody's own operation as a task: by name, as a function of two symbols, or as a table."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from grokscope.attach.arguments import is_whole, one_line
from grokscope.errors import InputError, require, shown
from grokscope.tasks import MAX_ORDER, OPERATIONS, Basis, Group, Task, group_modes, named_task, pair_task

__all__ = ["Operation", "own_task", "portable", "without_group"]

Operation = Callable[[int, int], int | None]
"""c = f(a, b) on 0 … n − 1; None, or a negative number, where a pair has no answer."""
OWN = "your operation"


def own_task(operation: str | Task | Operation | Any, symbols: int | None = None) -> Task:
    """The task of an operation.

    A function or a table that agrees with a named one (`add_mod97`) is that task; one that is a group's is read in the
    group's irreps; any other has no basis. A function needs the number of its symbols.

    >>> own_task(lambda a, b: (a - b) % 7, symbols=7).name
    'sub_mod7'
    >>> own_task([[0, 1], [1, 0]]).group.order
    2
    """
    if isinstance(operation, Task):
        return operation
    if isinstance(operation, str):
        return named_task(operation)
    table = _tabulated(operation, symbols) if callable(operation) else _table(operation)
    return _known(table) or _own(table)


def without_group(task: Task) -> str:
    """Why a task has no basis, in one sentence; empty if it has one."""
    if task.bases:
        return ""
    return f"{task.name} on {task.symbols} symbols is not a group's ({task.title})"


def portable(task: Task) -> str | np.ndarray:
    """What `own_task` makes the task of, as plain values: its name, or the table of somebody's own."""
    return table_of(task) if task.name == OWN else task.name


def table_of(task: Task) -> np.ndarray:
    """The answers by (a, b), −1 where there is none."""
    table = np.full((task.symbols, task.symbols), -1)
    table[task.inputs[:, 0], task.inputs[:, 1]] = task.answers
    return table


def _tabulated(operation: Operation, symbols: int | None) -> np.ndarray:
    if symbols is None:
        raise InputError("an operation given as a function needs the number of its symbols: Monitor(f, symbols=97)")
    require(
        is_whole(symbols) and 2 <= symbols <= MAX_ORDER,
        f"the number of symbols must lie between 2 and {MAX_ORDER}",
        symbols,
    )
    return _table([[_answered(operation, a, b) for b in range(symbols)] for a in range(symbols)])


def _answered(operation: Operation, a: int, b: int) -> int:
    """The answer of one pair, −1 where there is none; numpy's and torch's integers are as good."""
    try:
        found = operation(a, b)
        answer = -1 if found is None else int(found)
        is_exact = found is None or bool(answer == found)
    except Exception as error:  # whatever somebody's function raises
        raise InputError(f"the operation fails for the pair ({a}, {b}): {one_line(error)}") from error
    require(is_exact, f"the operation must give whole numbers, got {shown(found)} for the pair ({a}, {b})")
    return answer


def _table(table: Any) -> np.ndarray:
    """A square table of answers, −1 where there is none."""
    try:
        values = table.detach().cpu().numpy() if isinstance(table, torch.Tensor) else np.array(table)
    except ValueError:
        raise InputError("a table must have as many columns as rows: its rows differ in length") from None
    is_square = values.ndim == 2 and values.shape[0] == values.shape[1] and 2 <= len(values) <= MAX_ORDER
    if not is_square or not np.issubdtype(values.dtype, np.integer):
        kind = f"{values.dtype} of shape {list(values.shape)}"
        raise InputError(
            f"an operation must be a task's name, a function, or a square table of 2 to {MAX_ORDER} rows of whole "
            f"numbers, got {kind if values.ndim else shown(table)}"
        )
    if values.max() >= len(values):
        a, b = np.argwhere(values >= len(values))[0]
        raise InputError(
            f"answers must lie below the number of symbols {len(values)}, got {values[a, b]} for the pair ({a}, {b})"
        )
    require(values.max() >= 0, "the operation has no answer for any pair")
    return np.maximum(values.astype(np.int64), -1)


def _known(table: np.ndarray) -> Task | None:
    """The named modular task with exactly these answers, if there is one."""
    for operation in OPERATIONS:
        try:
            task = named_task(f"{operation}_mod{len(table)}")
        except InputError:  # too small, or not a prime
            continue
        if np.array_equal(table_of(task), table):
            return task
    return None


def _own(table: np.ndarray) -> Task:
    """Read in the irreps of its group; without a basis, and with the reason as its title, where it is no group's."""
    try:
        group = Group(OWN, table)
    except InputError as error:
        return _task(table, str(error), {}, None)
    basis = Basis("isotypic", np.arange(group.order), group_modes(group))
    return _task(table, f"a group of order {group.order}", {"isotypic": lambda: basis}, group)


def _task(table: np.ndarray, title: str, bases: Any, group: Group | None) -> Task:
    inputs = np.argwhere(table >= 0)
    answers = table[inputs[:, 0], inputs[:, 1]]
    return pair_task(OWN, title, len(table), inputs, answers, bases=bases, group=group)
