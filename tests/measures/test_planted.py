"""Circuits built by hand over all pairs: each measure must give back what was planted, and nothing of noise."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from grokscope.activations import condition_of, conditioning_basis, means_of
from grokscope.measures.concentration import gini, inverse_participation_ratio, spectral_entropy
from grokscope.measures.nulls import (
    exact_test,
    gaussian_null,
    strongest_mode_chances,
    uniform_p_value,
)
from grokscope.measures.rank import explained_at_rank, fourier_rank, mean_explained
from grokscope.measures.spectrum import Spectrum, spectrum
from grokscope.measures.surrogates import answer_permutation_null
from grokscope.measures.synchronization import FsdResult, fsd, fsd_gen, fsd_top_k
from grokscope.stats.multinomial import critical_peak, peak_tail
from grokscope.tasks import named_task

NEURONS = 60


def waves(n: int, frequencies: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """cos(2πf_j s/n + φ_j) over s, with random phases: [answers, neurons]."""
    phases = generator.uniform(0, 2 * np.pi, frequencies.shape)
    return np.cos(2 * np.pi * np.outer(np.arange(n), frequencies) / n + phases)


def activation(name: str, response: np.ndarray, noise: float, seed: int = 0) -> Tensor:
    """A response to the answer, an offset, and what a and b add by themselves, in all pairs, with noise in each."""
    task, generator = named_task(name), np.random.default_rng(seed + 1)
    a, b = task.inputs.T
    neurons = response.shape[1]
    of_a, of_b = generator.normal(size=(2, task.symbols, neurons))
    clean = response[task.answers] + generator.normal(3, 1, neurons) + of_a[a] + of_b[b]
    return torch.from_numpy(clean + noise * generator.normal(size=clean.shape))[None]


def read(name: str, hidden: Tensor, by="answer", basis: str = "") -> Spectrum:
    task = named_task(name)
    found = means_of(hidden, torch.tensor(condition_of(task, by).values), task.symbols)
    return spectrum(found.means, conditioning_basis(task, by, basis), found.mean_square)


# One frequency. The response has amplitude 1, so noise of 4 in each of the 961 pairs has 32 times its power.


@pytest.mark.parametrize("noise", [0.0, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("frequency", [1, 7, 15])
def test_a_shared_frequency_is_found_in_noise_of_up_to_four_times_its_amplitude(frequency: int, noise: float) -> None:
    generator = np.random.default_rng(frequency)
    response = waves(31, np.full(NEURONS, frequency), generator)
    found = read("add_mod31", activation("add_mod31", response, noise))
    result = fsd(found.density)
    assert result.fsd.tolist() == [1.0]
    assert result.mode.tolist() == [frequency - 1]
    assert (result.strongest_mode == frequency - 1).all()
    assert result.constant.tolist() == [0]
    assert exact_test(result).p_value < 1e-50
    assert float(uniform_p_value(result)) == 1 / 1001
    # Noise of power σ²/31 in each of 30 dimensions stands against 31/2: rank 1 holds until it reaches a tenth.
    if noise <= 1:
        assert fourier_rank(found.power).median == 1
    expected = 15.5 / (15.5 + 30 * noise**2 / 31)
    assert float(mean_explained(found.power)) == pytest.approx(expected, abs=0.08)


@pytest.mark.parametrize("noise", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("sharing", [12, 30, 48])
def test_partial_agreement_is_measured_as_planted(sharing: int, noise: float) -> None:
    generator = np.random.default_rng(sharing)
    planted = np.concatenate([np.full(sharing, 5), generator.integers(1, 16, NEURONS - sharing)])
    found = read("add_mod31", activation("add_mod31", waves(31, planted, generator), noise))
    share = (planted == 5).mean()
    result = fsd(found.density)
    assert float(result.fsd) == pytest.approx((share - 1 / 15) / (14 / 15), abs=1e-12)
    assert (result.strongest_mode[0].numpy() == planted - 1).all()


@pytest.mark.parametrize("dead", [10, 29, 30, 45])
def test_neurons_deaf_to_the_answer_are_counted_and_most_of_them_make_it_undefined(dead: int) -> None:
    response = waves(31, np.full(NEURONS, 5), np.random.default_rng(0))
    response[:, :dead] = 0  # these still answer to a and to b, each by itself
    found = read("add_mod31", activation("add_mod31", response, 0.0))
    result = fsd(found.density)
    assert result.constant.tolist() == [dead]
    assert float(result.constant_share) == pytest.approx(dead / NEURONS)
    assert result.fsd.isnan().tolist() == [dead >= 30]
    assert fourier_rank(found.power).median.isnan().tolist() == [dead >= 30]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["add_mod31", "mult_mod31", "S4"])
def test_a_model_deaf_to_the_answer_is_undefined_and_never_one(name: str, dtype: torch.dtype) -> None:
    constant = torch.full((1, len(named_task(name).inputs), 8), 0.7, dtype=dtype)
    found = read(name, constant)
    assert found.is_constant.all()
    for result in (fsd(found.density), fsd_gen(found.density, 2), fsd_top_k(found.density, 2)):
        assert result.fsd.isnan().all()
        assert result.constant_share.tolist() == [1.0]
    assert uniform_p_value(fsd(found.density)).isnan().all()
    assert exact_test(fsd(found.density)).randomized.isnan().all()
    for measure in (gini, inverse_participation_ratio, spectral_entropy):
        assert measure(found.power).median.isnan().all()


def test_an_amplitude_of_a_ten_thousandth_survives_float32() -> None:
    response = 1e-4 * waves(31, np.full(NEURONS, 5), np.random.default_rng(0))
    hidden = torch.from_numpy(1 + response[named_task("add_mod31").answers])[None].float()
    found = read("add_mod31", hidden)
    assert fsd(found.density).fsd.tolist() == [1.0]
    assert fourier_rank(found.power).median == 1


# Mixtures.


@pytest.mark.parametrize("noise", [0.0, 0.3, 1.0])
def test_two_shared_frequencies_have_rank_two_and_fsd_2_of_one(noise: float) -> None:
    generator = np.random.default_rng(2)
    pairs = np.array([(4, 11) if j % 2 else (11, 4) for j in range(NEURONS)]).T  # which of the two is the stronger
    response = waves(31, pairs[0], generator) + 0.8 * waves(31, pairs[1], generator)
    found = read("add_mod31", activation("add_mod31", response, noise))
    assert fourier_rank(found.power).median == 2
    assert fourier_rank(found.power).rank_one_share == 0
    assert fsd_top_k(found.density, 2).fsd.tolist() == [1.0]
    assert fsd_gen(found.density, 2).fsd.tolist() == [1.0]
    assert sorted(fsd_top_k(found.density, 2).participation[0].topk(2).indices.tolist()) == [3, 10]
    assert 0.4 < fsd(found.density).fsd < 0.6  # one frequency alone sees half of it
    if noise == 0:
        assert explained_at_rank(found.power)[0].tolist() == pytest.approx([1 / 1.64] * NEURONS, abs=1e-9)
        assert explained_at_rank(found.power, 2)[0].tolist() == pytest.approx([1.0] * NEURONS, abs=1e-9)
        shares = np.array([1, 0.64]) / 1.64
        expected = {
            inverse_participation_ratio: (shares**2).sum(),
            spectral_entropy: stats.entropy(shares) / np.log(15),
            gini: (14 * shares[0] + 12 * shares[1]) / 15,
        }
        for measure, value in expected.items():
            assert float(measure(found.power).median) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_so_many_equal_frequencies_are_so_high_a_rank(count: int) -> None:
    generator = np.random.default_rng(count)
    chosen = np.stack([generator.permutation(15)[:count] + 1 for _ in range(NEURONS)], axis=1)
    response = sum(waves(31, frequencies, generator) for frequencies in chosen)
    found = read("add_mod31", activation("add_mod31", response, 0.2))
    assert (fourier_rank(found.power).rank == count).all()
    assert float(inverse_participation_ratio(found.power).median) == pytest.approx(1 / count, abs=0.02)


# Groups.


def irrep_waves(name: str, modes: list[int], generator: np.random.Generator) -> np.ndarray:
    """A random function of each neuron's own mode, of variance 1 over the group."""
    over_group = named_task(name).basis().modes
    columns = [over_group.block(mode) @ generator.normal(size=over_group.modes[mode].dimension) for mode in modes]
    return np.stack([column / column.std() for column in columns], axis=1)


@pytest.mark.parametrize("noise", [0.0, 1.0, 2.0])
@pytest.mark.parametrize(("name", "mode"), [("S4", 0), ("S4", 2), ("S5", 1), ("S5", 3), ("A5", 0), ("Q8", 3)])
def test_a_shared_irrep_is_found_in_noise_of_up_to_twice_its_amplitude(name: str, mode: int, noise: float) -> None:
    response = irrep_waves(name, [mode] * 24, np.random.default_rng(mode))
    found = read(name, activation(name, response, noise if name != "Q8" else noise / 2))
    result = fsd_gen(found.density)
    assert result.fsd.tolist() == [1.0]
    assert result.mode.tolist() == [mode]
    chances = strongest_mode_chances(tuple(int(d) for d in found.dimensions))
    assert exact_test(result, chances).p_value < 1e-6
    null = gaussian_null(found.dimensions, 24, resamples=200)
    assert result.fsd > null.values.max()


def test_two_shared_irreps_are_seen_by_top_two() -> None:
    generator = np.random.default_rng(0)
    one, other = (irrep_waves("S5", [mode] * 30, generator) for mode in (1, 4))
    scales = np.where(np.arange(30) % 2, 1.5, 0.7)
    found = read("S5", activation("S5", one * scales + other, 1.0))
    assert fsd_gen(found.density, 2).fsd.tolist() == [1.0]
    assert fsd_top_k(found.density, 2).fsd.tolist() == [1.0]
    assert fsd_gen(found.density).fsd < 0.6


@pytest.mark.parametrize("name", ["mult_mod31", "div_mod31"])
@pytest.mark.parametrize("noise", [0.0, 1.0, 3.0])
def test_multiplication_is_found_in_its_own_characters_and_in_no_other_basis(name: str, noise: float) -> None:
    response = np.zeros((31, NEURONS))
    units = named_task(name).basis().answers  # the powers of a primitive root, in order
    response[units] = waves(30, np.full(NEURONS, 4), np.random.default_rng(1))
    hidden = activation(name, response, noise)
    result = fsd(read(name, hidden).density)
    assert result.fsd.tolist() == [1.0]
    assert result.mode.tolist() == [3]
    for elsewhere in (read(name, hidden, basis="additive"), read(name, hidden, by="sum")):
        assert fsd(elsewhere.density).fsd < 0.7
        assert fourier_rank(elsewhere.power).median > 4


# What is shared without being the answer's.


def test_a_planted_circuit_stands_out_from_renamed_tokens() -> None:
    response = waves(31, np.full(NEURONS, 5), np.random.default_rng(0))
    hidden = activation("add_mod31", response, 1.0)
    null = answer_permutation_null(hidden, named_task("add_mod31"), draws=99)
    observed = fsd(read("add_mod31", hidden).density).fsd
    assert float(null.p_value(observed)) == 0.01
    assert null.values.max() < 0.9


def test_neurons_that_share_a_meaningless_direction_do_not() -> None:
    # All neurons are one random function of the pair: as synchronised as can be, and not by the answer.
    task, generator = named_task("add_mod31"), np.random.default_rng(4)
    shared = generator.normal(size=(len(task.inputs), 1)) * generator.uniform(0.5, 2, NEURONS)
    hidden = torch.from_numpy(shared)[None]
    result = fsd(read("add_mod31", hidden).density)
    assert result.fsd.tolist() == [1.0]
    assert float(uniform_p_value(result)) == 1 / 1001  # to independent neurons this is beyond doubt
    assert float(answer_permutation_null(hidden, task, draws=99).p_value(result.fsd)) == 1.0


# Noise alone.


def rate_is(rejected: Tensor, size: float) -> bool:
    """Whether so many rejections are an ordinary draw (99.9 %) of a test of this size."""
    return stats.binomtest(int(rejected.sum()), rejected.numel(), size).pvalue > 0.001


@pytest.fixture(scope="module")
def noise_on_13() -> FsdResult:
    """FSD of 64 neurons of white noise over the 169 pairs of Z_13, 2,000 times."""
    generator, task = torch.Generator().manual_seed(0), named_task("add_mod13")
    answers, densities = torch.tensor(task.answers), []
    for _ in range(8):
        hidden = torch.randn(250, 169, 64, generator=generator, dtype=torch.float64)
        densities.append(spectrum(means_of(hidden, answers, 13).means, task.basis()).density)
    return fsd(torch.cat(densities))


def test_the_randomised_p_value_of_noise_is_uniform(noise_on_13: FsdResult) -> None:
    test = exact_test(noise_on_13)
    assert stats.kstest(test.randomized.numpy(), stats.uniform.cdf).pvalue > 0.01


def test_the_plain_p_value_of_noise_is_small_as_often_as_its_exact_size(noise_on_13: FsdResult) -> None:
    test = exact_test(noise_on_13)
    size = float(test.attained_size[0])
    assert 0.01 < size <= 0.05
    assert rate_is(test.p_value <= 0.05, size)


def test_the_resampled_p_value_of_noise_keeps_the_size_of_its_own_threshold(noise_on_13: FsdResult) -> None:
    p = uniform_p_value(noise_on_13)
    threshold = int(noise_on_13.peak[p <= 0.05].min())
    chances = (1 / 6,) * 6
    assert abs(threshold - critical_peak(64, chances)) <= 1
    assert rate_is(p <= 0.05, peak_tail(threshold, 64, chances))
    assert torch.allclose(p, exact_test(noise_on_13).p_value, atol=0.06)  # 1,000 resamples: four standard errors


@pytest.mark.parametrize("name", ["S5", "A5", "mult_mod97"])
def test_the_gaussian_null_holds_its_size_where_the_uniform_one_does_not(name: str) -> None:
    task, neurons = named_task(name), 256
    generator = torch.Generator().manual_seed(1)
    means = (torch.randn(50, task.classes, neurons, generator=generator, dtype=torch.float64) for _ in range(12))
    result = fsd_gen(torch.cat([spectrum(part, task.basis()).density for part in means]))
    dimensions = tuple(int(d) for d in task.basis().modes.dimensions)
    modes, chances = len(dimensions), strongest_mode_chances(dimensions)
    exact = exact_test(result, chances)
    assert stats.kstest(exact.randomized.numpy(), stats.uniform.cdf).pvalue > 0.01
    assert rate_is(exact.p_value <= 0.05, float(exact.attained_size[0]))
    null = gaussian_null(torch.tensor(dimensions, dtype=torch.float64), neurons)
    drawn = null.p_value(result.fsd) <= 0.05
    assert rate_is(drawn, peak_tail(int(result.peak[drawn].min()), neurons, chances))
    assert drawn.double().mean() < 0.08
    even = (1 / modes,) * modes
    expected = peak_tail(critical_peak(neurons, even), neurons, chances)
    uniform = exact_test(result).p_value <= 0.05
    assert expected > 0.1
    assert rate_is(uniform, expected)
    assert stats.binomtest(int(uniform.sum()), 600, 0.05, alternative="greater").pvalue < 1e-4


def test_top_two_of_noise_has_a_gaussian_null_too() -> None:
    task = named_task("S4")
    means = torch.from_numpy(np.random.default_rng(0).normal(size=(500, 24, 100)))
    waves_of_noise = spectrum(means, task.basis())
    null = gaussian_null(waves_of_noise.dimensions, 100, lambda waves: fsd_gen(waves.density, 2).fsd)
    p = null.p_value(fsd_gen(waves_of_noise.density, 2).fsd)
    assert stats.binomtest(int((p <= 0.05).sum()), 500, 0.05, alternative="greater").pvalue > 0.001
    assert 0.4 < p.mean() < 0.62


@pytest.mark.parametrize("measure", ["rank", "gini", "inverse participation", "entropy"])
def test_the_rivals_find_nothing_in_noise(measure: str) -> None:
    # Small ranks and entropies, large ratios and Gini coefficients would say that something is there.
    statistic = {
        "rank": lambda waves: -fourier_rank(waves.power).median,
        "gini": lambda waves: gini(waves.power).median,
        "inverse participation": lambda waves: inverse_participation_ratio(waves.power).median,
        "entropy": lambda waves: -spectral_entropy(waves.power).median,
    }[measure]
    means = torch.from_numpy(np.random.default_rng(7).normal(size=(400, 31, 40)))
    noise = spectrum(means, named_task("add_mod31").basis())
    p = gaussian_null(noise.dimensions, 40, statistic).p_value(statistic(noise))
    assert stats.binomtest(int((p <= 0.05).sum()), 400, 0.05, alternative="greater").pvalue > 0.001
    planted = read("add_mod31", activation("add_mod31", waves(31, np.arange(40) % 15 + 1, np.random.default_rng(0)), 1))
    assert float(gaussian_null(noise.dimensions, 40, statistic).p_value(statistic(planted))) == 1 / 1001


def test_a_run_of_nan_leaves_its_neighbours_alone() -> None:
    response = waves(31, np.full(NEURONS, 5), np.random.default_rng(0))
    hidden = activation("add_mod31", response, 1.0).repeat(3, 1, 1)
    hidden[1, 17, 3] = torch.nan
    result = fsd(read("add_mod31", hidden).density)
    assert result.fsd.isnan().tolist() == [False, True, False]
    assert result.fsd[[0, 2]].tolist() == [1.0, 1.0]
    for p in (uniform_p_value(result), exact_test(result).p_value):
        assert p.isnan().tolist() == [False, True, False]


@pytest.mark.gpu
def test_a_gpu_reads_what_the_cpu_reads() -> None:
    for name, modes in (("add_mod31", 15), ("S4", 4)):
        task = named_task(name)
        response = irrep_waves(name, [j % modes for j in range(NEURONS)], np.random.default_rng(0))
        hidden = activation(name, response, 1.0)
        results = []
        for device in ("cpu", "cuda"):
            found = read_on(device, name, hidden)
            result = fsd_gen(found.density)
            null = gaussian_null(found.dimensions, NEURONS, resamples=50)
            permuted = answer_permutation_null(hidden.to(device), task, draws=20)
            numbers = [result.fsd, uniform_p_value(result), exact_test(result).randomized, null.mean]
            numbers += [fourier_rank(found.power).median, gini(found.power).median, permuted.mean]
            results.append(torch.cat([number.flatten().cpu() for number in numbers]))
        assert torch.allclose(*results, rtol=1e-9, atol=1e-9)


def read_on(device: str, name: str, hidden: Tensor) -> Spectrum:
    task = named_task(name)
    means = means_of(hidden.to(device), torch.tensor(task.answers, device=device), task.symbols).means
    return spectrum(means, task.basis())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["add_mod31", "S4"])
def test_a_site_that_adds_what_it_knows_of_a_and_of_b_is_undefined(name: str, dtype: torch.dtype) -> None:
    task = named_task(name)
    generator = torch.Generator().manual_seed(0)
    of_a, of_b = torch.randn(2, task.symbols, 16, generator=generator, dtype=torch.float64)
    a, b = torch.tensor(task.inputs).T
    hidden = (of_a - of_a.mean(dim=0))[a] + (of_b - of_b.mean(dim=0))[b]
    found = read(name, hidden.to(dtype)[None])
    assert found.is_constant.all()
    assert fsd(found.density).fsd.isnan().all()
    assert fourier_rank(found.power).median.isnan().all()
