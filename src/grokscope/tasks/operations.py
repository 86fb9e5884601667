"""Tasks by name: the paper's modular operations, polynomials, groups and a user's own table."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from grokscope.errors import InputError, nearest, require, shown
from grokscope.specs.run import TABLE
from grokscope.tasks.families import FAMILIES, is_group_name, named_group
from grokscope.tasks.group import MAX_ORDER, Group
from grokscope.tasks.modes import fourier_modes, group_modes
from grokscope.tasks.residues import PATTERN, is_prime, parse_polynomial, polynomial_values, root_powers
from grokscope.tasks.table_file import pinned_table, table_group
from grokscope.tasks.task import Basis, BasisName, Task

__all__ = ["OPERATIONS", "Operation", "group_of", "named_task", "pinned_task_name"]

SMALLEST_MODULUS = 5  # the least with two frequencies and a primitive root that is not −1
Pairs = tuple[np.ndarray, np.ndarray]


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
# The shapes a name can have, with 1 for every number, and how each is completed: what a mistyped name is compared with.
SHAPES = {
    "poly_a1+ab+b1_mod1": "poly_a2+ab+b2_mod{}",
    **{f"{name}_mod1": f"{name}_mod{{}}" for name in OPERATIONS},
    **{f"{letters}1": f"{letters}{{}}" for letters in FAMILIES},
}


def named_task(name: str) -> Task:
    """The task with this name; each is made once, a user's table anew whenever its file has changed.

    >>> named_task("div_mod97").inputs.shape
    (9312, 2)
    """
    return _group_task(name, table_group(name)) if name.startswith(TABLE) else _built_in_task(name)


@lru_cache(maxsize=64)
def _built_in_task(name: str) -> Task:
    match = MODULAR.fullmatch(name)
    if match:
        return _modular_task(name, match)
    if is_group_name(name):
        return _group_task(name, named_group(name))
    raise InputError(f"{shown(name)} is not a task (`grokscope tasks` lists them){_nearest(name)}")


def group_of(name: str) -> Group:
    """The group with this name, or that of a task or table with this name.

    >>> group_of("add_mod97").name
    'Z97'
    """
    if is_group_name(name):
        return named_group(name)
    group = named_task(name).group
    if group is None:
        raise InputError(f"{shown(name)} is not a group's operation; `grokscope tasks {name}` shows what it is")
    return group


def pinned_task_name(name: str) -> str:
    """The name a spec should hold: for a table, with the digest of its content; any other as it is.

    >>> pinned_task_name("add_mod97")
    'add_mod97'
    """
    return pinned_table(name) if name.startswith(TABLE) else name


def _nearest(name: str) -> str:
    """A suggestion with the person's own number in it: `ad_mod97` is near `add_mod97`."""
    shape = nearest(re.sub(r"[0-9]+", "1", name), SHAPES)
    numbers = re.findall(r"[0-9]{1,4}", name) or ["97"]
    return f"; did you mean {SHAPES[shape].format(numbers[-1])!r}?" if shape else ""


def _modular_task(name: str, match: re.Match[str]) -> Task:
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
    a, b = _pairs(n, without_zero=operation.divides)
    bases: dict[BasisName, Callable[[], Basis]] = {}
    if operation.needs_prime:
        bases["multiplicative"] = cache(lambda: Basis("multiplicative", root_powers(n), fourier_modes(n - 1)))
    bases["additive"] = cache(lambda: Basis("additive", np.arange(n), fourier_modes(n)))
    group = named_group(f"Z{n}") if match[1] == "add" else None
    return Task(
        name=name,
        title=operation.title.format(n=n),
        symbols=n,
        inputs=np.stack([a, b], axis=1),
        answers=operation.answers(a, b, n),
        sums=(a + b) % n,
        bases=bases,
        group=group,
    )


def _nearest_prime(n: int) -> str:
    return f"; the nearest is {min((p for p in range(2, 2 * n) if is_prime(p)), key=lambda p: abs(p - n))}"


@lru_cache(maxsize=64)
def _group_task(name: str, group: Group) -> Task:
    a, b = _pairs(group.order)
    isotypic: BasisName = "isotypic"
    return Task(
        name=name,
        title=f"g·h in {group.name}, a group of order {group.order}",
        symbols=group.order,
        inputs=np.stack([a, b], axis=1),
        answers=group.table[a, b],
        sums=None,
        bases={isotypic: cache(lambda: Basis(isotypic, np.arange(group.order), group_modes(group)))},
        group=group,
    )


def _pairs(n: int, without_zero: bool = False) -> Pairs:
    a, b = (side.ravel() for side in np.meshgrid(np.arange(n), np.arange(int(without_zero), n), indexing="ij"))
    return a, b
