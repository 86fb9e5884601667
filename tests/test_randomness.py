import math
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from grokscope.randomness import GOLDEN, STREAMS, bits, normal, permutation, uniform, unit_interval

seeds = st.integers(0, 2**63 - 1)


def splitmix64(seed: int, stream: int, epoch: int, count: int) -> list[int]:
    """The definition, in Python's unbounded integers."""

    def mixed(x: int) -> int:
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
        return x ^ (x >> 31)

    golden = 0x9E3779B97F4A7C15
    key = mixed((mixed((mixed(stream * golden % 2**64) + seed) % 2**64) + epoch) % 2**64)
    return [mixed((key + i * golden) % 2**64) for i in range(1, count + 1)]


@given(seeds, st.sampled_from(sorted(STREAMS)), st.integers(0, 10**6))
def test_bits_equal_the_definition(seed: int, stream, epoch: int) -> None:
    drawn = bits(torch.tensor(seed), stream, torch.tensor(epoch), 8).numpy().astype(np.uint64)
    assert drawn.tolist() == splitmix64(seed, STREAMS[stream], epoch, 8)


@given(st.lists(seeds, min_size=1, max_size=5), st.integers(0, 1000))
def test_a_run_does_not_depend_on_its_neighbours(several: list[int], epoch: int) -> None:
    together = permutation(torch.tensor(several), "order", torch.full((len(several),), epoch), 50)
    for seed, row in zip(several, together, strict=True):
        assert torch.equal(row, permutation(torch.tensor(seed), "order", torch.tensor(epoch), 50))


@given(seeds, st.integers(1, 300))
def test_permutations_permute(seed: int, count: int) -> None:
    order = permutation(torch.tensor(seed), "order", torch.tensor(3), count)
    assert sorted(order.tolist()) == list(range(count))


def test_golden_values() -> None:
    # The same on every device, platform and version, for ever: stored splits depend on them.
    seed, epoch = torch.tensor(42), torch.tensor(7)
    assert permutation(seed, "split", epoch, 10).tolist() == [6, 2, 5, 3, 1, 7, 4, 0, 8, 9]
    assert uniform(seed, "dropout", epoch, 2).tolist() == [0.3618481197022937, 0.1690998193512453]


def test_neither_end_of_the_unit_interval_is_drawn() -> None:
    lowest, highest = unit_interval(torch.tensor([0, -1])).tolist()  # words of 64 zeros and of 64 ones
    assert lowest == 2**-53
    assert highest == 1 - 2**-53
    assert normal(torch.arange(100), "null", torch.zeros(100, dtype=torch.int64), 100).isfinite().all()


@given(seeds, st.integers(1, 20))
def test_a_draw_does_not_depend_on_how_many_are_drawn(seed: int, count: int) -> None:
    for draw in (uniform, normal):
        few, many = (draw(torch.tensor(seed), "initialization", torch.tensor(0), n) for n in (count, 33))
        # to the last bit of log and cos, which may depend on where a number stands in a vector
        assert torch.allclose(few, many[:count], rtol=1e-14, atol=1e-15)


def test_normal_draws_are_box_and_mullers() -> None:
    seed, epoch = torch.tensor(3), torch.tensor(1)
    drawn, flat = normal(seed, "null", epoch, 50).tolist(), uniform(seed, "null", epoch, 100).tolist()
    expected = [
        math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v) for u, v in zip(flat[::2], flat[1::2], strict=True)
    ]
    assert drawn == pytest.approx(expected, rel=1e-12)


def test_distributions() -> None:
    seed, epoch = torch.tensor(1), torch.tensor(0)
    assert stats.kstest(uniform(seed, "null", epoch, 20_000).numpy(), "uniform").pvalue > 0.001
    assert stats.kstest(normal(seed, "null", epoch, 20_000).numpy(), "norm").pvalue > 0.001


def test_every_place_is_equally_likely() -> None:
    orders = permutation(torch.arange(20_000), "order", torch.zeros(20_000, dtype=torch.int64), 6)
    for place in range(6):
        assert stats.chisquare(np.bincount(orders[:, place].numpy())).pvalue > 0.0005


@pytest.mark.parametrize("other", [name for name in STREAMS if name != "split"])
def test_streams_share_nothing(other) -> None:
    seed, epoch = torch.tensor(5), torch.tensor(0)
    assert not set(bits(seed, "split", epoch, 100).tolist()) & set(bits(seed, other, epoch, 100).tolist())


COMPILED = """
import torch
from torch._inductor.utils import run_and_get_code
from grokscope.randomness import uniform

def dropped(seed, epoch, x):
    draws = uniform(seed, "dropout", epoch, x[0].numel()).view_as(x)
    return torch.where(draws < 0.1, 0.0, x).sum(dim=-1)

arguments = (torch.arange(2), torch.arange(2), torch.ones(2, 6, 32))
found, code = run_and_get_code(torch.compile(dropped), *arguments)
assert torch.equal(found, dropped(*arguments))
print(*code)
"""


def test_a_compiler_does_not_take_the_counter_for_an_index() -> None:
    # It multiplied (i + 1)·golden out in whole numbers that never wrap: on CUDA dropout could not be compiled.
    # In a process of its own, without the type checks that tests install.
    code = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=True).stdout
    assert str(abs(GOLDEN)) in code
    assert not re.search(rf"{abs(GOLDEN)}L?\)\s*\*\s*x", code)
