import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grokscope.training.adamw import adamw_, adamw_scalars, clipped

RATES = (1e-3, 0.05, 1e-3)
DECAYS = (1.0, 0.0, 20.0)
BETAS = ((0.9, 0.999), (0.0, 0.98), (0.5, 0.0))
EPSILONS = (1e-8, 1e-3, 1e-6)


def column(values: tuple[float, ...]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("shape", [(4,), (3, 5)])
def test_adamw_equals_torchs(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(3, *shape, generator=generator, dtype=torch.float64)
    first, second = torch.zeros_like(weights), torch.zeros_like(weights)
    alone = [torch.nn.Parameter(weights[run].clone()) for run in range(3)]
    optimizers = [
        torch.optim.AdamW([alone[run]], RATES[run], BETAS[run], EPSILONS[run], DECAYS[run]) for run in range(3)
    ]
    beta1, beta2 = (column(betas) for betas in zip(*BETAS, strict=True))
    for age in range(1, 31):
        gradient = torch.randn(3, *shape, generator=generator, dtype=torch.float64)
        ages = torch.full((3,), age)
        scalars = adamw_scalars(
            ages, column(RATES), column(DECAYS), beta1, beta2, column(EPSILONS), dtype=torch.float64
        )
        adamw_(weights, first, second, gradient, torch.ones(3, dtype=torch.bool), scalars)
        for run, optimizer in enumerate(optimizers):
            alone[run].grad = gradient[run]
            optimizer.step()
            assert torch.allclose(weights[run], alone[run].detach(), rtol=0, atol=1e-13)
            assert torch.allclose(first[run], optimizer.state[alone[run]]["exp_avg"], rtol=0, atol=1e-13)


def test_idle_runs_keep_every_bit_whatever_their_gradient() -> None:
    weights = torch.randn(3, 5, generator=torch.Generator().manual_seed(1))
    first, second = torch.rand_like(weights), torch.rand_like(weights)
    before = [buffer.clone() for buffer in (weights, first, second)]
    gradient = torch.ones(3, 5)
    gradient[0], gradient[2] = torch.nan, torch.inf
    ages = torch.tensor([0, 1, 0])  # an age of 0 makes the scalars infinite
    ones = torch.ones(3, dtype=torch.float64)
    scalars = adamw_scalars(ages, ones * 0.1, ones, ones * 0.9, ones * 0.99, ones * 1e-8, dtype=torch.float32)
    adamw_(weights, first, second, gradient, torch.tensor([False, True, False]), scalars)
    for buffer, old in zip((weights, first, second), before, strict=True):
        assert torch.equal(buffer[[0, 2]], old[[0, 2]])
        assert buffer[1].isfinite().all()
        assert not torch.equal(buffer[1], old[1])


def test_nothing_stays_nothing() -> None:
    zeros = [torch.zeros(1, 4, dtype=torch.float64) for _ in range(4)]
    for age in range(1, 50):
        one = torch.ones(1, dtype=torch.float64)
        scalars = adamw_scalars(
            torch.tensor([age]), one * 0.1, one, one * 0.9, one * 0.99, one * 1e-8, dtype=torch.float64
        )
        adamw_(*zeros, torch.tensor([True]), scalars)
    assert not torch.cat(zeros).any()


@given(st.lists(st.floats(1e-3, 10), min_size=2, max_size=2), st.integers(0, 10**6))
def test_clipping_equals_torchs(norms: list[float], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    gradients = [torch.randn(2, *shape, generator=generator, dtype=torch.float64) for shape in ((3,), (2, 4))]
    found = clipped(gradients, torch.tensor(norms, dtype=torch.float64))
    for run, norm in enumerate(norms):
        parameters = [torch.nn.Parameter(torch.zeros_like(gradient[run])) for gradient in gradients]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient[run].clone()
        torch.nn.utils.clip_grad_norm_(parameters, norm)
        for parameter, gradient in zip(parameters, found, strict=True):
            assert torch.allclose(gradient[run], parameter.grad, rtol=1e-13, atol=0)
