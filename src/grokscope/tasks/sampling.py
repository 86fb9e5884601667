"""Random rows of tasks: pure functions of a seed, the same on every device, platform and version."""

import numpy as np
import torch

from grokscope.errors import require
from grokscope.randomness import bits, normal, permutation
from grokscope.shapes import Float, Int
from grokscope.specs.spec import WORD_LIMIT

__all__ = ["distinct_numbers", "gaussian", "random_numbers", "random_order"]

GRID = 2**20
ENUMERABLE = 2**22  # so many numbers are put in an order rather than drawn one by one


def random_numbers(seed: int, part: int, count: int, limit: int) -> Int[np.ndarray, " count"]:
    """Numbers 0 … limit − 1, drawn independently; `part` tells apart what is drawn from one seed.

    >>> random_numbers(0, 0, 5, 10).tolist()
    [8, 8, 0, 8, 0]
    """
    words = bits(_seed(seed), "task", torch.tensor(part), count)
    drawn: np.ndarray = (((words >> 1) & (2**62 - 1)) % limit).numpy()  # the bias of the remainder: limit/2⁶²
    return drawn


def random_order(seed: int, part: int, count: int) -> Int[np.ndarray, " count"]:
    """A uniformly drawn order of 0 … count − 1."""
    order: np.ndarray = permutation(_seed(seed), "task", torch.tensor(part), count).numpy()
    return order


def distinct_numbers(seed: int, part: int, count: int, limit: int) -> Int[np.ndarray, " count"]:
    """Different numbers 0 … limit − 1, in ascending order, every set of them equally likely.

    >>> distinct_numbers(0, 0, 3, 10**12).tolist() == sorted(set(distinct_numbers(0, 0, 3, 10**12).tolist()))
    True
    """
    require(count <= limit, f"there are {limit} different rows", count)
    if limit <= ENUMERABLE:
        return np.sort(random_order(seed, part, limit)[:count])
    drawn = random_numbers(seed, part, 2 * count + 64, limit)
    _, first = np.unique(drawn, return_index=True)
    return np.sort(drawn[np.sort(first)[:count]])


def gaussian(seed: int, part: int, *shape: int) -> Float[np.ndarray, "..."]:
    """Standard normal numbers, rounded to multiples of 2⁻²⁰.

    log and cos may differ in their last bit between platforms. After rounding, that shows in one number of 10⁹ at most,
    and sums of products of such numbers are exact in any order.
    """
    drawn = normal(_seed(seed), "task", torch.tensor(part), int(np.prod(shape))).numpy()
    rounded: np.ndarray = np.round(drawn * GRID).reshape(shape) / GRID
    return rounded


def _seed(seed: int) -> torch.Tensor:
    require(0 <= seed < WORD_LIMIT, "the seed of a task must lie in [0, 2^63)", seed)
    return torch.tensor(seed)
