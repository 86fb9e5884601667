"""Controls without structure: random Latin squares and random tables, to be memorised and never generalised.

A Latin square has each answer once in every row and column, as a group's table has, and nothing else: what a model
has learnt of some pairs says little about the others, beyond what is left over in a row and a column. Squares are drawn
by the chain of Jacobson and Matthews ("Generating uniformly distributed random Latin squares", 1996), which reaches
every square and whose limit is the uniform distribution; cyclic tables with permuted symbols are isotopic to a group
and would be no control. How fast the chain mixes is not proved. It starts from the cyclic square and stops at the n²th
proper square that it visits, the 1,000th of small orders, which takes some n³ moves. (The first proper square after a
given number of moves would not be uniform: which squares are entered from improper ones is not.)
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import count

import numpy as np

from grokscope.shapes import Int
from grokscope.tasks.group import MAX_ORDER
from grokscope.tasks.kinds import Kind, Number, Numbers
from grokscope.tasks.pairs import all_pairs, pair_task
from grokscope.tasks.task import Task

__all__ = ["LATIN", "RANDOM", "latin_square"]

MOST_LATIN = 128  # some n³ moves take seconds
LEAST_VISITS = 1000
WORDS_AT_ONCE = 2**16


@lru_cache(maxsize=4)
def latin_square(n: int, seed: int = 0) -> Int[np.ndarray, "n n"]:
    """A random Latin square of order n: every symbol 0 … n − 1 once in each row and once in each column.

    Think of a cube with 1 where row r has symbol s in column c; each of its lines sums to 1. A move adds 1 at a cell
    (r, c, s) with 0 and takes 1 from a cell with 1 on each of the three lines through it, at s', c' and r'; that 1 is
    added again at (r, c', s'), (r', c, s') and (r', c', s), and taken from (r', c', s'), which may become −1. Then the
    square is improper, and the next move begins at this cell, on whose lines stand two cells with 1 to choose from.

    >>> sorted(latin_square(4)[0].tolist()), sorted(latin_square(4)[:, 2].tolist())
    ([0, 1, 2, 3], [0, 1, 2, 3])
    """
    words = _words(seed)
    # The symbol of (row, column), the column of (row, symbol) and the row of (column, symbol), as flat lists.
    symbols = [(r + c) % n for r in range(n) for c in range(n)]
    columns = [(s - r) % n for r in range(n) for s in range(n)]
    rows = [(s - c) % n for c in range(n) for s in range(n)]
    pairs: tuple[tuple[int, int], ...] = ()  # the two symbols, columns and rows on the lines of a negative cell
    r = c = s = visits = 0
    while visits < max(n**2, LEAST_VISITS):
        if pairs:
            choice = next(words)
            (s1, s2), (c1, c2), (r1, r2) = (pair[:: -1 if choice >> i & 1 else 1] for i, pair in enumerate(pairs))
        else:
            r, c, s = next(words) % n, next(words) % n, next(words) % (n - 1)
            s += s >= symbols[n * r + c]
            s1, c1, r1 = symbols[n * r + c], columns[n * r + s], rows[n * c + s]
            s2, c2, r2 = s, c, r
        symbols[n * r + c], columns[n * r + s], rows[n * c + s] = s2, c2, r2
        symbols[n * r + c1] = symbols[n * r1 + c] = s1
        columns[n * r + s1] = columns[n * r1 + s] = c1
        rows[n * c + s1] = rows[n * c1 + s] = r1
        at_s, at_c, at_r = n * r1 + c1, n * r1 + s1, n * c1 + s1
        if symbols[at_s] == s1:
            symbols[at_s], columns[at_c], rows[at_r] = s, c, r
            pairs, visits = (), visits + 1
        else:
            pairs = ((symbols[at_s], s), (columns[at_c], c), (rows[at_r], r))
            r, c, s = r1, c1, s1
    return np.array(symbols).reshape(n, n)


def _words(seed: int) -> Iterator[int]:
    """Random whole numbers without end."""
    from grokscope.tasks.sampling import random_numbers  # loads torch; names can be checked without it

    for part in count():
        yield from random_numbers(seed, part, WORDS_AT_ONCE, 2**62).tolist()


def _latin_task(name: str, numbers: Numbers) -> Task:
    n = int(numbers[""])
    inputs = all_pairs(n)
    square = latin_square(n, int(numbers["seed"]))
    return pair_task(name, f"a random Latin square of order {n}", n, inputs, square[inputs[:, 0], inputs[:, 1]])


def _random_task(name: str, numbers: Numbers) -> Task:
    from grokscope.tasks.sampling import random_numbers

    n = int(numbers[""])
    answers = random_numbers(int(numbers["seed"]), 0, n * n, n)
    return pair_task(name, f"a random table of {n} symbols", n, all_pairs(n), answers)


LATIN = Kind(
    "latin",
    (Number("", 5, MOST_LATIN), Number("seed", 0, 10**9, default=0)),
    _latin_task,
    "latin97",
    "a random Latin square: nothing to generalise",
)
RANDOM = Kind(
    "random",
    (Number("", 2, MAX_ORDER), Number("seed", 0, 10**9, default=0)),
    _random_task,
    "random97",
    "a table of random answers: nothing to generalise",
)
