import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grokscope.measures.rank import fourier_rank
from grokscope.measures.spectrum import mostly_varies, spectrum
from grokscope.measures.synchronization import fsd
from grokscope.tasks import named_task

ODD = [5, 7, 11, 31]
tasks = st.sampled_from(["add_mod7", "add_mod10", "sub_mod11", "mult_mod11", "div_mod7", "S3", "S4", "Q8", "A4"])
random_seeds = st.integers(0, 2**32 - 1)


def drawn(seed: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


@given(st.sampled_from([5, 6, 7, 10, 11, 31]), st.integers(1, 5), random_seeds)
def test_on_cyclic_groups_it_is_a_naive_dft(n: int, neurons: int, seed: int) -> None:
    means = drawn(seed, n, neurons)
    found = spectrum(means, named_task(f"add_mod{n}").basis())
    assert found.power.shape == (n // 2, neurons)
    for f in range(1, n // 2 + 1):
        for j in range(neurons):
            amplitude = sum(float(means[s, j]) * np.exp(-2j * np.pi * f * s / n) for s in range(n))
            dimension = 1 if 2 * f == n else 2
            assert float(found.power[f - 1, j]) == pytest.approx(dimension * abs(amplitude) ** 2 / n, abs=1e-10)
            assert float(found.density[f - 1, j]) == pytest.approx(abs(amplitude) ** 2 / n, abs=1e-10)
            assert found.dimensions[f - 1] == dimension


@given(tasks, st.integers(1, 6), random_seeds)
def test_it_is_the_power_of_the_modes_own_basis(name: str, neurons: int, seed: int) -> None:
    basis = named_task(name).basis()
    means = drawn(seed, named_task(name).classes, neurons)
    expected = basis.modes.power(means.numpy()[basis.answers].T).T  # by columns of the basis, without any transform
    assert torch.allclose(spectrum(means, basis).power, torch.from_numpy(expected), rtol=1e-10, atol=1e-13)


@given(tasks, st.integers(1, 6), random_seeds)
def test_plancherel(name: str, neurons: int, seed: int) -> None:
    basis = named_task(name).basis()
    means = drawn(seed, named_task(name).classes, neurons)
    total = spectrum(means, basis).power.sum(dim=0)
    over_group = means[torch.from_numpy(np.array(basis.answers))]
    centred = over_group - over_group.mean(dim=0)
    assert torch.allclose(total, centred.square().sum(dim=0), rtol=1e-10, atol=0)


@given(tasks, random_seeds, st.floats(0.01, 100), st.floats(-10, 10))
def test_scale_squares_and_a_constant_vanishes(name: str, seed: int, scale: float, shift: float) -> None:
    basis = named_task(name).basis()
    means = drawn(seed, named_task(name).classes, 3)
    power = spectrum(means, basis).power
    assert torch.allclose(spectrum(means * scale + shift, basis).power, power * scale**2, rtol=1e-6, atol=1e-9)


@given(st.sampled_from(ODD), random_seeds)
def test_one_sinusoid_is_one_mode_and_has_rank_one(n: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    f, phases = int(generator.integers(1, n // 2 + 1)), generator.uniform(0, 2 * np.pi, 6)
    means = np.cos(2 * np.pi * f * np.arange(n)[:, None] / n + phases)
    power = spectrum(torch.from_numpy(means), named_task(f"add_mod{n}").basis()).power
    assert (power.argmax(dim=0) == f - 1).all()
    assert (fourier_rank(power).rank == 1).all()
    assert fourier_rank(power).rank_one_share == 1
    power[f - 1] = 0
    assert power.max() < 1e-20


def test_an_answer_outside_the_group_is_not_read() -> None:
    basis = named_task("mult_mod11").basis()
    means = drawn(0, 11, 4)
    other = means.clone()
    other[0] = 1e6  # 0 is no unit
    assert torch.equal(spectrum(means, basis).power, spectrum(other, basis).power)


@given(st.sampled_from([("add_mod11", 11), ("mult_mod11", 11), ("S3", 6)]), st.floats(1e-3, 1e3), random_seeds)
def test_rounding_is_no_variation(task: tuple[str, int], level: float, seed: int) -> None:
    name, answers = task
    constant = torch.full((answers, 3), level, dtype=torch.float32)
    rounded = constant * (1 + torch.from_numpy(np.random.default_rng(seed).choice([0, 6e-8], (answers, 3))).float())
    basis = named_task(name).basis()
    for means in (constant, rounded, torch.zeros(answers, 3)):
        found = spectrum(means, basis)
        assert found.is_constant.all()
        assert not found.power.any()
        assert fsd(found.density).fsd.isnan()
        assert fourier_rank(found.power).median.isnan()


def test_a_variation_of_a_ten_thousandth_is_seen() -> None:
    wave = 1 + 1e-4 * torch.cos(2 * torch.pi * 3 * torch.arange(97) / 97)
    found = spectrum(wave[:, None].float(), named_task("add_mod97").basis())
    assert not found.is_constant.any()
    assert found.power.argmax() == 2
    assert float(found.power.max()) == pytest.approx(97 / 2 * 1e-8, rel=1e-2)


@given(tasks, random_seeds)
def test_leading_axes_are_runs(name: str, seed: int) -> None:
    basis = named_task(name).basis()
    means = drawn(seed, 2, 3, named_task(name).classes, 4)
    together = spectrum(means, basis).power
    for i in range(2):
        for j in range(3):
            assert torch.allclose(together[i, j], spectrum(means[i, j], basis).power, rtol=1e-12, atol=1e-15)


def test_the_means_are_only_read() -> None:
    means = drawn(0, 2, 7, 3)
    before = means.clone()
    spectrum(means, named_task("add_mod7").basis())
    assert torch.equal(means, before)


@pytest.mark.parametrize("sick", [(0,), (0, 0, 0)])  # a whole run, or one answer of one neuron
@pytest.mark.parametrize("name", ["add_mod7", "Q8"])
def test_nan_stays_in_its_own_run(name: str, sick: tuple[int, ...]) -> None:
    task = named_task(name)
    means = drawn(0, 2, task.classes, 3)
    means[sick] = torch.nan
    found = spectrum(means, task.basis())
    assert not found.is_constant.any()
    assert mostly_varies(found.power).tolist() == [False, True]
    assert fsd(found.density).fsd.isnan().tolist() == [True, False]
    alone = spectrum(means[1], task.basis())
    assert torch.allclose(found.power[1], alone.power, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("varying", "expected"), [(0, False), (2, False), (3, True), (4, True)])
def test_most_neurons_are_more_than_half(varying: int, expected: bool) -> None:
    power = torch.zeros(3, 4)
    power[1, :varying] = 1e-30
    assert bool(mostly_varies(power)) is expected
    power[0, 0] = torch.inf
    assert not mostly_varies(power)
