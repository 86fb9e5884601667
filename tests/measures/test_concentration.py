from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from grokscope.measures.concentration import gini, inverse_participation_ratio, spectral_entropy
from grokscope.measures.spectrum import spectrum
from grokscope.tasks import named_task

random_seeds = st.integers(0, 2**32 - 1)


def ipr_by_hand(power: list[float]) -> float:
    return sum(value**2 for value in power) / sum(power) ** 2


def gini_by_hand(power: list[float]) -> float:
    differences = sum(abs(one - other) for one in power for other in power)
    return differences / (2 * len(power) * sum(power))


def entropy_by_hand(power: list[float]) -> float:
    return float(stats.entropy(power) / np.log(len(power)))


MEASURES = {
    "ipr": (inverse_participation_ratio, ipr_by_hand),
    "gini": (gini, gini_by_hand),
    "entropy": (spectral_entropy, entropy_by_hand),
}
# (equal modes, a single mode): the ends of each range, for m modes.
RANGES: dict[str, Callable[[int], tuple[float, float]]] = {
    "ipr": lambda m: (1 / m, 1.0),
    "gini": lambda m: (0.0, 1 - 1 / m),
    "entropy": lambda m: (1.0, 0.0),
}
each = pytest.mark.parametrize("name", MEASURES)


def powers(seed: int, modes: int, neurons: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).exponential(size=(modes, neurons)) ** 3)


@each
@given(st.integers(2, 12), st.integers(1, 8), random_seeds)
def test_it_equals_its_formula(name: str, modes: int, neurons: int, seed: int) -> None:
    measure, by_hand = MEASURES[name]
    power = powers(seed, modes, neurons)
    found = measure(power)
    expected = [by_hand(power[:, j].tolist()) for j in range(neurons)]
    assert found.neuron.tolist() == pytest.approx(expected, abs=1e-10)
    assert float(found.median) == pytest.approx(np.median(expected), abs=1e-10)
    assert float(found.pooled) == pytest.approx(by_hand(power.sum(dim=1).tolist()), abs=1e-10)


@each
@pytest.mark.parametrize("modes", [2, 3, 48])
def test_its_range_ends_at_equal_modes_and_at_one(name: str, modes: int) -> None:
    measure, _ = MEASURES[name]
    even, single = RANGES[name](modes)
    power = torch.zeros(modes, 3, dtype=torch.float64)
    power[-1] = 7.0
    assert measure(torch.ones(modes, 3, dtype=torch.float64)).neuron.tolist() == pytest.approx([even] * 3, abs=1e-12)
    assert measure(power).neuron.tolist() == pytest.approx([single] * 3, abs=1e-12)
    between = measure(powers(0, modes, 200)).neuron
    assert between.min() >= min(even, single)
    assert between.max() <= max(even, single)


@each
@given(st.integers(2, 12), st.integers(1, 8), random_seeds)
def test_order_and_scale_do_not_matter(name: str, modes: int, neurons: int, seed: int) -> None:
    measure, _ = MEASURES[name]
    power, generator = powers(seed, modes, neurons), np.random.default_rng(seed + 1)
    order, renamed = (torch.from_numpy(generator.permutation(size)) for size in (neurons, modes))
    scales = torch.from_numpy(10 ** generator.uniform(-6, 6, neurons))
    one, other = measure(power), measure((power * scales)[renamed][:, order])
    assert torch.allclose(one.neuron[order], other.neuron, rtol=0, atol=1e-12)
    assert torch.allclose(one.median, other.median, rtol=0, atol=1e-12)


def test_pure_neurons_that_disagree_are_pure_one_by_one_and_spread_together() -> None:
    power = torch.eye(10, dtype=torch.float64)
    assert inverse_participation_ratio(power).median == 1
    assert float(inverse_participation_ratio(power).pooled) == pytest.approx(0.1)
    assert spectral_entropy(power).median == 0
    assert float(spectral_entropy(power).pooled) == pytest.approx(1)
    assert float(gini(power).median) == pytest.approx(0.9)
    assert float(gini(power).pooled) == pytest.approx(0, abs=1e-12)


def test_an_embedding_is_read_like_neurons() -> None:
    angles = 2 * torch.pi * torch.arange(31, dtype=torch.float64)[:, None] * torch.tensor([3, 3, 8]) / 31
    embedding = torch.cat([angles.cos(), angles.sin()], dim=1)
    found = inverse_participation_ratio(spectrum(embedding, named_task("add_mod31").basis()).power)
    assert found.neuron.tolist() == pytest.approx([1.0] * 6)
    assert float(found.pooled) == pytest.approx((2 / 3) ** 2 + (1 / 3) ** 2)


@each
def test_constant_neurons_are_left_out_and_most_make_it_undefined(name: str) -> None:
    measure, by_hand = MEASURES[name]
    power = powers(0, 5, 4)
    power[:, 3] = 0
    found = measure(power)
    assert found.neuron.isnan().tolist() == [False, False, False, True]
    assert float(found.median) == pytest.approx(np.median([by_hand(power[:, j].tolist()) for j in range(3)]))
    power[:, 2] = 0
    assert measure(power).median.isnan()
    assert measure(power).pooled.isnan()


@each
def test_nan_stays_in_its_own_run(name: str) -> None:
    measure, _ = MEASURES[name]
    power = torch.stack([powers(i, 5, 7) for i in range(3)])
    power[1, 2, 3] = torch.nan
    found = measure(power)
    assert found.median.isnan().tolist() == [False, True, False]
    assert found.pooled.isnan().tolist() == [False, True, False]
    for i in (0, 2):
        assert torch.equal(found.neuron[i], measure(power[i]).neuron)


def test_the_entropy_of_one_mode_is_undefined() -> None:
    assert spectral_entropy(torch.ones(1, 3)).neuron.isnan().all()
