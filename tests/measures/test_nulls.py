from collections import Counter
from itertools import permutations
from math import prod

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from torch import Tensor

from grokscope.activations import means_of, subject_of
from grokscope.errors import InputError
from grokscope.measures.concentration import inverse_participation_ratio
from grokscope.measures.nulls import (
    NullSample,
    exact_test,
    fsd_of,
    gaussian_null,
    strongest_mode_chances,
    uniform_null,
    uniform_p_value,
)
from grokscope.measures.rank import fourier_rank
from grokscope.measures.spectrum import Spectrum, spectrum
from grokscope.measures.surrogates import answer_permutation_null, permuted_answers, phase_randomized, untrained_null
from grokscope.measures.synchronization import FsdResult, fsd, fsd_gen
from grokscope.model import hidden_sites
from grokscope.specs import Architecture, RunSpec
from grokscope.stats.multinomial import critical_peak, peak_tail
from grokscope.tasks import named_task
from grokscope.training import Cohort

random_seeds = st.integers(0, 2**32 - 1)
SMALL = Architecture(layers=1, width=32, heads=2, mlp_width=64)


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


def test_several_votes_per_neuron_are_refused() -> None:
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


# Surrogates of activations.


def transform(activation: Tensor, n: int) -> np.ndarray:
    """The 2-D transform of each neuron, term by term."""
    waves = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    grid = activation.double().numpy().reshape(n, n, -1)
    return np.einsum("ka,lb,abj->klj", waves, waves, grid)


@given(st.sampled_from([5, 6, 7]), st.integers(1, 4), random_seeds)
@settings(max_examples=20)
def test_random_phases_keep_every_amplitude_and_the_mean(n: int, neurons: int, seed: int) -> None:
    activation = torch.from_numpy(np.random.default_rng(seed).normal(1, size=(n * n, neurons)))
    before = activation.clone()
    moved = phase_randomized(activation, n, seed)
    assert torch.equal(activation, before)
    assert moved.dtype == activation.dtype
    one, other = transform(activation, n), transform(moved, n)
    assert np.abs(one) == pytest.approx(np.abs(other), abs=1e-9)
    assert one[0, 0] == pytest.approx(other[0, 0], abs=1e-9)
    assert not torch.allclose(moved, activation, atol=1e-3)


def test_phases_are_uniform_and_each_neurons_own() -> None:
    activation = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 49, 400)))
    moved = phase_randomized(activation, 7, seed=1)
    turned = np.angle(transform(moved[0], 7)[1, 2] / transform(activation[0], 7)[1, 2])
    assert stats.kstest(turned, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-3
    elsewhere = np.angle(transform(moved[1], 7)[1, 2] / transform(activation[1], 7)[1, 2])
    assert abs(np.corrcoef(turned, elsewhere)[0, 1]) < 0.2


@pytest.mark.parametrize("name", ["add_mod11", "sub_mod11", "add_mod10"])
def test_fsd_reads_no_phases(name: str) -> None:
    # Â[f, j] is F(f, ±f)/n: a surrogate that keeps amplitudes keeps every power, and can be no null of FSD.
    task = named_task(name)
    activation = torch.from_numpy(np.random.default_rng(0).normal(size=(1, len(task.inputs), 20)))
    answers, basis = torch.tensor(task.answers), task.basis()
    moved = phase_randomized(activation, task.symbols)
    one, other = (spectrum(means_of(x, answers, task.symbols).means, basis).power for x in (activation, moved))
    assert torch.allclose(one, other, rtol=1e-9, atol=1e-14)


def test_phases_need_all_pairs() -> None:
    with pytest.raises(InputError, match="all 49 pairs of Z_7, got 42 inputs"):
        phase_randomized(torch.zeros(42, 3), 7)


@pytest.mark.parametrize("name", ["add_mod7", "sub_mod7", "mult_mod7", "div_mod7", "S3"])
def test_some_renaming_of_the_symbols_explains_every_draw(name: str) -> None:
    task = named_task(name)
    rule = np.full((task.symbols, task.symbols), -1)
    rule[tuple(task.inputs.T)] = task.answers
    renamings = np.array(list(permutations(range(task.symbols))))
    a, b = (renamings[:, side] for side in task.inputs.T)
    possible = {tuple(row) for row in rule[a, b].tolist() if -1 not in row}
    drawn = [tuple(row) for row in permuted_answers(task, draws=8, seed=3).tolist()]
    assert len(set(drawn)) == 8
    assert set(drawn) <= possible


def test_renaming_is_one_order_for_both_tokens() -> None:
    task = named_task("add_mod7")
    grids = permuted_answers(task, draws=20, seed=0).view(20, 7, 7)
    assert torch.equal(grids, grids.transpose(1, 2))  # still commutative
    doubled = grids.diagonal(dim1=1, dim2=2)  # 2σ(a), a permutation, from which σ(a) + σ(b) follows
    half = (doubled * 4) % 7
    assert torch.equal((half[:, :, None] + half[:, None, :]) % 7, grids)


def test_division_keeps_the_name_of_zero() -> None:
    task = named_task("div_mod7")
    permuted = permuted_answers(task, draws=10)
    assert (permuted[:, torch.tensor(task.inputs[:, 0] == 0)] == 0).all()
    assert (permuted >= 0).all()


@pytest.mark.parametrize("by", ["answer", "sum"])
def test_any_order_of_answers_keeps_their_counts_alone(by) -> None:
    task = named_task("mult_mod7")
    conditions = task.answers if by == "answer" else task.sums
    permuted = permuted_answers(task, draws=3, by=by, kept="counts")
    for row in permuted.tolist():
        assert Counter(row) == Counter(conditions.tolist())
        assert row != conditions.tolist()


def test_permuted_answers_are_read_as_the_answers_are() -> None:
    task = named_task("mult_mod7")
    activation = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 49, 12)))
    null = answer_permutation_null(activation, task, draws=4, seed=9)
    for draw, answers in enumerate(permuted_answers(task, 4, seed=9)):
        means = means_of(activation, answers, 7).means
        assert torch.allclose(null.values[:, draw], fsd_of(spectrum(means, task.basis())), atol=1e-12)


# Networks.


@pytest.fixture(scope="module")
def untrained() -> tuple[Tensor, FsdResult]:
    """Activations and FSD of a hundred untrained networks."""
    cohort = Cohort([RunSpec(task="add_mod23", architecture=SMALL).with_seed(seed) for seed in range(100)])
    subject = subject_of(cohort.specs, cohort.initial())
    means = subject.means(hidden_sites(SMALL)[0]).means
    return subject.read(hidden_sites(SMALL)[0]), fsd(spectrum(means, subject.task.basis()).density)


def test_untrained_networks_are_significant_to_independent_neurons(untrained: tuple[Tensor, FsdResult]) -> None:
    _, found = untrained
    assert (uniform_p_value(found) <= 0.05).double().mean() > 0.9


def test_renamed_tokens_call_untrained_networks_significant_as_often_as_they_should(
    untrained: tuple[Tensor, FsdResult],
) -> None:
    activation, found = untrained
    p = answer_permutation_null(activation, named_task("add_mod23"), draws=79).p_value(found.fsd)
    assert stats.binomtest(int((p <= 0.05).sum()), 100, 0.05).pvalue > 0.01
    assert stats.binomtest(int((p <= 0.5).sum()), 100, 0.5).pvalue > 0.01
    loose = answer_permutation_null(activation, named_task("add_mod23"), draws=79, kept="counts").p_value(found.fsd)
    assert (loose <= 0.05).double().mean() > 0.15  # tokens' own effects leak: too low a null


def test_untrained_networks_are_the_runs_own_with_other_seeds(untrained: tuple[Tensor, FsdResult]) -> None:
    _, found = untrained
    run = RunSpec(task="add_mod23", architecture=SMALL)
    null = untrained_null(run, draws=60, seed=1)
    assert stats.ks_2samp(null.values.numpy(), found.fsd.numpy()).pvalue > 1e-3
    assert torch.equal(null.values[:10], untrained_null(run.with_seed(7), draws=10, seed=1, at_once=3).values)
    assert not torch.equal(null.values[:10], untrained_null(run, draws=10, seed=2).values)


def test_an_untrained_network_is_read_anywhere_in_any_basis() -> None:
    run = RunSpec(task="mult_mod11", architecture=SMALL)
    additive, ranks = (
        untrained_null(run, statistic, draws=3, site="blocks.0.hook_attn_out", basis="additive")
        for statistic in (fsd_of, lambda waves: fourier_rank(waves.power).median)
    )
    sums = untrained_null(run, draws=3, site="blocks.0.hook_attn_out", by="sum")
    assert not torch.equal(additive.values, sums.values)
    assert (ranks.values >= 1).all()


def test_a_network_blind_to_its_inputs_has_no_null() -> None:
    blind = Architecture(layers=1, width=16, heads=2, mlp_width=32, attention="dropped")
    null = untrained_null(RunSpec(task="add_mod7", architecture=blind), draws=4)
    assert null.values.isnan().all()
    assert null.p_value(torch.tensor(0.9, dtype=torch.float64)).isnan()


def test_untrained_networks_of_the_papers_size() -> None:
    null = untrained_null(RunSpec(task="add_mod97"), draws=6)
    assert (null.values > 0.04).all()
    assert (null.values < 0.4).all()
    assert (null.values > uniform_null(512, 48).values.max()).all()
