from math import prod

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from torch import Tensor

from grokscope.errors import InputError
from grokscope.measures.concentration import inverse_participation_ratio
from grokscope.measures.nulls import (
    NullSample,
    exact_test,
    gaussian_null,
    strongest_mode_chances,
    uniform_null,
    uniform_p_value,
)
from grokscope.measures.rank import fourier_rank
from grokscope.measures.spectrum import Spectrum, spectrum
from grokscope.measures.synchronization import FsdResult, fsd, fsd_gen
from grokscope.stats.multinomial import critical_peak, peak_tail
from grokscope.tasks import named_task


def even(modes: int) -> tuple[float, ...]:
    return (1 / modes,) * modes


def dimensions_of(name: str) -> tuple[int, ...]:
    return tuple(int(d) for d in named_task(name).basis().modes.dimensions)


def voted(counts: list[list[int]], constant: int = 0) -> FsdResult:
    """FSD of neurons of which so many have each mode as their strongest."""
    modes, neurons = len(counts[0]), max(sum(row) for row in counts) + constant
    density = torch.zeros(len(counts), modes, neurons, dtype=torch.float64)
    for run, row in enumerate(counts):
        strongest = [mode for mode, count in enumerate(row) for _ in range(count)]
        density[run, strongest, range(len(strongest))] = 1
    return fsd(density)


# A sample, and Algorithm 1.


def test_a_sample_has_mean_quantiles_and_p_values() -> None:
    values = np.random.default_rng(0).normal(size=(2, 99))
    null = NullSample(torch.from_numpy(values))
    observed = torch.tensor([0.3, -1.0], dtype=torch.float64)
    assert null.mean.tolist() == pytest.approx(values.mean(axis=1).tolist())
    assert null.band[1].tolist() == pytest.approx(np.quantile(values, 0.95, axis=1).tolist())
    expected = [(1 + int((row >= x).sum())) / 100 for row, x in zip(values, observed.tolist(), strict=True)]
    assert null.p_value(observed).tolist() == pytest.approx(expected)


def test_what_is_undefined_has_no_p_value_and_does_not_count() -> None:
    null = NullSample(torch.tensor([0.1, torch.nan, 0.3]))
    assert null.p_value(torch.tensor([0.2, 0.4])).tolist() == pytest.approx([2 / 3, 1 / 3])
    assert null.p_value(torch.tensor(torch.nan)).isnan()
    assert NullSample(torch.full((3,), torch.nan)).p_value(torch.tensor(0.5)).isnan()


def test_a_tie_counts_as_reached_even_after_rounding_to_float32() -> None:
    value = torch.tensor([(200 / 512 - 1 / 48) / (1 - 1 / 48)], dtype=torch.float64)
    for observed in (value, value.float(), value.float().nextafter(torch.tensor(1.0))):
        assert float(NullSample(value).p_value(observed)) == 1


def test_the_uniform_null_has_the_exact_distribution() -> None:
    neurons, modes, resamples = 40, 7, 4000
    null = uniform_null(neurons, modes, resamples, seed=3)
    for peak in range(8, 15):
        value = (peak / neurons - 1 / modes) / (1 - 1 / modes)
        reached = int((null.values >= value - 1e-9).sum())
        assert stats.binomtest(reached, resamples, peak_tail(peak, neurons, even(modes))).pvalue > 1e-4


def test_the_uniform_p_value_counts_with_itself_and_each_run_with_its_own_neurons() -> None:
    found = voted([[10, 3, 2], [8, 3, 2], [0, 0, 0]], constant=4)
    p = uniform_p_value(found, resamples=500, seed=1)
    assert p[2].isnan()
    for run, neurons in ((0, 15), (1, 13)):
        values = uniform_null(neurons, 3, 500, seed=1).values
        assert float(p[run]) == (1 + int((values >= found.fsd[run] - 1e-9).sum())) / 501
    assert float(uniform_p_value(voted([[60, 0, 0]]))[0]) == 1 / 1001  # as small as it can be: never 0


def test_seeds_decide() -> None:
    assert torch.equal(uniform_null(30, 5, 50, seed=1).values, uniform_null(30, 5, 50, seed=1).values)
    assert not torch.equal(uniform_null(30, 5, 50, seed=1).values, uniform_null(30, 5, 50, seed=2).values)


def test_several_votes_per_neuron_are_rejected() -> None:
    found = fsd_gen(torch.rand(5, 8, generator=torch.Generator().manual_seed(0)), 2)
    for test in (uniform_p_value, exact_test):
        with pytest.raises(InputError, match="got top_k 2"):
            test(found)


# The exact test.


def test_the_exact_test_brackets_the_randomised_p_value() -> None:
    found = voted([[10, 3, 2], [5, 5, 5], [0, 0, 0]], constant=1)
    test = exact_test(found)
    assert test.p_value.tolist()[:2] == [peak_tail(10, 15, even(3)), 1.0]
    assert peak_tail(11, 15, even(3)) < test.randomized[0] < test.p_value[0]
    assert float(test.attained_size[0]) == peak_tail(critical_peak(15, even(3)), 15, even(3))
    assert test.p_value[2].isnan()
    assert test.randomized[2].isnan()


# Gaussian means.


@given(st.lists(st.integers(1, 30), min_size=2, max_size=5).map(tuple))
@settings(max_examples=15)
def test_chances_of_being_strongest_equal_scipys_integral(dimensions: tuple[int, ...]) -> None:
    laws = [stats.gamma(d / 2, scale=2 / d) for d in dimensions]

    def density(t: float, mode: int) -> float:
        others = prod(law.cdf(t * t) for other, law in enumerate(laws) if other != mode)
        return 2 * t * laws[mode].pdf(t * t) * others

    expected = [integrate.quad(density, 0, 9, (mode,), limit=200)[0] for mode in range(len(laws))]
    assert strongest_mode_chances(dimensions) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("dimensions", [(2,) * 48, (1, 1), (400, 1250, 1250)])
def test_chances_add_up_and_equal_modes_have_equal_ones(dimensions: tuple[int, ...]) -> None:
    found = strongest_mode_chances(dimensions)
    assert sum(found) == pytest.approx(1, abs=1e-12)
    for one, other in zip(range(len(found)), range(1, len(found)), strict=False):
        if dimensions[one] == dimensions[other]:
            assert found[one] == pytest.approx(found[other], rel=1e-9)


@pytest.mark.parametrize("name", ["S4", "A5", "add_mod10", "Q8"])
def test_drawn_powers_are_those_of_gaussian_means(name: str) -> None:
    task = named_task(name)
    means = torch.from_numpy(np.random.default_rng(0).normal(size=(task.classes, 4000)))
    expected = spectrum(means, task.basis()).power
    drawn: list[Spectrum] = []

    def keep(waves: Spectrum) -> Tensor:
        drawn.append(waves)
        return torch.zeros(len(waves.power))

    gaussian_null(torch.tensor(dimensions_of(name), dtype=torch.float64), 400, keep, resamples=10)
    power = torch.cat([waves.power for waves in drawn]).movedim(1, 0).flatten(1)
    for mode, dimension in enumerate(dimensions_of(name)):
        assert stats.kstest(power[mode].numpy(), stats.chi2(dimension).cdf).pvalue > 1e-3
        assert stats.ks_2samp(power[mode].numpy(), expected[mode].numpy()).pvalue > 1e-3
    correlation = np.corrcoef(power.numpy())
    assert np.abs(correlation - np.eye(len(correlation))).max() < 0.08  # 4,000 draws: 5 standard errors


def test_the_papers_gaussian_null_on_s5() -> None:
    # 512 neurons; "about 0.05" is the peak at K = 2.
    dimensions = torch.tensor(dimensions_of("S5"), dtype=torch.float64)
    for top_k, expected in ((1, 0.096), (2, 0.055), (3, 0.141)):
        null = gaussian_null(dimensions, 512, lambda waves, k=top_k: fsd_gen(waves.density, k).fsd, resamples=250)
        assert float(null.mean) == pytest.approx(expected, abs=0.006)


def test_any_measure_has_a_gaussian_null() -> None:
    dimensions = torch.full((48,), 2.0, dtype=torch.float64)
    ranks = gaussian_null(dimensions, 128, lambda waves: fourier_rank(waves.power).median, resamples=30)
    assert 25 < ranks.mean < 33  # noise spreads over the frequencies: far from 1
    ratios = gaussian_null(dimensions, 128, lambda waves: inverse_participation_ratio(waves.power).median, 30)
    assert float(ratios.mean) == pytest.approx(2 / 49, rel=0.1)  # Σq² of m exponential powers has mean 2/(m + 1)


def test_draws_do_not_depend_on_how_many_are_made() -> None:
    dimensions = torch.tensor(dimensions_of("S4"), dtype=torch.float64)
    few, many = (gaussian_null(dimensions, 64, resamples=count, seed=5).values for count in (10, 700))
    assert torch.equal(few, many[:10])


@pytest.mark.parametrize(("name", "called_significant"), [("S5", 0.98), ("mult_mod97", 0.52), ("A5", 0.19)])
def test_noise_is_significant_to_the_uniform_null_outside_odd_cyclic_groups(
    name: str, called_significant: float
) -> None:
    modes, chances = len(dimensions_of(name)), strongest_mode_chances(dimensions_of(name))
    rejected_from = critical_peak(512, even(modes))
    assert peak_tail(rejected_from, 512, chances) == pytest.approx(called_significant, abs=0.01)
    assert peak_tail(critical_peak(512, chances), 512, chances) <= 0.05
