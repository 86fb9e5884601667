import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from grokscope.errors import InputError
from grokscope.measures.rank import explained_at_rank, fourier_rank, mean_explained
from grokscope.measures.spectrum import spectrum
from grokscope.tasks import named_task

random_seeds = st.integers(0, 2**32 - 1)


def powers(seed: int, modes: int, neurons: int) -> Tensor:
    generator = np.random.default_rng(seed)
    return torch.from_numpy(generator.exponential(size=(modes, neurons)) ** 4)  # ranks from 1 to many


def rank_by_hand(column: list[float], share: float) -> int:
    ordered, total, reached = sorted(column, reverse=True), sum(column), 0.0
    for k, value in enumerate(ordered, start=1):
        reached += value
        if reached / total >= share:
            return k
    raise AssertionError


@given(st.integers(1, 20), st.integers(1, 25), st.floats(0.05, 0.99), random_seeds)
def test_it_equals_adding_the_strongest_one_by_one(modes: int, neurons: int, share: float, seed: int) -> None:
    power = powers(seed, modes, neurons)
    ranks = [rank_by_hand(power[:, j].tolist(), share) for j in range(neurons)]
    found = fourier_rank(power, share)
    assert found.rank.tolist() == ranks
    assert float(found.median) == np.median(ranks)
    assert float(found.rank_one_share) == pytest.approx(ranks.count(1) / neurons)


@given(st.integers(2, 20), st.integers(1, 25), st.integers(1, 4), random_seeds)
def test_explained_is_the_r_squared_of_the_best_modes(n: int, neurons: int, rank: int, seed: int) -> None:
    n = 2 * n + 1
    means = np.random.default_rng(seed).normal(size=(n, neurons)) + 3
    power = spectrum(torch.from_numpy(means), named_task(f"add_mod{n}").basis()).power
    found = explained_at_rank(power, rank)
    for j in range(neurons):
        best = np.argsort(-power[:, j].numpy())[:rank] + 1
        angles = 2 * np.pi * np.outer(np.arange(n), best) / n
        design = np.concatenate([np.ones((n, 1)), np.cos(angles), np.sin(angles)], axis=1)
        fitted = design @ np.linalg.lstsq(design, means[:, j], rcond=None)[0]
        r_squared = 1 - np.sum((means[:, j] - fitted) ** 2) / np.sum((means[:, j] - means[:, j].mean()) ** 2)
        assert float(found[j]) == pytest.approx(r_squared, abs=1e-9)
    assert float(mean_explained(power, rank)) == pytest.approx(found.mean().item(), abs=1e-12)


@given(st.integers(2, 12), st.integers(1, 12), random_seeds)
def test_rank_r_explains_ninety_percent_and_one_less_does_not(modes: int, neurons: int, seed: int) -> None:
    power = powers(seed, modes, neurons)
    for j, rank in enumerate(fourier_rank(power).rank.tolist()):
        assert explained_at_rank(power, int(rank))[j] >= 0.9 - 1e-12
        assert rank == 1 or explained_at_rank(power, int(rank) - 1)[j] < 0.9


@given(st.integers(2, 12), st.integers(1, 12), random_seeds)
def test_order_and_scale_do_not_matter(modes: int, neurons: int, seed: int) -> None:
    power, generator = powers(seed, modes, neurons), np.random.default_rng(seed + 1)
    order = torch.from_numpy(generator.permutation(neurons))
    scales = torch.from_numpy(2.0 ** generator.integers(-30, 30, neurons))
    one, other = fourier_rank(power), fourier_rank((power * scales)[:, order])
    assert torch.equal(one.rank[order], other.rank)
    assert torch.equal(one.median, other.median)


@pytest.mark.parametrize("equal", [1, 2, 5, 10])
def test_a_share_reached_exactly_is_reached(equal: int) -> None:
    power = torch.zeros(12, 1, dtype=torch.float64)
    power[:equal] = 0.1  # ten equal modes: nine of them are 0.9 up to rounding
    assert fourier_rank(power).rank.tolist() == [int(np.ceil(round(0.9 * equal, 9)))]


def test_constant_neurons_have_no_rank_and_do_not_count() -> None:
    power = torch.zeros(3, 4)
    power[0, :3] = 1.0
    power[1, 2] = 1.0
    found = fourier_rank(power)
    assert found.rank[:3].tolist() == [1, 1, 2]
    assert found.rank[3].isnan()
    assert found.median == 1
    assert float(found.rank_one_share) == pytest.approx(2 / 3)
    assert float(mean_explained(power)) == pytest.approx(2.5 / 3)
    assert explained_at_rank(power)[3].isnan()


def test_where_most_are_constant_nothing_is_defined() -> None:
    power = torch.zeros(3, 4)
    power[0, :2] = 1.0
    found = fourier_rank(power)
    assert found.median.isnan()
    assert found.rank_one_share.isnan()
    assert mean_explained(power).isnan()


@given(random_seeds)
def test_runs_do_not_meet(seed: int) -> None:
    power = torch.stack([powers(seed + i, 6, 9) for i in range(3)])
    power[1, 2, 3] = torch.nan
    together = fourier_rank(power)
    assert together.median.isnan().tolist() == [False, True, False]
    assert mean_explained(power).isnan().tolist() == [False, True, False]
    for i in (0, 2):
        alone = fourier_rank(power[i])
        assert torch.equal(together.rank[i], alone.rank)
        assert torch.equal(together.median[i], alone.median)


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match=r"explained_share must lie in \(0, 1\], got 1.5"):
        fourier_rank(torch.ones(2, 2), 1.5)
    with pytest.raises(InputError, match="rank must be at least 1, got 0"):
        explained_at_rank(torch.ones(2, 2), 0)
