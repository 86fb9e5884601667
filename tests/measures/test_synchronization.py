from collections import Counter
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from grokscope.errors import InputError
from grokscope.measures.spectrum import spectrum
from grokscope.measures.synchronization import FsdResult, fsd, fsd_gen, fsd_top_k
from grokscope.tasks import named_task

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


def test_constant_neurons_are_counted_and_strongest_modes_named() -> None:
    power = torch.zeros(2, 3, 5)
    power[0, 2, :4] = torch.tensor([1.0, 1.0, 2.0, 1.0])
    power[0, 0, 0] = 3.0
    result = fsd(power)
    assert result.strongest_mode.tolist() == [[0, 2, 2, 2, -1], [-1] * 5]
    assert result.constant.tolist() == [1, 5]
    assert result.constant_share.tolist() == pytest.approx([0.2, 1.0])
    assert result.responding.tolist() == [4, 0]
    assert result.peak.tolist() == [3, 0]


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


# FSD_k and FSD_gen.


def participation_by_hand(power: Tensor, top_k: int) -> list[float]:
    modes, neurons = power.shape
    takes_part = [0] * modes
    for j in range(neurons):
        for k in sorted(range(modes), key=lambda k: -float(power[k, j]))[:top_k]:
            takes_part[k] += 1
    return [count / neurons for count in takes_part]


@given(st.integers(3, 9), st.integers(1, 30), st.integers(1, 3), random_seeds)
def test_fsd_k_is_the_best_of_all_sets_of_k_modes(modes: int, neurons: int, top_k: int, seed: int) -> None:
    top_k = min(top_k, modes - 1)
    power = powers(seed, modes, neurons)
    share = participation_by_hand(power, top_k)
    best = max(sum(share[f] for f in chosen) / top_k for chosen in combinations(range(modes), top_k))
    c = top_k / modes
    result = fsd_top_k(power, top_k)
    assert result.participation.tolist() == pytest.approx(share, abs=1e-12)
    assert float(result.fsd) == pytest.approx((best - c) / (1 - c), abs=1e-12)
    assert result.chance == c


@given(st.integers(3, 9), st.integers(1, 30), st.integers(1, 3), random_seeds)
def test_fsd_gen_is_the_peak_over_one_mode(modes: int, neurons: int, top_k: int, seed: int) -> None:
    top_k = min(top_k, modes - 1)
    power = powers(seed, modes, neurons)
    share, c = participation_by_hand(power, top_k), top_k / modes
    result = fsd_gen(power, top_k)
    assert float(result.fsd) == pytest.approx((max(share) - c) / (1 - c), abs=1e-12)
    assert share[int(result.mode)] == max(share)
    assert result.fsd >= fsd_top_k(power, top_k).fsd - 1e-12


@given(st.sampled_from([5, 7, 11, 31, 53]), st.integers(1, 40), random_seeds)
def test_on_odd_cyclic_groups_fsd_gen_is_exactly_fsd(p: int, neurons: int, seed: int) -> None:
    means = np.random.default_rng(seed).normal(size=(p, neurons))
    # Definition 2 from a naive transform: dominant frequency by 2|Â_f|², f = 1 … ⌊p/2⌋.
    transform = np.exp(-2j * np.pi * np.outer(np.arange(1, p // 2 + 1), np.arange(p)) / p) @ means
    votes = Counter(np.argmax(2 * np.abs(transform) ** 2, axis=0).tolist())
    peak = torch.tensor(max(votes.values()), dtype=torch.float64) / neurons
    c = 1 / (p // 2)
    waves = spectrum(torch.from_numpy(means), named_task(f"add_mod{p}").basis())
    for result in (fsd(waves.density), fsd_gen(waves.density), fsd_top_k(waves.density, 1)):
        assert torch.equal(result.fsd, (peak - c) / (1 - c))
        assert votes[int(result.mode)] == max(votes.values())


def test_small_modes_are_ranked_by_power_per_dimension() -> None:
    task = named_task("S5")
    basis = task.basis()
    sign, largest = (basis.modes.block(mode)[:, :1] for mode in (0, 5))
    assert basis.modes.modes[5].dimension == 36
    # Six times the sign's power lies in the 36-dimensional mode: a sixth of it per dimension.
    waves = spectrum(torch.from_numpy(sign + 6**0.5 * largest).repeat(1, 3), basis)
    assert fsd(waves.density).strongest_mode.tolist() == [0, 0, 0]
    assert fsd(waves.power).strongest_mode.tolist() == [5, 5, 5]


@pytest.mark.parametrize("measure", [fsd_top_k, fsd_gen])
def test_a_pure_wave_has_no_second_mode(measure: Callable[[Tensor, int], FsdResult]) -> None:
    # Without this, all pure neurons would share an arbitrary second mode, and look synchronised.
    phases = torch.linspace(0, 6, 20, dtype=torch.float64)
    wave = torch.cos(2 * torch.pi * 5 * torch.arange(31, dtype=torch.float64)[:, None] / 31 + phases)
    density = spectrum(wave, named_task("add_mod31").basis()).density
    participation = measure(density, 2).participation
    assert participation[4] == 1
    assert participation.sum() == 1


@given(st.integers(3, 9), st.integers(1, 30), st.integers(1, 2), random_seeds)
def test_order_and_scale_do_not_matter_to_top_k_either(modes: int, neurons: int, top_k: int, seed: int) -> None:
    power, generator = powers(seed, modes, neurons), np.random.default_rng(seed + 1)
    order = torch.from_numpy(generator.permutation(neurons))
    scales = torch.from_numpy(10 ** generator.uniform(-6, 6, neurons))
    for measure in (fsd_top_k, fsd_gen):
        assert torch.equal(measure(power, top_k).fsd, measure((power * scales)[:, order], top_k).fsd)


@pytest.mark.parametrize("measure", [fsd_top_k, fsd_gen])
def test_where_every_mode_counts_there_is_nothing_to_agree_on(measure: Callable[[Tensor, int], FsdResult]) -> None:
    assert measure(powers(0, 3, 8), 3).fsd.isnan()
    assert fsd(torch.ones(1, 8)).fsd.isnan()
    assert measure(torch.zeros(4, 8), 2).fsd.isnan()
    for top_k in (0, 4):
        with pytest.raises(InputError, match=f"between 1 and the number of modes, 3, got {top_k}"):
            measure(powers(0, 3, 8), top_k)
