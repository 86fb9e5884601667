from math import log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_runs import ARCHITECTURES, by_name, fresh, reference_in, small_run
from scipy.stats import entropy

from grokscope.activations import RunStack, subject_of
from grokscope.measures.catalogue import measure
from grokscope.measures.question import Question
from grokscope.measures.singular_values import SingularSpectrum, singular_spectrum, weight_matrices

FIELDS = ("largest", "top_share", "stable_rank", "entropy", "effective_rank")


def drawn(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(rows, columns)))


def values(found: SingularSpectrum) -> dict[str, float]:
    return {field: float(getattr(found, field)) for field in FIELDS}


def subject_at(runs: int = 3, name: str = "one_layer", **fields) -> RunStack:
    state, cohort = fresh([small_run("add_mod11", seed, ARCHITECTURES[name], **fields) for seed in range(runs)])
    return subject_of(cohort.specs, state.weights)


def by_numpy(matrix: np.ndarray) -> dict[str, float]:
    """From the definitions: an SVD, the two norms, and scipy's entropy."""
    sigma = np.linalg.svd(matrix, compute_uv=False)
    return {
        "effective_rank": np.exp(entropy(sigma)),
        "stable_rank": np.linalg.norm(matrix, "fro") ** 2 / np.linalg.norm(matrix, 2) ** 2,
        "singular_entropy": entropy(sigma) / np.log(min(matrix.shape)),
        "singular_max": np.linalg.norm(matrix, 2),
        "singular_share": np.linalg.norm(matrix, 2) / np.linalg.norm(matrix, "nuc"),
    }


def matrices_of(parameters: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """A plain module's matrices, query, key and value apart."""
    found: dict[str, np.ndarray] = {}
    for name, value in parameters.items():
        matrix = value.numpy()
        if name.endswith("W_QKV"):
            third = matrix.shape[1] // 3
            found |= {name.replace("QKV", "QKV"[i]): matrix[:, i * third : (i + 1) * third] for i in range(3)}
        elif matrix.ndim > 1:
            found[name] = matrix.reshape(-1, matrix.shape[-1])
    return found


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_column_is_that_of_the_reference_modules_matrix(name: str) -> None:
    state, cohort = fresh([small_run("add_mod11", seed, ARCHITECTURES[name]) for seed in range(2)])
    for slot, row in enumerate(measure(Question(subject_of(cohort.specs, state.weights)), ["singular_values"])):
        expected = {
            f"{kind}_{matrix}": value
            for matrix, own in matrices_of(by_name(reference_in(cohort, state.weights, slot))).items()
            for kind, value in by_numpy(own).items()
        }
        assert row.pop("undefined") == ""
        assert row == pytest.approx(expected, rel=1e-9)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_ranks_lie_between_one_and_the_shorter_side(rows: int, columns: int, seed: int) -> None:
    found, rank = singular_spectrum(drawn(rows, columns, seed)), min(rows, columns)
    assert 1 - 1e-12 <= float(found.stable_rank) <= rank + 1e-9
    assert 1 - 1e-12 <= float(found.effective_rank) <= rank + 1e-9
    assert 1 / rank - 1e-12 <= float(found.top_share) <= 1 + 1e-12
    if rank > 1:
        assert float(found.effective_rank) == pytest.approx(rank ** float(found.entropy))


def test_neither_rotations_nor_the_other_side_nor_scale_change_a_rank() -> None:
    matrix = drawn(7, 5)
    left, right = (torch.linalg.qr(drawn(size, size, 1)).Q for size in (7, 5))
    expected = values(singular_spectrum(matrix))
    for other in (left @ matrix @ right, matrix.T):
        assert values(singular_spectrum(other)) == pytest.approx(expected)
    scaled = values(singular_spectrum(3 * matrix))
    assert scaled == pytest.approx(expected | {"largest": 3 * expected["largest"]})


def test_one_direction_and_equal_ones_are_the_ends() -> None:
    one = torch.outer(drawn(6, 1)[:, 0], drawn(4, 1)[:, 0])
    found = values(singular_spectrum(one))
    assert found == pytest.approx(
        {"largest": float(one.norm()), "top_share": 1, "stable_rank": 1, "entropy": 0, "effective_rank": 1}, abs=1e-12
    )
    assert values(singular_spectrum(2 * torch.eye(4))) == pytest.approx(
        {"largest": 2, "top_share": 0.25, "stable_rank": 4, "entropy": 1, "effective_rank": 4}
    )


def test_shares_that_are_known_give_the_entropy_that_is_known() -> None:
    found = singular_spectrum(torch.diag(torch.tensor([2.0, 1.0, 1.0])))
    assert float(found.entropy) == pytest.approx(1.5 * log(2) / log(3))
    assert float(found.effective_rank) == pytest.approx(2**1.5)
    assert float(found.stable_rank) == pytest.approx(1.5)


def test_padding_is_no_parameter() -> None:
    subject = subject_at(1)
    before = measure(Question(subject), ["singular_values"])
    subject.weights["embed.W_E"][:, 12:] = 5
    subject.weights["unembed.W_U"][..., 11:] = 5
    assert measure(Question(subject), ["singular_values"]) == before
    assert {tuple(matrix.shape[1:]) for matrix in weight_matrices(subject).values()} >= {(12, 16), (16, 11)}


def test_a_matrix_that_is_not_a_number_or_zero_is_undefined_alone() -> None:
    subject = subject_at()
    healthy = {name: singular_spectrum(matrix) for name, matrix in weight_matrices(subject).items()}
    subject.weights["unembed.W_U"][1, 0, 0] = torch.inf
    subject.weights["embed.W_E"][2] = 0
    sick = {name: singular_spectrum(matrix) for name, matrix in weight_matrices(subject).items()}
    assert sick["unembed.W_U"].effective_rank.isnan().tolist() == [False, True, False]
    assert sick["embed.W_E"].stable_rank.isnan().tolist() == [False, False, True]
    assert sick["embed.W_E"].largest.tolist()[2] == 0
    for name, one in healthy.items():
        assert torch.equal(one.values[0], sick[name].values[0])


@pytest.mark.gpu
def test_a_gpu_reads_alike() -> None:
    subject = subject_at()
    there = {name: value.cuda() for name, value in weight_matrices(subject).items()}
    for name, matrix in weight_matrices(subject).items():
        here = singular_spectrum(matrix)
        assert torch.allclose(here.values, singular_spectrum(there[name]).values.cpu())
