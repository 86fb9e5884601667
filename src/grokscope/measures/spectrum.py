"""Power of answer-conditioned means in each mode of a basis."""

import numpy as np
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
    over_group = means[..., torch.from_numpy(basis.answers).to(means.device), :].double()
    centred = over_group - over_group.mean(dim=-2, keepdim=True)
    waves = torch.from_numpy(basis.modes.basis[:, 1:]).to(means.device)
    squares = torch.einsum("gc,...gj->...cj", waves, centred) ** 2
    power = squares.new_zeros(*squares.shape[:-2], len(basis.modes), squares.shape[-1])
    columns = torch.from_numpy(basis.modes.column_mode).to(means.device)
    power = power.index_add(-2, columns, squares)
    varies = power.sum(dim=-2) > CONSTANT_SHARE * over_group.square().sum(dim=-2)
    dimensions = torch.from_numpy(basis.modes.dimensions.astype(np.float64)).to(means.device)
    return torch.where(varies[..., None, :], power, 0) / dimensions[:, None]
