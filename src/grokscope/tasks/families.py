"""Groups by name: cyclic, dihedral, symmetric, alternating, dicyclic, affine, linear, and products of them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations, product
from math import factorial, prod

import numpy as np

from grokscope.errors import require, shown
from grokscope.tasks.group import MAX_ORDER, Family, Group
from grokscope.tasks.residues import is_prime

__all__ = ["FAMILIES", "GroupFamily", "is_group_name", "named_group"]

Words = Sequence[tuple[int, ...]]
Product = Callable[[np.ndarray, np.ndarray], np.ndarray]
HUGE = 10**9  # an order too large to build, whatever it is exactly


@dataclass(frozen=True)
class GroupFamily:
    """One family of groups with a number in their name."""

    title: str
    """What they are, for a person."""
    order: Callable[[int], int]
    """|G| as a function of the number, known before anything is built."""
    needs: Callable[[int], bool]
    """Which numbers make sense."""
    expected: str
    """Those numbers, in words."""
    build: Callable[[int], Group]
    """The group itself."""


def _from_words(name: str, words: Words, multiply: Product, names: list[str], family: Family = "other") -> Group:
    """The group of the given words (small whole numbers); `multiply` composes arrays of words along the last axis."""
    array = np.array(words)
    base = int(array.max()) + 1
    place = base ** np.arange(array.shape[1])[::-1]
    codes = array @ place
    sorting = np.argsort(codes)
    products = multiply(array[:, None, :], array[None, :, :]) @ place
    table = sorting[np.searchsorted(codes[sorting], products)]
    return Group(name, table, names, family)


def _cyclic(n: int) -> Group:
    return Group(f"Z{n}", np.add.outer(np.arange(n), np.arange(n)) % n, family="cyclic")


def _dihedral(n: int) -> Group:
    """Words (k, f): rotate by k after f reflections, r·s = s·r⁻¹."""
    words = list(product(range(2), range(n)))

    def multiply(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        turned = (x[..., 1] + np.where(x[..., 0] == 1, -y[..., 1], y[..., 1])) % n
        return np.stack(np.broadcast_arrays((x[..., 0] + y[..., 0]) % 2, turned), axis=-1)

    return _from_words(f"D{n}", words, multiply, [f"r{k}s" if f else f"r{k}" for f, k in words])


def _dicyclic(order: int) -> Group:
    """⟨x, y : x²ᵐ = 1, y² = xᵐ, yxy⁻¹ = x⁻¹⟩ of order 4m; words (f, k) stand for xᵏyᶠ. m = 2 is Q8."""
    turn = order // 2
    words = list(product(range(2), range(turn)))

    def multiply(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        both = (x[..., 0] == 1) & (y[..., 0] == 1)
        power = x[..., 1] + np.where(x[..., 0] == 1, -y[..., 1], y[..., 1]) + np.where(both, turn // 2, 0)
        return np.stack(np.broadcast_arrays((x[..., 0] + y[..., 0]) % 2, power % turn), axis=-1)

    return _from_words(f"Q{order}", words, multiply, [f"x{k}y" if f else f"x{k}" for f, k in words])


def _composed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(x·y)(i) = x(y(i))."""
    x, y = np.broadcast_arrays(x, y)
    return np.take_along_axis(x, y, axis=-1)


def _permutation_names(words: Words) -> list[str]:
    return ["".join(str(i + 1) for i in word) for word in words]


def _symmetric(n: int) -> Group:
    words: Words = list(permutations(range(n)))
    return _from_words(f"S{n}", words, _composed, _permutation_names(words), "symmetric")


def _alternating(n: int) -> Group:
    words: Words = [w for w in permutations(range(n)) if _is_even(w)]
    return _from_words(f"A{n}", words, _composed, _permutation_names(words))


def _is_even(word: tuple[int, ...]) -> bool:
    return sum(word[i] > word[j] for j in range(len(word)) for i in range(j)) % 2 == 0


def _affine(p: int) -> Group:
    """Words (a, b): x ↦ ax + b over Z_p, composed as maps."""
    words = list(product(range(1, p), range(p)))

    def multiply(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        slope, shift = x[..., 0] * y[..., 0], x[..., 0] * y[..., 1] + x[..., 1]
        return np.stack([slope, shift], axis=-1) % p

    return _from_words(f"Aff{p}", words, multiply, [f"{a}x+{b}" for a, b in words])


def _matrix_product(p: int) -> Product:
    def multiply(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        square = (*np.broadcast_shapes(x.shape, y.shape)[:-1], 2, 2)
        left, right = (np.broadcast_to(m.reshape(*m.shape[:-1], 2, 2), square) for m in (x, y))
        return ((left @ right) % p).reshape(*square[:-2], 4)

    return multiply


def _unimodular(p: int) -> Words:
    return [w for w in product(range(p), repeat=4) if (w[0] * w[3] - w[1] * w[2]) % p == 1]


def _special_linear(p: int) -> Group:
    words = _unimodular(p)
    return _from_words(f"SL2_{p}", words, _matrix_product(p), [f"[{a} {b}; {c} {d}]" for a, b, c, d in words])


def _projective(p: int) -> Group:
    """SL(2, p) modulo ±1: of M and −M the lexicographically smaller stands for both."""
    words = [w for w in _unimodular(p) if w <= tuple(-i % p for i in w)]
    multiply_matrices = _matrix_product(p)
    place = p ** np.arange(4)[::-1]

    def multiply(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        result = multiply_matrices(x, y)
        negative = -result % p
        return np.where((result @ place <= negative @ place)[..., None], result, negative)

    return _from_words(f"PSL2_{p}", words, multiply, [f"±[{a} {b}; {c} {d}]" for a, b, c, d in words])


def _small_factorial(n: int) -> int:
    return factorial(n) if n < 12 else HUGE


FAMILIES: dict[str, GroupFamily] = {
    "Z": GroupFamily("addition modulo n", lambda n: n, lambda n: n >= 1, "n ≥ 1", _cyclic),
    "D": GroupFamily("the 2n symmetries of the n-gon", lambda n: 2 * n, lambda n: n >= 3, "n ≥ 3", _dihedral),
    "S": GroupFamily("permutations of n letters", _small_factorial, lambda n: n >= 2, "n ≥ 2", _symmetric),
    "A": GroupFamily(
        "even permutations of n letters", lambda n: _small_factorial(n) // 2, lambda n: n >= 3, "n ≥ 3", _alternating
    ),
    "Q": GroupFamily(
        "dicyclic group of order n; Q8 are the quaternions",
        lambda n: n,
        lambda n: n >= 8 and n % 4 == 0,
        "a multiple of 4 from 8 on",
        _dicyclic,
    ),
    "Aff": GroupFamily(
        "affine maps x ↦ ax + b over Z_p",
        lambda p: p * (p - 1),
        lambda p: p > 2 and is_prime(p),
        "a prime > 2",
        _affine,
    ),
    "SL2_": GroupFamily(
        "2×2 matrices of determinant 1 over Z_p", lambda p: p * (p * p - 1), is_prime, "a prime", _special_linear
    ),
    "PSL2_": GroupFamily(
        "the same modulo ±1", lambda p: p * (p * p - 1) // (1 if p == 2 else 2), is_prime, "a prime", _projective
    ),
}
FACTOR = re.compile(rf"({'|'.join(sorted(FAMILIES, key=len, reverse=True))})([1-9][0-9]*)")


def is_group_name(name: str) -> bool:
    """Whether the name has the form of a group, or of a product of groups joined by `x`."""
    return all(FACTOR.fullmatch(part) for part in name.split("x"))


@lru_cache(maxsize=64)
def named_group(name: str) -> Group:
    """The group with this name.

    >>> named_group("Z3xS4").order
    72
    """
    require(
        is_group_name(name), f"{shown(name)} is not the name of a group; expected one such as Z60, D12, S5 or Z3xS4"
    )
    parts = [_parsed(name, part) for part in name.split("x")]
    require(
        prod(order for _, _, order in parts) <= MAX_ORDER,
        f"{shown(name)} has more than {MAX_ORDER} elements; groups of up to {MAX_ORDER} are supported",
    )
    groups = [family.build(number) for family, number, _ in parts]
    return groups[0] if len(groups) == 1 else _direct_product(name, groups)


def _parsed(name: str, part: str) -> tuple[GroupFamily, int, int]:
    match = FACTOR.fullmatch(part)
    assert match is not None  # is_group_name was asked first
    family = FAMILIES[match[1]]
    require(
        len(match[2]) <= 6,
        f"{shown(name)} has more than {MAX_ORDER} elements; groups of up to {MAX_ORDER} are supported",
    )
    number = int(match[2])
    require(family.needs(number), f"{match[1]} needs {family.expected}, got {number} in {shown(name)}")
    return family, number, family.order(number)


def _direct_product(name: str, groups: list[Group]) -> Group:
    """(g, h)·(g', h') = (g·g', h·h'), the last factor's element running fastest."""
    table, elements = np.zeros((1, 1), dtype=np.int64), [""]
    for group in groups:
        table = np.add.outer(table * group.order, group.table).transpose(0, 2, 1, 3)
        table = table.reshape(len(elements) * group.order, -1)
        elements = [f"{left},{right}" if left else right for left in elements for right in group.elements]
    return Group(name, table, [f"({element})" for element in elements])
