import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from grokscope.activations import answer_sums, condition_of, conditioning_basis, means_of
from grokscope.errors import InputError
from grokscope.measures.spectrum import spectrum
from grokscope.tasks import named_task

# Sums over the pairs with each answer.


@given(st.integers(1, 3), st.integers(1, 20), st.integers(1, 4), st.integers(1, 6), st.integers(0, 10**6))
def test_sums_equal_a_loop(runs: int, inputs: int, neurons: int, size: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    activation = torch.randn(runs, inputs, neurons, generator=generator, dtype=torch.float64)
    answers = torch.randint(-1, size, (runs, inputs), generator=generator)  # −1 leaves a pair out
    expected = torch.zeros(runs, size, neurons, dtype=torch.float64)
    for run in range(runs):
        for i in range(inputs):
            if answers[run, i] >= 0:
                expected[run, answers[run, i]] += activation[run, i]
    assert torch.allclose(answer_sums(activation, answers, size), expected, rtol=0, atol=1e-13)


def test_what_is_left_out_may_be_nan() -> None:
    activation = torch.ones(2, 3, 1)
    activation[0, 1] = torch.nan
    sums = answer_sums(activation, torch.tensor([[0, -1, 1], [1, 1, 0]]), 2)
    assert sums[..., 0].tolist() == [[1.0, 1.0], [1.0, 2.0]]


@given(st.permutations(range(12)))
def test_the_order_of_pairs_does_not_matter(order: list[int]) -> None:
    activation = torch.randn(1, 12, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    answers = torch.arange(12)[None] % 4
    shuffled = answer_sums(activation[:, order], answers[:, order], 4)
    assert torch.allclose(shuffled, answer_sums(activation, answers, 4), rtol=0, atol=1e-13)


def test_an_answer_nobody_gives_is_zero() -> None:
    sums = answer_sums(torch.ones(1, 2, 2), torch.tensor([[0, 2]]), 4)
    assert sums[0, :, 0].tolist() == pytest.approx([1, 0, 1, 0])


# Means.


def means_by_loop(activation: Tensor, condition: np.ndarray, size: int) -> tuple[np.ndarray, float]:
    """A[s, j] and the answer share of one run, from their definitions in float64."""
    values = activation.double().numpy()
    means, between, total = np.zeros((size, values.shape[1])), 0.0, 0.0
    for j in range(values.shape[1]):
        overall = float(np.mean(values[:, j]))
        for s in range(size):
            chosen = [values[i, j] for i in range(len(values)) if condition[i] == s]
            means[s, j] = sum(chosen) / len(chosen) if chosen else 0
            between += len(chosen) * (means[s, j] - overall) ** 2
        total += sum((value - overall) ** 2 for value in values[:, j])
    return means, between / total


@given(st.integers(1, 2), st.integers(2, 20), st.integers(1, 3), st.integers(1, 6), st.integers(0, 10**6))
@settings(max_examples=25)
def test_means_and_share_equal_a_loop(runs: int, inputs: int, neurons: int, size: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    activation = torch.from_numpy(generator.normal(5, 1, size=(runs, inputs, neurons)))
    condition = generator.integers(0, size, inputs)
    found = means_of(activation, torch.from_numpy(condition), size)
    assert found.counts.tolist() == [int((condition == s).sum()) for s in range(size)]
    assert found.finite.all()
    for run in range(runs):
        means, share = means_by_loop(activation[run], condition, size)
        assert torch.allclose(found.means[run], torch.from_numpy(means), rtol=0, atol=1e-12)
        assert float(found.answer_share[run]) == pytest.approx(share, abs=1e-10)


def test_an_answer_without_pairs_has_mean_zero_and_no_weight() -> None:
    activation = torch.tensor([[[3.0], [5.0], [3.0], [5.0]]])
    found = means_of(activation, torch.tensor([0, 2, 0, 2]), 4)
    assert found.counts.tolist() == [2, 0, 2, 0]
    assert found.means[0, :, 0].tolist() == [3.0, 0.0, 5.0, 0.0]
    assert float(found.answer_share) == pytest.approx(1)  # all variation is the answer's


def test_a_ten_thousandth_on_an_offset_of_one_survives_float32() -> None:
    task = named_task("add_mod97")
    wave = 1e-4 * np.cos(2 * np.pi * 3 * np.arange(97) / 97)
    noise = np.random.default_rng(0).normal(size=(97 * 97, 1)) * 1e-4
    activation = torch.from_numpy(1 + wave[task.answers][:, None] + noise).float()[None]
    found = means_of(activation, torch.tensor(task.answers), 97)
    assert found.means.dtype == torch.float64
    exact, share = means_by_loop(activation[0], task.answers, 97)
    assert torch.allclose(found.means[0], torch.from_numpy(exact), rtol=0, atol=1e-14)
    assert float(found.answer_share) == pytest.approx(share, rel=1e-6)
    power = spectrum(found.means, task.basis()).power[0, :, 0]
    assert power.argmax() == 2
    assert float(power[2]) == pytest.approx(97 / 2 * 1e-8, rel=0.1)


def test_what_never_varies_has_no_share() -> None:
    found = means_of(torch.full((1, 6, 2), 0.3), torch.tensor([0, 1, 2, 0, 1, 2]), 3)
    assert found.answer_share.isnan().all()
    assert found.finite.all()


def test_a_conditioning_that_a_task_lacks_is_rejected() -> None:
    with pytest.raises(InputError, match="S3 has no sums a \\+ b to condition on"):
        condition_of(named_task("S3"), "sum")
    with pytest.raises(InputError, match="additive basis only, got 'multiplicative'"):
        conditioning_basis(named_task("mult_mod7"), "sum", "multiplicative")
