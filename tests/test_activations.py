import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grokscope.activations import answer_sums


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
