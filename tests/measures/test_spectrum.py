import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grokscope.measures import fsd, mode_power
from grokscope.tasks import named_task

ODD = [5, 7, 11, 31]
tasks = st.sampled_from(["add_mod7", "add_mod10", "sub_mod11", "mult_mod11", "div_mod7", "S3", "S4", "Q8", "A4"])
random_seeds = st.integers(0, 2**32 - 1)


def drawn(seed: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


@given(st.sampled_from([5, 6, 7, 10, 11, 31]), st.integers(1, 5), random_seeds)
def test_on_cyclic_groups_it_is_a_naive_dft(n: int, neurons: int, seed: int) -> None:
    means = drawn(seed, n, neurons)
    found = mode_power(means, named_task(f"add_mod{n}").basis())
    assert found.shape == (n // 2, neurons)
    for f in range(1, n // 2 + 1):
        for j in range(neurons):
            amplitude = sum(float(means[s, j]) * np.exp(-2j * np.pi * f * s / n) for s in range(n))
            # Power per dimension: 2|Â|²/n over 2, and |Â|²/n over 1 at f = n/2.
            assert float(found[f - 1, j]) == pytest.approx(abs(amplitude) ** 2 / n, abs=1e-10)


@given(tasks, st.integers(1, 6), random_seeds)
def test_plancherel(name: str, neurons: int, seed: int) -> None:
    basis = named_task(name).basis()
    means = drawn(seed, named_task(name).classes, neurons)
    dimensions = torch.from_numpy(np.array(basis.modes.dimensions))
    total = (mode_power(means, basis) * dimensions[:, None]).sum(dim=0)
    over_group = means[torch.from_numpy(np.array(basis.answers))]
    centred = over_group - over_group.mean(dim=0)
    assert torch.allclose(total, centred.square().sum(dim=0), rtol=1e-10, atol=0)


@given(tasks, random_seeds, st.floats(0.01, 100), st.floats(-10, 10))
def test_scale_squares_and_a_constant_vanishes(name: str, seed: int, scale: float, shift: float) -> None:
    basis = named_task(name).basis()
    means = drawn(seed, named_task(name).classes, 3)
    power = mode_power(means, basis)
    assert torch.allclose(mode_power(means * scale + shift, basis), power * scale**2, rtol=1e-6, atol=1e-9)


@given(st.sampled_from(ODD), random_seeds)
def test_one_sinusoid_is_one_mode(n: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    f, phases = int(generator.integers(1, n // 2 + 1)), generator.uniform(0, 2 * np.pi, 6)
    means = np.cos(2 * np.pi * f * np.arange(n)[:, None] / n + phases)
    power = mode_power(torch.from_numpy(means), named_task(f"add_mod{n}").basis())
    assert (power.argmax(dim=0) == f - 1).all()
    power[f - 1] = 0
    assert power.max() < 1e-20


def test_an_answer_outside_the_group_is_not_read() -> None:
    basis = named_task("mult_mod11").basis()
    means = drawn(0, 11, 4)
    other = means.clone()
    other[0] = 1e6  # 0 is no unit
    assert torch.equal(mode_power(means, basis), mode_power(other, basis))


@given(st.sampled_from([("add_mod11", 11), ("mult_mod11", 11), ("S3", 6)]), st.floats(1e-3, 1e3), random_seeds)
def test_rounding_is_no_variation(task: tuple[str, int], level: float, seed: int) -> None:
    name, answers = task
    constant = torch.full((answers, 3), level, dtype=torch.float32)
    rounded = constant * (1 + torch.from_numpy(np.random.default_rng(seed).choice([0, 6e-8], (answers, 3))).float())
    basis = named_task(name).basis()
    assert not mode_power(constant, basis).any()
    assert not mode_power(rounded, basis).any()
    assert not mode_power(torch.zeros(answers, 3), basis).any()
    assert fsd(mode_power(rounded, basis)).fsd.isnan()


def test_a_variation_of_a_ten_thousandth_is_seen() -> None:
    wave = 1 + 1e-4 * torch.cos(2 * torch.pi * 3 * torch.arange(97) / 97)
    power = mode_power(wave[:, None].float(), named_task("add_mod97").basis())
    assert power.argmax() == 2
    assert power.max() > 0


@given(tasks, random_seeds)
def test_leading_axes_are_runs(name: str, seed: int) -> None:
    basis = named_task(name).basis()
    means = drawn(seed, 2, 3, named_task(name).classes, 4)
    together = mode_power(means, basis)
    for i in range(2):
        for j in range(3):
            assert torch.allclose(together[i, j], mode_power(means[i, j], basis), rtol=1e-12, atol=1e-15)


def test_runs_of_nan_have_no_fsd() -> None:
    means = drawn(0, 2, 7, 3)
    means[0] = torch.nan
    basis = named_task("add_mod7").basis()
    result = fsd(mode_power(means, basis))
    assert result.fsd[0].isnan()
    assert torch.equal(result.fsd[1], fsd(mode_power(means[1], basis)).fsd)


def test_one_neuron_of_nan_is_enough() -> None:
    means = drawn(0, 2, 7, 3)
    means[0, 0, 0] = torch.nan
    basis = named_task("add_mod7").basis()
    result = fsd(mode_power(means, basis))
    assert result.fsd[0].isnan()
    assert torch.allclose(result.fsd[1], fsd(mode_power(means[1], basis)).fsd)
