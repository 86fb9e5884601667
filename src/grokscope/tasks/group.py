"""A finite group, known by its multiplication table alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from math import factorial
from typing import Any, Literal

import numpy as np

from grokscope.errors import InputError, require, shown
from grokscope.shapes import Int

__all__ = ["MAX_ORDER", "Family", "Group", "frozen"]

MAX_ORDER = 1000
Family = Literal["cyclic", "symmetric", "other"]


def frozen(array: np.ndarray) -> np.ndarray:
    """The array, never to be written to again: what is cached is shared by everyone who asks."""
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False)
class Group:
    """Elements 0 … n − 1 and their products. Made only of tables that satisfy the axioms.

    >>> klein = Group("V4", [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]])
    >>> klein.orders.tolist()
    [1, 2, 2, 2]
    """

    name: str
    """What to call it."""
    table: Int[np.ndarray, "n n"]
    """table[g, h] = g·h."""
    elements: tuple[str, ...] = ()
    """What to call the elements; their numbers if not given."""
    family: Family = "other"
    """Whether modes can be named better than by dimension: by frequency (`cyclic`: element g is the g-th power
    of element 1) or by Young partition (`symmetric`: permutations in lexicographic order)."""

    def __init__(
        self,
        name: str,
        table: Any,
        elements: Sequence[str] = (),
        family: Family = "other",
    ) -> None:
        checked = _closed(name, table)
        names = tuple(elements) or tuple(str(g) for g in range(len(checked)))
        require(
            len(names) == len(checked), f"{shown(name)} has {len(checked)} elements and {len(names)} names for them"
        )
        if len(set(names)) != len(names):
            twice = next(element for element in names if names.count(element) > 1)
            raise InputError(f"{shown(name)} has two elements with the name {shown(twice)}")
        for field, value in {"name": name, "table": checked, "elements": names, "family": family}.items():
            object.__setattr__(self, field, value)
        self._check_axioms()
        require(self._has_its_family_order(), f"{shown(name)} is not a {family} group in the order of its family")

    @property
    def order(self) -> int:
        """|G|."""
        return len(self.table)

    @cached_property
    def identity(self) -> int:
        """e, with e·g = g·e = g for every g."""
        everyone = np.arange(self.order)
        left = (self.table == everyone).all(axis=1)
        right = (self.table == everyone[:, None]).all(axis=0)
        found = np.flatnonzero(left & right)
        if not found.size:
            raise self._not_a_group("no identity: no element e has e·g = g·e = g for every g")
        return int(found[0])

    @cached_property
    def inverse(self) -> Int[np.ndarray, " n"]:
        """inverse[g]·g = g·inverse[g] = e."""
        is_identity = self.table == self.identity
        both = is_identity & is_identity.T
        alone = np.flatnonzero(~both.any(axis=1))
        if alone.size:
            raise self._not_a_group(f"no inverse of {self._called(int(alone[0]))}: no h has g·h = h·g = e")
        return frozen(both.argmax(axis=1))

    @cached_property
    def generators(self) -> tuple[int, ...]:
        """Elements whose products are the whole group, each the first that the earlier ones do not reach."""
        return tuple(self._generating())

    @cached_property
    def powers(self) -> Int[np.ndarray, "exponents n"]:
        """powers[k, g] = gᵏ for k from 0 to the largest element order."""
        everyone = np.arange(self.order)
        rows = [np.full(self.order, self.identity), everyone]
        returned = everyone == self.identity
        while not returned.all():
            rows.append(self.table[rows[-1], everyone])
            returned |= rows[-1] == self.identity
        return frozen(np.stack(rows))

    @cached_property
    def orders(self) -> Int[np.ndarray, " n"]:
        """orders[g] is the least k ≥ 1 with gᵏ = e."""
        return frozen((self.powers[1:] == self.identity).argmax(axis=0) + 1)

    @cached_property
    def classes(self) -> tuple[Int[np.ndarray, " members"], ...]:
        """Conjugacy classes {x·g·x⁻¹}: the identity's first, then by element order, size and first member."""
        unseen = np.ones(self.order, dtype=bool)
        found = []
        for g in range(self.order):
            if unseen[g]:
                members = np.unique(self.table[self.table[:, g], self.inverse])
                unseen[members] = False
                found.append(frozen(members))
        return tuple(sorted(found, key=lambda c: (self.orders[c[0]], c.size, c[0])))

    @cached_property
    def class_of(self) -> Int[np.ndarray, " n"]:
        """The index of each element's class."""
        index = np.empty(self.order, dtype=np.int64)
        for i, members in enumerate(self.classes):
            index[members] = i
        return frozen(index)

    @property
    def class_sizes(self) -> Int[np.ndarray, " classes"]:
        """|C| of each class."""
        return np.array([members.size for members in self.classes])

    @property
    def representatives(self) -> Int[np.ndarray, " classes"]:
        """The first element of each class."""
        return np.array([members[0] for members in self.classes])

    @property
    def is_abelian(self) -> bool:
        """Whether g·h = h·g for all g, h."""
        return bool((self.table == self.table.T).all())

    def relabelled(self, new_label: Int[np.ndarray, " n"]) -> "Group":
        """The same group with element g called new_label[g]; its family's naming is lost with the order."""
        old = np.argsort(new_label)
        return Group(f"{self.name} relabelled", new_label[self.table[np.ix_(old, old)]])

    def _check_axioms(self) -> None:
        _ = self.inverse
        # Light's test: if (x·g)·y = x·(g·y) for every generator g and all x, y, the product is associative.
        for g in self._generating():
            left, right = self.table[self.table[:, g]], self.table[:, self.table[g]]
            if (left != right).any():
                x, y = (int(i) for i in np.argwhere(left != right)[0])
                triple = f"x = {self._called(x)}, y = {self._called(g)}, z = {self._called(y)}"
                raise self._not_a_group(f"not associative: (x·y)·z ≠ x·(y·z) for {triple}")

    def _has_its_family_order(self) -> bool:
        """Whether table and names are those by which the family's modes are named."""
        if self.family == "cyclic":
            return np.array_equal(self.table, np.add.outer(np.arange(self.order), np.arange(self.order)) % self.order)
        if self.family == "symmetric":
            letters = len(self.elements[0])
            if factorial(letters) != self.order:
                return False
            words = np.array(list(permutations(range(letters))), dtype=np.int8)
            named = self.elements == tuple("".join(str(i + 1) for i in word) for word in words)
            return named and np.array_equal(words[self.table], words[:, words])  # (g·h)(i) = g(h(i))
        return True

    def _generating(self) -> Iterator[int]:
        reached = np.array([self.identity])
        while reached.size < self.order:
            g = int(np.setdiff1d(np.arange(self.order), reached)[0])
            yield g
            reached = self._closure(np.append(reached, g))

    def _closure(self, members: np.ndarray) -> np.ndarray:
        """All products of the members; squaring the set reaches any length in logarithmically many rounds."""
        while True:
            grown = np.union1d(members, self.table[np.ix_(members, members)])
            if grown.size == members.size:
                return grown
            members = grown

    def _called(self, g: int) -> str:
        return f"{g} ({shown(self.elements[g])})" if self.elements[g] != str(g) else str(g)

    def _not_a_group(self, reason: str) -> InputError:
        return InputError(f"{shown(self.name)} is not a group: {reason}")


def _closed(name: str, table: Any) -> np.ndarray:
    """The table as a square integer array whose entries are elements."""
    not_a_group = f"{shown(name)} is not a group"
    try:
        array = np.asarray(table)
    except ValueError:
        raise InputError(f"{not_a_group}: its table must be square, got rows of unequal length") from None
    require(
        array.ndim == 2 and array.shape[0] == array.shape[1] and array.size,
        f"{not_a_group}: its table must be square, got shape {array.shape}",
    )
    n = len(array)
    require(n <= MAX_ORDER, f"{shown(name)} has {n} elements; groups of up to {MAX_ORDER} are supported")
    if array.dtype.kind in "iuf":
        outside = np.argwhere((array != np.floor(array)) | (array < 0) | (array >= n))
    else:  # entry by entry as they were given: one text makes texts of all
        array = np.array(table, dtype=object)
        outside = np.array([place for place, x in np.ndenumerate(array) if type(x) is not int or x not in range(n)])
    if outside.size:
        g, h = outside[0].tolist()
        entry = shown(array[g].tolist()[h])
        raise InputError(f"{not_a_group}: not closed: {g}·{h} = {entry}, expected an element 0 … {n - 1}")
    return frozen(array.astype(np.int64))
