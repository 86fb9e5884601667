"""Chance as a pure function of (seed, stream, epoch, index).

Each draw is SplitMix64's output function (Steele, Lea and Flood, 2014) over a counter, in 64-bit integer
arithmetic that wraps alike everywhere, so nothing has to be stored to continue a run, and a run's draws do not
depend on its neighbours in a stack. Words, orders and uniform draws are the same on every device, platform and
version; library generators promise this only within one version.
"""

import math
from typing import Literal

import torch
from torch import Tensor

from grokscope.shapes import Float, Int

__all__ = ["Stream", "bits", "normal", "permutation", "uniform"]

Stream = Literal[
    "split", "labels", "order", "initialization", "dropout", "trigger", "null", "task", "measure", "direction"
]
# New ones are appended: the numbers are part of every result.
STREAMS: dict[Stream, int] = {
    "split": 1,
    "labels": 2,
    "order": 3,
    "initialization": 4,
    "dropout": 5,
    "trigger": 6,
    "null": 7,
    "task": 9,
    "measure": 10,
    "direction": 11,
}
GOLDEN = 0x9E3779B97F4A7C15 - 2**64  # 2⁶⁴/φ, odd: the counter's increment, as a signed word
MIX_1 = 0xBF58476D1CE4E5B9 - 2**64
MIX_2 = 0x94D049BB133111EB - 2**64


def _signed(x: int) -> int:
    """The 64-bit word that x leaves modulo 2⁶⁴, as torch holds it."""
    return (x + 2**63) % 2**64 - 2**63


def _mixed(x: Tensor) -> Tensor:
    """SplitMix64's bijection of 64-bit words; `>>` is made a logical shift by the mask."""
    x = (x ^ ((x >> 30) & (2**34 - 1))) * MIX_1
    x = (x ^ ((x >> 27) & (2**37 - 1))) * MIX_2
    return x ^ ((x >> 31) & (2**33 - 1))


# Each purpose starts from a hash of its own, so two of them are independent as hashes are: that their draws meet is
# not forbidden, it is as unlikely as any two 64-bit words being equal.
STREAM_KEYS: dict[Stream, int] = {
    stream: int(_mixed(torch.tensor(_signed(number * GOLDEN)))) for stream, number in STREAMS.items()
}


def bits(
    seed: Int[Tensor, "*runs"], stream: Stream, epoch: Int[Tensor, "*runs"], count: int
) -> Int[Tensor, "*runs count"]:
    """`count` uniform 64-bit words for each run.

    Word i is mix(key + (i + 1)·golden) with key = mix(mix(mix(stream·golden) + seed) + epoch).

    >>> bits(torch.tensor(42), "order", torch.tensor(0), 2)
    tensor([2070475092035161981, 1230383449086658480])
    """
    key = _mixed(_mixed(seed + STREAM_KEYS[stream]) + epoch)
    # The mask changes nothing. Without it the compiler takes the product for an index, does its arithmetic in whole
    # numbers that never wrap, and fails on those beyond 64 bits.
    counter = torch.arange(1, count + 1, device=seed.device) & (2**63 - 1)
    return _mixed(key[..., None] + counter * GOLDEN)


def unit_interval(words: Int[Tensor, "*words"]) -> Float[Tensor, "*words"]:
    """Doubles in (0, 1) from 64-bit words: the centres of 2⁵² equal cells; the last of 2⁵³ would be rounded to 1."""
    return (((words >> 12) & (2**52 - 1)).double() + 0.5) * 2.0**-52


def uniform(
    seed: Int[Tensor, "*runs"], stream: Stream, epoch: Int[Tensor, "*runs"], count: int
) -> Float[Tensor, "*runs count"]:
    """Doubles in (0, 1); neither 0 nor 1 is ever drawn.

    >>> draws = uniform(torch.tensor(42), "null", torch.tensor(0), 1000)
    >>> bool((draws > 0).all() and (draws < 1).all()), round(float(draws.mean()), 1)
    (True, 0.5)
    """
    return unit_interval(bits(seed, stream, epoch, count))


def normal(
    seed: Int[Tensor, "*runs"], stream: Stream, epoch: Int[Tensor, "*runs"], count: int
) -> Float[Tensor, "*runs count"]:
    """Standard normal doubles by Box and Muller (1958): √(−2 ln u) cos 2πv, draw i from the words 2i and 2i + 1.

    log and cos may differ in the last bit between platforms and devices. Splits and orders never use them.

    >>> draws = normal(torch.tensor(42), "null", torch.tensor(0), 10_000)
    >>> round(float(draws.std()), 1)
    1.0
    """
    draws = uniform(seed, stream, epoch, 2 * count)
    u, v = draws[..., 0::2], draws[..., 1::2]
    return (-2 * u.log()).sqrt() * (2 * math.pi * v).cos()


def permutation(
    seed: Int[Tensor, "*runs"], stream: Stream, epoch: Int[Tensor, "*runs"], count: int
) -> Int[Tensor, "*runs count"]:
    """A uniformly drawn order of 0 … count − 1: the indices sorted by their random words.

    >>> permutation(torch.tensor(42), "order", torch.tensor(0), 5)
    tensor([4, 2, 1, 0, 3])
    """
    # Words of 64 bits tie with a chance below count²/2⁶⁵; a stable sort makes even that reproducible.
    return bits(seed, stream, epoch, count).sort(dim=-1, stable=True).indices
