"""Young's orthogonal form: real orthogonal irreps of S_n, one for each partition of n."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from grokscope.errors import require
from grokscope.shapes import Float
from grokscope.tasks.group import Group, frozen

__all__ = ["orthogonal_form", "partition_name", "partitions", "symmetric_characters"]

Partition = tuple[int, ...]
Tableau = tuple[tuple[int, int], ...]


def partitions(n: int, largest: int | None = None) -> Iterator[Partition]:
    """Non-increasing sums to n, in descending lexicographic order.

    >>> list(partitions(4))
    [(4,), (3, 1), (2, 2), (2, 1, 1), (1, 1, 1, 1)]
    """
    if n == 0:
        yield ()
    for first in range(min(n, largest or n), 0, -1):
        for rest in partitions(n - first, first):
            yield (first, *rest)


def partition_name(partition: Partition) -> str:
    """As the paper prints it.

    >>> partition_name((2, 1, 1, 1))
    '(2,1,1,1)'
    """
    return f"({','.join(map(str, partition))})"


def _standard_tableaux(shape: Partition) -> list[Tableau]:
    """All standard fillings; a tableau is the (row, column) of 1, 2, …, n in turn."""
    if sum(shape) == 0:
        return [()]
    found = []
    for row, length in enumerate(shape):
        is_corner = row + 1 == len(shape) or shape[row + 1] < length
        if length and is_corner:
            smaller = (*shape[:row], length - 1, *shape[row + 1 :])
            found += [(*tableau, (row, length - 1)) for tableau in _standard_tableaux(smaller)]
    return found


def _adjacent_transposition(tableaux: list[Tableau], i: int) -> Float[np.ndarray, "d d"]:
    """ρ((i i+1)): 1/r on the diagonal and √(1 − 1/r²) between T and T with i, i+1 exchanged.

    r = content(i+1) − content(i) is the axial distance, content = column − row.
    """
    index = {tableau: t for t, tableau in enumerate(tableaux)}
    matrix = np.zeros((len(tableaux), len(tableaux)))
    for t, tableau in enumerate(tableaux):
        (row, column), (next_row, next_column) = tableau[i], tableau[i + 1]
        r = (next_column - next_row) - (column - row)
        matrix[t, t] = 1 / r
        exchanged = (*tableau[:i], tableau[i + 1], tableau[i], *tableau[i + 2 :])
        if exchanged in index:
            matrix[t, index[exchanged]] = np.sqrt(1 - 1 / r**2)
    return matrix


@lru_cache(maxsize=64)
def orthogonal_form(group: Group, partition: Partition) -> Float[np.ndarray, "n d d"]:
    """ρ(g) for every element of S_n in its family's order: orthogonal, with ρ(g)ρ(h) = ρ(g·h).

    >>> from grokscope.tasks.families import named_group
    >>> orthogonal_form(named_group("S3"), (2, 1)).shape
    (6, 2, 2)
    """
    require(group.family == "symmetric", "Young's orthogonal form is that of a symmetric group", group.name)
    letters = len(group.elements[0])
    require(
        partition in partitions(letters),
        f"expected a partition of {letters} such as {next(partitions(letters))}",
        partition,
    )
    tableaux = _standard_tableaux(partition)
    matrices = np.zeros((group.order, len(tableaux), len(tableaux)))
    matrices[group.identity] = np.eye(len(tableaux))
    steps = {_transposition_index(group, i, letters): _adjacent_transposition(tableaux, i) for i in range(letters - 1)}
    reached, frontier = {group.identity}, [group.identity]
    while frontier:  # breadth first: every permutation is a shorter one times an adjacent transposition
        g = frontier.pop(0)
        for s, matrix in steps.items():
            product = int(group.table[g, s])
            if product not in reached:
                matrices[product] = matrices[g] @ matrix
                reached.add(product)
                frontier.append(product)
    return frozen(matrices)


def symmetric_characters(group: Group) -> dict[Partition, Float[np.ndarray, " classes"]]:
    """χ of each partition on the group's classes: traces of the orthogonal form."""
    letters = len(group.elements[0])
    return {
        partition: np.trace(orthogonal_form(group, partition)[group.representatives], axis1=1, axis2=2)
        for partition in partitions(letters)
    }


def _transposition_index(group: Group, i: int, letters: int) -> int:
    word = list(range(1, letters + 1))
    word[i], word[i + 1] = word[i + 1], word[i]
    return group.elements.index("".join(map(str, word)))
