"""Modular operations, polynomials and groups as tables of pairs."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from grokscope.errors import InputError, require, shown
from grokscope.tasks.families import named_group
from grokscope.tasks.group import MAX_ORDER, Group
from grokscope.tasks.modes import fourier_modes, group_modes
from grokscope.tasks.pairs import all_pairs, pair_task
from grokscope.tasks.residues import PATTERN, is_prime, parse_polynomial, polynomial_values, root_powers
from grokscope.tasks.task import Basis, BasisName, Task

__all__ = ["MODULAR", "OPERATIONS", "Operation", "group_task", "modular_task"]

SMALLEST_MODULUS = 5  # the least with two frequencies and a primitive root that is not −1


@dataclass(frozen=True)
class Operation:
    """A modular operation."""

    title: str
    """What it computes, with n for the modulus."""
    answers: Callable[[np.ndarray, np.ndarray, int], np.ndarray]
    """The answers of pairs (a, b) modulo n."""
    needs_prime: bool = False
    """Whether the modulus must be prime: then nonzero answers form a cyclic group under multiplication."""
    divides: bool = False
    """Whether b = 0 has no answer."""


def _quotients(a: np.ndarray, b: np.ndarray, p: int) -> np.ndarray:
    inverse = np.array([pow(x, -1, p) if x else 0 for x in range(p)])
    return a * inverse[b] % p


OPERATIONS: dict[str, Operation] = {
    "add": Operation("(a + b) mod {n}", lambda a, b, n: (a + b) % n),
    "sub": Operation("(a − b) mod {n}", lambda a, b, n: (a - b) % n),
    "mult": Operation("a · b mod {n}", lambda a, b, n: a * b % n, needs_prime=True),
    "div": Operation("a / b mod {n}, b ≠ 0", _quotients, needs_prime=True, divides=True),
}
MODULAR = re.compile(rf"(?:({'|'.join(OPERATIONS)})|poly_({PATTERN}))_mod([0-9]{{1,9}})")


def modular_task(name: str, match: re.Match[str]) -> Task:
    """The task whose name matches `MODULAR`.

    >>> modular_task("div_mod97", MODULAR.fullmatch("div_mod97")).inputs.shape
    (9312, 2)
    """
    n = int(match[3])
    require(match[3] == str(n), "a modulus is written without leading zeros", name)
    require(
        SMALLEST_MODULUS <= n <= MAX_ORDER,
        f"the modulus must lie between {SMALLEST_MODULUS} and {MAX_ORDER}, got {n} in {shown(name)}",
    )
    if match[2]:
        terms = parse_polynomial(match[2])
        operation = Operation(f"{match[2]} mod {{n}}", lambda a, b, n: polynomial_values(terms, a, b, n))
    else:
        operation = OPERATIONS[match[1]]
    if operation.needs_prime and not is_prime(n):
        raise InputError(f"{match[1]} needs a prime modulus, got {n} in {shown(name)}{_nearest_prime(n)}")
    inputs = all_pairs(n, without_zero=operation.divides)
    a, b = inputs.T
    bases: dict[BasisName, Callable[[], Basis]] = {}
    if operation.needs_prime:
        bases["multiplicative"] = cache(lambda: Basis("multiplicative", root_powers(n), fourier_modes(n - 1)))
    bases["additive"] = cache(lambda: Basis("additive", np.arange(n), fourier_modes(n)))
    group = named_group(f"Z{n}") if match[1] == "add" else None
    return pair_task(
        name,
        operation.title.format(n=n),
        n,
        inputs,
        operation.answers(a, b, n),
        sums=(a + b) % n,
        bases=bases,
        group=group,
    )


def _nearest_prime(n: int) -> str:
    return f"; the nearest is {min((p for p in range(2, 2 * n) if is_prime(p)), key=lambda p: abs(p - n))}"


@lru_cache(maxsize=64)
def group_task(name: str, group: Group) -> Task:
    """The products of a group's elements.

    >>> group_task("S3", named_group("S3")).symbols
    6
    """
    inputs = all_pairs(group.order)
    isotypic: BasisName = "isotypic"
    return pair_task(
        name,
        f"g·h in {group.name}, a group of order {group.order}",
        group.order,
        inputs,
        group.table[inputs[:, 0], inputs[:, 1]],
        bases={isotypic: cache(lambda: Basis(isotypic, np.arange(group.order), group_modes(group)))},
        group=group,
    )
