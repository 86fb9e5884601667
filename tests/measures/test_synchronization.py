from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from grokscope.measures import fsd

random_seeds = st.integers(0, 2**32 - 1)


def powers(seed: int, modes: int, neurons: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).exponential(size=(modes, neurons)))


@given(st.integers(2, 20), st.integers(1, 40), random_seeds)
def test_it_equals_counting_votes(modes: int, neurons: int, seed: int) -> None:
    power = powers(seed, modes, neurons)
    votes = Counter(max(range(modes), key=lambda k: float(power[k, j])) for j in range(neurons))
    share = max(votes.values()) / neurons
    result = fsd(power)
    assert float(result.fsd) == pytest.approx((share - 1 / modes) / (1 - 1 / modes), abs=1e-12)
    assert votes[int(result.mode)] == max(votes.values())
    assert result.participation.tolist() == pytest.approx([votes[k] / neurons for k in range(modes)], abs=1e-12)
    assert 0 <= result.fsd <= 1


@given(st.integers(2, 20), st.integers(1, 40), random_seeds)
def test_the_order_and_scale_of_neurons_do_not_matter(modes: int, neurons: int, seed: int) -> None:
    power, generator = powers(seed, modes, neurons), np.random.default_rng(seed + 1)
    order = torch.from_numpy(generator.permutation(neurons))
    scales = torch.from_numpy(10 ** generator.uniform(-6, 6, neurons))
    one, other = fsd(power), fsd((power * scales)[:, order])
    assert torch.equal(one.fsd, other.fsd)
    assert torch.equal(one.participation, other.participation)


@given(st.integers(2, 20), st.integers(1, 40), random_seeds)
def test_renaming_modes_renames_the_answer(modes: int, neurons: int, seed: int) -> None:
    power = powers(seed, modes, neurons)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(modes))
    one, other = fsd(power), fsd(power[order])
    assert torch.equal(one.fsd, other.fsd)
    assert torch.equal(one.participation[order], other.participation)


def test_all_agree_or_all_differ() -> None:
    agreed = torch.zeros(5, 8)
    agreed[3] = 1
    assert fsd(agreed).fsd == 1
    assert fsd(agreed).mode == 3
    spread = torch.eye(5)
    assert fsd(spread).fsd == pytest.approx(0, abs=1e-7)


def test_silent_neurons_do_not_vote() -> None:
    power = torch.zeros(4, 10)
    power[1, :4], power[2, 4:6] = 1.0, 1.0  # six of ten respond: four for mode 1, two for mode 2
    result = fsd(power)
    assert result.participation.tolist() == pytest.approx([0, 4 / 6, 2 / 6, 0])
    assert float(result.fsd) == pytest.approx((4 / 6 - 1 / 4) / (3 / 4))


def test_a_value_on_a_threshold_reaches_it() -> None:
    power = torch.zeros(5, 25, dtype=torch.float64)
    power[0, :21], power[1, 21:] = 1, 1  # (21/25 − 1/5)/(4/5) = 0.8
    assert float(fsd(power).fsd) == pytest.approx(0.8, abs=1e-15)


@pytest.mark.parametrize("responding", [0, 1, 4, 5])
def test_with_most_neurons_silent_it_is_undefined_and_never_one(responding: int) -> None:
    power = torch.zeros(4, 10)
    power[1, :responding] = 1.0
    assert fsd(power).fsd.isnan()


@given(random_seeds)
def test_runs_do_not_meet(seed: int) -> None:
    power = torch.stack([powers(seed + i, 6, 9) for i in range(4)]).view(2, 2, 6, 9)
    power[0, 1] = 0
    power[1, 0, 2, 3] = torch.nan
    together = fsd(power)
    assert together.fsd.isnan().tolist() == [[False, True], [True, False]]
    for i, j in ((0, 0), (1, 1)):
        assert torch.equal(together.fsd[i, j], fsd(power[i, j]).fsd)
        assert torch.equal(together.mode[i, j], fsd(power[i, j]).mode)
