"""Tables of pairs: a binary operation on n symbols as rows [a, b, separator] → answer."""

from collections.abc import Callable, Mapping

import numpy as np

from grokscope.shapes import Int
from grokscope.tasks.group import Group
from grokscope.tasks.task import Basis, BasisName, Condition, ConditionName, PairTable, Task

__all__ = ["all_pairs", "pair_task"]


def pair_task(
    name: str,
    title: str,
    symbols: int,
    inputs: Int[np.ndarray, "rows 2"],
    answers: Int[np.ndarray, " rows"],
    *,
    sums: Int[np.ndarray, " rows"] | None = None,
    bases: Mapping[BasisName, Callable[[], Basis]] | None = None,
    group: Group | None = None,
) -> Task:
    """The task of a binary operation on `symbols` symbols, whose pairs (a, b) come in lexicographic order.

    >>> task = pair_task("or", "a or b", 2, all_pairs(2), np.array([0, 1, 1, 1]))
    >>> task.tokens.tolist(), task.vocabulary
    ([[0, 0, 2], [0, 1, 2], [1, 0, 2], [1, 1, 2]], 3)
    """
    conditions: dict[ConditionName, Condition] = {} if sums is None else {"sum": Condition(sums, symbols)}
    return Task(
        name=name,
        title=title,
        answers=answers,
        classes=symbols,
        tokens=np.concatenate([inputs, np.full((len(inputs), 1), symbols)], axis=1),
        vocabulary=symbols + 1,
        bases=bases or {},
        conditions=conditions,
        pairs=PairTable(symbols, group),
    )


def all_pairs(symbols: int, without_zero: bool = False) -> Int[np.ndarray, "rows 2"]:
    """Every (a, b) in lexicographic order; those with b = 0 are left out if they have no answer.

    >>> all_pairs(2).tolist(), all_pairs(2, without_zero=True).tolist()
    ([[0, 0], [0, 1], [1, 0], [1, 1]], [[0, 1], [1, 1]])
    """
    a, b = np.meshgrid(np.arange(symbols), np.arange(int(without_zero), symbols), indexing="ij")
    return np.stack([a.ravel(), b.ravel()], axis=1)
