"""Modular addition of several terms, and with one number of the equation missing."""

from functools import cache
from itertools import product

import numpy as np

from grokscope.errors import require, shown
from grokscope.tasks.group import MAX_ORDER
from grokscope.tasks.kinds import Kind, Number, Numbers
from grokscope.tasks.modes import fourier_modes
from grokscope.tasks.task import Basis, Task

__all__ = ["MISSING", "SUMS"]

SMALLEST_MODULUS = 5
ALL_ROWS = 100_000  # up to so many every row is one; else so many are drawn


def _sum_task(name: str, numbers: Numbers) -> Task:
    """[a, b, c, …, separator] → (a + b + c + …) mod n."""
    terms, n = int(numbers[""]), int(numbers["mod"])
    rows, seed = numbers["rows"], int(numbers["seed"])
    everything = n**terms
    if np.isnan(rows) and everything <= ALL_ROWS:
        require(not seed, f"every row is one of {shown(name)}: nothing is drawn from seed", seed)
        places = np.arange(everything)
    else:
        from grokscope.tasks.sampling import distinct_numbers  # loads torch; other names can be checked without it

        places = distinct_numbers(seed, 0, ALL_ROWS if np.isnan(rows) else int(rows), everything)
    inputs = places[:, None] // n ** np.arange(terms)[::-1] % n
    return Task(
        name=name,
        title=f"the sum of {terms} numbers mod {n}",
        answers=inputs.sum(axis=1) % n,
        classes=n,
        tokens=np.concatenate([inputs, np.full((len(inputs), 1), n)], axis=1),
        vocabulary=n + 1,
        bases={"additive": cache(lambda: Basis("additive", np.arange(n), fourier_modes(n)))},
    )


def _missing_task(name: str, numbers: Numbers) -> Task:
    """The equation a + b = c mod n with one of its numbers masked: that number is the answer.

    The rows are [a, b, ?, separator] → c, [a, ?, c, separator] → b and [?, b, c, separator] → a for every a and b, so
    addition and subtraction are learnt at once, of one set of symbols.
    """
    n = int(numbers["mod"])
    a, b = np.array(list(product(range(n), repeat=2))).T
    equations = np.stack([a, b, (a + b) % n, np.full_like(a, n)], axis=1)
    masked = [np.where(np.arange(4) == place, n + 1, equations) for place in (2, 1, 0)]
    return Task(
        name=name,
        title=f"the missing number of a + b = c mod {n}",
        answers=np.concatenate([equations[:, place] for place in (2, 1, 0)]),
        classes=n,
        tokens=np.concatenate(masked),
        vocabulary=n + 2,
        bases={"additive": cache(lambda: Basis("additive", np.arange(n), fourier_modes(n)))},
    )


SUMS = Kind(
    "add",
    (
        Number("", 3, 8),
        Number("mod", SMALLEST_MODULUS, MAX_ORDER),
        Number("rows", 16, 2**20, default=np.nan),
        Number("seed", 0, 10**9, default=0),
    ),
    _sum_task,
    "add3_mod23",
    "(a + b + c) mod 23; three to eight terms",
)
MISSING = Kind(
    "missing",
    (Number("mod", SMALLEST_MODULUS, MAX_ORDER),),
    _missing_task,
    "missing_mod97",
    "the number that is missing in a + b = c mod 97",
)
