"""The parts of functions of answers, and of pairs (a, b), that lie in chosen modes."""

import numpy as np
import torch
from torch import Tensor

from grokscope.errors import require
from grokscope.measures.spectrum import add_up
from grokscope.shapes import Bool, Float, Int
from grokscope.tasks import Basis, Task

__all__ = ["cube_part", "kept_means", "mode_part", "on_both", "pair_part", "pair_rows"]


def mode_part(
    functions: Float[Tensor, "*runs answers neurons"], basis: Basis, modes: Bool[Tensor, "*#runs modes"]
) -> Float[Tensor, "*runs answers neurons"]:
    """Σ_{m ∈ K} P_m A of functions A[s, j] on the answers, in float64; 0 at answers outside the basis's group.

    P_m is the projector on mode m: on Z_n, on cos(2πfs/n) and sin(2πfs/n). Every answer has the same weight, however
    many pairs give it.
    """
    waves = _waves_over(functions.shape[-2], basis, functions.device)
    coefficients = waves.T @ functions.double()
    return waves @ (coefficients * _columns(basis, modes)[..., None])


def kept_means(
    means: Float[Tensor, "*runs answers neurons"],
    part: Float[Tensor, "*runs answers neurons"],
    basis: Basis,
    *,
    with_mean: bool = True,
) -> Float[Tensor, "*runs answers neurons"]:
    """A part of A[s, j], with A's mean over the group's answers; an answer outside the group has all of A."""
    inside = torch.tensor(basis.answers, device=means.device)
    if with_mean:
        part = part + means[..., inside, :].mean(dim=-2, keepdim=True)
    return means.double().index_copy(-2, inside, part[..., inside, :])


def pair_part(
    functions: Float[Tensor, "*runs n n neurons"], basis: Basis, modes: Bool[Tensor, "*#runs modes"]
) -> Float[Tensor, "*runs n n neurons"]:
    """(Π_K ⊗ Π_K − Π_∅ ⊗ Π_∅) F of functions F[a, b, j]: what the two-dimensional filter keeps besides the mean.

    Π_K = Π_∅ + Σ_{m ∈ K} P_m, with Π_∅ the projector on constants, acts on a and on b: terms in a alone, in b alone,
    and products of any two chosen modes are kept. In float64.
    """
    waves = _waves_over(functions.shape[-2], basis, functions.device)
    columns = _columns(basis, modes)
    columns[..., 0] = True
    both = columns[..., :, None] & columns[..., None, :]
    both[..., 0, 0] = False
    coefficients = on_both(waves.T, functions.double())
    return on_both(waves, coefficients * both[..., None])


def on_both(matrix: Float[Tensor, "m n"], functions: Float[Tensor, "*runs n n neurons"]) -> Tensor:
    """The matrix applied to a and to b, one after the other: both at once would hold n⁴ numbers."""
    return torch.einsum("db,...cbj->...cdj", matrix, torch.einsum("ca,...abj->...cbj", matrix, functions))


def _waves_over(size: int, basis: Basis, device: torch.device) -> Float[Tensor, "size columns"]:
    """The basis's orthonormal columns over all answers; an answer outside the group has zeros."""
    waves = np.zeros((size, len(basis.answers)))
    waves[basis.answers] = basis.modes.basis
    return torch.from_numpy(waves).to(device)


def _columns(basis: Basis, modes: Bool[Tensor, "*runs modes"]) -> Bool[Tensor, "*runs columns"]:
    """The columns that belong to chosen modes; the first, the constant, never does."""
    of_modes = modes[..., torch.tensor(basis.modes.column_mode, device=modes.device)]
    return torch.nn.functional.pad(of_modes, (1, 0), value=False)


def cube_part(
    functions: Float[Tensor, "*runs answers classes"], basis: Basis, modes: Bool[Tensor, "*#runs modes"]
) -> Float[Tensor, "*runs answers classes"]:
    """Projection of A[s, c] on the cubes of chosen modes: Σ_m ⟨A, P_m⟩ P_m / dim m, as ‖P_m‖² = dim m.

    The projector on a mode, as a matrix, is its cube: (2/n) cos 2πk(s − c)/n on Z_n, and Σ_{ρ ∈ m} (d_ρ/|G|)
    χ_ρ(s·c⁻¹) on a group. Its sum over classes is 0, so that centring logits first would change nothing. A class
    outside the group gets 0, the mean of the others.
    """
    waves = _waves_over(functions.shape[-2], basis, functions.device)[:, 1:]
    diagonal = ((waves.T @ functions.double()) * waves.T).sum(dim=-1)
    mode = torch.tensor(basis.modes.column_mode, device=functions.device)
    dimensions = torch.tensor(basis.modes.dimensions, device=functions.device)
    size = add_up(diagonal[..., None], mode, len(dimensions))[..., 0] / dimensions
    return (waves * (size * modes)[..., None, mode]) @ waves.T


def pair_rows(task: Task, basis: Basis) -> Int[np.ndarray, "n n"]:
    """The row of `task.inputs` that holds each pair of the basis's symbols, in the order of its group."""
    rows = np.full((task.symbols, task.symbols), -1)
    rows[task.inputs[:, 0], task.inputs[:, 1]] = np.arange(task.rows)
    grid = rows[np.ix_(basis.answers, basis.answers)]
    require(
        not (grid < 0).any(),
        f"{task.name} lacks {(grid < 0).sum()} of the pairs (a, b) that the {basis.name} basis needs",
    )
    return grid
