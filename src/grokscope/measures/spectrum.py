"""Power of answer-conditioned means in each mode of a basis."""

import torch
from torch import Tensor

from grokscope.shapes import Float
from grokscope.tasks import Basis

__all__ = ["mode_power"]

# Below this share of a neuron's mean square, variation over answers is rounding: (8 · 2⁻²³)².
CONSTANT_SHARE = 1e-12


def mode_power(means: Float[Tensor, "*runs answers neurons"], basis: Basis) -> Float[Tensor, "*runs modes neurons"]:
    """Power per dimension of every mode, P_j(ρ)/dim ρ; zero throughout for a neuron that does not vary.

    On odd Z_n every mode has dimension 2, so the ranking is that of |Â_f|² (paper: Definitions 1 and 2); on other
    groups the division is Eq. 4's d_ρ² normalisation. Computed in float64: the means vary by 1e-4 of their size.
    """
    over_group = means[..., torch.tensor(basis.answers, device=means.device), :].double()
    centred = over_group - over_group.mean(dim=-2, keepdim=True)
    waves = torch.tensor(basis.modes.basis[:, 1:], device=means.device)
    squares = torch.einsum("gc,...gj->...cj", waves, centred) ** 2
    power = squares.new_zeros(*squares.shape[:-2], len(basis.modes), squares.shape[-1])
    columns = torch.tensor(basis.modes.column_mode, device=means.device)
    power = power.index_add(-2, columns, squares)
    is_constant = power.sum(dim=-2) <= CONSTANT_SHARE * over_group.square().sum(dim=-2)  # never true of NaN
    dimensions = torch.tensor(basis.modes.dimensions, dtype=torch.float64, device=means.device)
    return torch.where(is_constant[..., None, :], 0, power) / dimensions[:, None]
