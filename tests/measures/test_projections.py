import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from grokscope.measures.projections import kept_means, mode_part, pair_part
from grokscope.tasks import Basis, named_task

random_seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25, deadline=None)


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def drawn_modes(seed: int, runs: int, basis: Basis) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).random((runs, len(basis.modes))) < 0.5)


def projected(function: np.ndarray, frequency: int) -> np.ndarray:
    """The part of a function on Z_n at one frequency, by sums over its elements."""
    n = len(function)
    out = np.zeros(n)
    for s in range(n):
        for t in range(n):
            weight = 1 / n if 2 * frequency == n else 2 / n
            out[s] += weight * np.cos(2 * np.pi * frequency * (s - t) / n) * function[t]
    return out


def symmetric_three_characters(task) -> list[np.ndarray]:
    """The sign and the two-dimensional character of S3, from the elements' orders; in the order of their irreps."""
    order = np.array(task.group.orders)
    return [np.where(order == 2, -1, 1), np.array([{1: 2, 2: 0, 3: -1}[int(k)] for k in order])]


@few
@given(st.sampled_from([5, 6, 7, 10, 11]), st.integers(1, 3), random_seeds)
def test_on_cyclic_groups_a_part_is_a_sum_of_cosines(n: int, neurons: int, seed: int) -> None:
    basis, functions = named_task(f"add_mod{n}").basis(), drawn(seed, 2, n, neurons)
    modes = drawn_modes(seed, 2, basis)
    found = mode_part(functions, basis, modes)
    for run in range(2):
        for j in range(neurons):
            own = functions[run, :, j].numpy()
            expected = sum((projected(own, f + 1) for f in range(n // 2) if modes[run, f]), np.zeros(n))
            assert found[run, :, j].numpy() == pytest.approx(expected, abs=1e-12)


@few
@given(random_seeds)
def test_on_a_group_a_part_is_a_sum_of_characters(seed: int) -> None:
    task = named_task("S3")
    functions, table, inverse = drawn(seed, 6, 2), task.group.table, task.group.inverse
    basis, characters = task.basis(), symmetric_three_characters(task)
    for number, mode in enumerate(basis.modes.modes):
        character = characters[0 if mode.irrep_dimension == 1 else 1]
        expected = np.zeros((6, 2))
        for c in range(6):
            for other in range(6):
                weight = mode.irrep_dimension / 6 * character[table[c, inverse[other]]]
                expected[c] += weight * functions[other].numpy()
        alone = torch.arange(len(basis.modes)) == number
        assert mode_part(functions, basis, alone).numpy() == pytest.approx(expected, abs=1e-12)


@few
@given(random_seeds)
def test_multiplication_is_filtered_along_the_discrete_logarithm(seed: int) -> None:
    task, p, g = named_task("mult_mod11"), 11, 2  # 2 generates the units modulo 11
    functions = drawn(seed, p, 2)
    units = [pow(g, k, p) for k in range(p - 1)]
    for f in range(5):
        part = mode_part(functions, task.basis(), torch.arange(5) == f)
        for j in range(2):
            assert part[units, j].numpy() == pytest.approx(projected(functions[units, j].numpy(), f + 1), abs=1e-12)
        assert not part[0].any()


tasks = st.sampled_from(["add_mod7", "add_mod10", "sub_mod11", "mult_mod11", "div_mod7", "S3", "Q8", "A4"])


@few
@given(tasks, random_seeds)
def test_complementary_choices_add_up(name: str, seed: int) -> None:
    task = named_task(name)
    basis, means = task.basis(), drawn(seed, 2, task.classes, 3)
    modes = drawn_modes(seed, 2, basis)
    part, rest = mode_part(means, basis, modes), mode_part(means, basis, ~modes)
    inside = torch.from_numpy(np.array(basis.answers))
    assert torch.allclose(kept_means(means, part, basis), means - rest, atol=1e-12)
    assert torch.allclose(kept_means(means, part + rest, basis), means, atol=1e-12)
    outside = [s for s in range(task.classes) if s not in inside]
    assert torch.equal(kept_means(means, part, basis)[:, outside], means[:, outside])
    without = kept_means(means, part, basis, with_mean=False)
    assert without[:, inside].mean(dim=1).abs().max() < 1e-12


@few
@given(tasks, random_seeds)
def test_projections_are_idempotent(name: str, seed: int) -> None:
    task = named_task(name)
    basis, means = task.basis(), drawn(seed, 2, task.classes, 3)
    modes = drawn_modes(seed, 2, basis)
    once = mode_part(means, basis, modes)
    assert torch.allclose(mode_part(once, basis, modes), once, atol=1e-12)
    assert mode_part(means - once, basis, modes).abs().max() < 1e-12
    assert mode_part(once, basis, ~modes).abs().max() < 1e-12


@few
@given(st.sampled_from([5, 6, 7]), random_seeds)
def test_the_filter_over_pairs_is_a_sum_over_products_of_waves(n: int, seed: int) -> None:
    basis, function = named_task(f"add_mod{n}").basis(), drawn(seed, n, n)
    modes = drawn_modes(seed, 1, basis)[0]
    waves = [np.full(n, n**-0.5)]
    for f in range(1, n // 2 + 1):
        for wave in (np.cos, np.sin):
            values = wave(2 * np.pi * f * np.arange(n) / n)
            if modes[f - 1] and np.linalg.norm(values) > 1e-9:
                waves.append(values / np.linalg.norm(values))
    expected = np.zeros((n, n))
    for one in waves:
        for other in waves:
            expected += (one @ function.numpy() @ other) * np.outer(one, other)
    found = pair_part(function[..., None], basis, modes)[..., 0] + function.mean()
    assert found.numpy() == pytest.approx(expected, abs=1e-12)


@few
@given(st.sampled_from(["add_mod6", "add_mod7", "S3", "Q8"]), random_seeds)
def test_the_filter_over_pairs_is_a_projection(name: str, seed: int) -> None:
    task = named_task(name)
    basis, functions = task.basis(), drawn(seed, 2, task.symbols, task.symbols, 2)
    modes = drawn_modes(seed, 2, basis)
    once = pair_part(functions, basis, modes)
    assert torch.allclose(pair_part(once, basis, modes), once, atol=1e-12)
    everything = pair_part(functions, basis, torch.ones_like(modes))
    assert torch.allclose(everything, functions - functions.mean(dim=(1, 2), keepdim=True), atol=1e-12)
    assert pair_part(functions, basis, torch.zeros_like(modes)).abs().max() < 1e-12


def test_filtering_pairs_and_answers_agree_on_functions_of_the_answer() -> None:
    task = named_task("add_mod11")
    basis, of_answer = task.basis(), drawn(3, 11, 2)
    over_pairs = of_answer[torch.tensor(task.answers)].view(11, 11, 2)
    modes = drawn_modes(3, 1, basis)[0]
    expected = mode_part(of_answer, basis, modes)[torch.tensor(task.answers)].view(11, 11, 2)
    assert torch.allclose(pair_part(over_pairs, basis, modes), expected, atol=1e-12)
