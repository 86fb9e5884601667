import torch
from hypothesis import given
from hypothesis import strategies as st

from grokscope.model.rows import gathered_rows, with_bias

sizes = st.integers(1, 5)


@given(sizes, sizes, sizes, st.integers(1, 12), st.integers(0, 10**6))
def test_gathered_rows_and_their_gradient_equal_indexing(
    runs: int, rows: int, width: int, inputs: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    index = torch.randint(rows, (runs, inputs), generator=generator)  # rows repeat, and some are never asked for
    upstream = torch.randn(runs, inputs, width, generator=generator, dtype=torch.float64)
    table = torch.randn(runs, rows, width, generator=generator, dtype=torch.float64, requires_grad=True)
    plain = table.detach().clone().requires_grad_()
    found = gathered_rows(table, index)
    expected = torch.stack([plain[run][index[run]] for run in range(runs)])
    assert torch.equal(found, expected)
    found.backward(upstream)
    expected.backward(upstream)
    assert torch.allclose(table.grad, plain.grad, rtol=0, atol=1e-14)


def test_gradients_pass_gradcheck() -> None:
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(2, 4, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    index = torch.tensor([[0, 0, 3, 1, 0], [2, 2, 2, 2, 1]])
    assert torch.autograd.gradcheck(lambda rows: gathered_rows(rows, index), table)
    x = torch.randn(2, 5, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(2, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(with_bias, (x, bias))


@given(sizes, sizes, sizes, st.integers(0, 10**6))
def test_with_bias_equals_addition(runs: int, rows: int, width: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(runs, rows, width, generator=generator, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(runs, width, generator=generator, dtype=torch.float64, requires_grad=True)
    added = with_bias(x, bias)
    assert torch.equal(added, torch.stack([x[run] + bias[run] for run in range(runs)]))
    upstream = torch.randn(added.shape, generator=generator, dtype=torch.float64)
    found = torch.autograd.grad(added, (x, bias), upstream)
    expected = torch.autograd.grad(x + bias[:, None], (x, bias), upstream)
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-14)


def test_one_runs_nan_stays_in_its_row() -> None:
    table = torch.ones(2, 3, 2, dtype=torch.float64, requires_grad=True)
    upstream = torch.ones(2, 4, 2, dtype=torch.float64)
    upstream[0] = torch.nan
    gathered_rows(table, torch.tensor([[0, 1, 2, 2], [0, 1, 1, 1]])).backward(upstream)
    assert table.grad[1].tolist() == [[1.0, 1.0], [3.0, 3.0], [0.0, 0.0]]
