from collections import Counter
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from grokscope.activations import means_of, subject_of
from grokscope.errors import InputError
from grokscope.measures.nulls import (
    fsd_of,
    uniform_null,
    uniform_p_value,
)
from grokscope.measures.rank import fourier_rank
from grokscope.measures.spectrum import spectrum
from grokscope.measures.surrogates import answer_permutation_null, permuted_answers, phase_randomized, untrained_null
from grokscope.measures.synchronization import FsdResult, fsd
from grokscope.model import hidden_sites
from grokscope.specs import Architecture, RunSpec
from grokscope.tasks import named_task
from grokscope.training import Cohort

random_seeds = st.integers(0, 2**32 - 1)
SMALL = Architecture(layers=1, width=32, heads=2, mlp_width=64)


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
