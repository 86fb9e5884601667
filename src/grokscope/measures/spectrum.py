"""Power of conditioned means in each mode of a basis."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from grokscope.shapes import Bool, Float, Int
from grokscope.tasks import Basis

__all__ = ["Spectrum", "add_up", "mode_number", "mostly_varies", "spectrum"]

# Below this share of an activation's mean square, variation over answers is rounding: (8 · 2⁻²³)².
CONSTANT_SHARE = 1e-12


@dataclass(frozen=True)
class Spectrum:
    """Where the variation of each neuron over the answers lies."""

    power: Float[Tensor, "*runs modes neurons"]
    """P_j(ρ), in float64: squared norm of a neuron's part in mode ρ; zero throughout for a constant neuron."""
    dimensions: Float[Tensor, " modes"]
    """Dimension of each mode's function space."""
    is_constant: Bool[Tensor, "*runs neurons"]
    """Neurons that do not vary over the answers beyond rounding: they have no dominant mode."""

    @property
    def density(self) -> Float[Tensor, "*runs modes neurons"]:
        """P_j(ρ)/dim ρ, by which modes are ranked: on odd Z_n the order of |Â_f|², on groups Eq. 4's normalisation."""
        return self.power / self.dimensions[:, None]


def spectrum(
    means: Float[Tensor, "*runs answers neurons"],
    basis: Basis,
    mean_square: Float[Tensor, "*runs neurons"] | None = None,
) -> Spectrum:
    """P_j(ρ) of every neuron and mode, the constant mode left out. Paper: Definition 1 and Eq. 4.

    On Z_n, P_j(f) = 2|Â_f|²/n, and |Â_f|²/n at f = n/2. Computed in float64: the means vary by 1e-4 of their size.
    Whether they vary beyond rounding is judged by the size of what was averaged, `mean_square` of the activation: the
    means of a function of a plus one of b are 0 up to rounding, and nothing but rounding. Without it, by their own.

    >>> from grokscope.tasks import named_task
    >>> s = 2 * torch.pi * torch.arange(5) / 5
    >>> spectrum(torch.cos(2 * s)[:, None], named_task("add_mod5").basis()).power.flatten().round(decimals=3)
    tensor([0.0000, 2.5000], dtype=torch.float64)
    """
    answers, dimensions, own_waves, column_mode = _on_device(basis, means.device)
    over_group = means[..., answers, :].double()
    centred = over_group - over_group.mean(dim=-2, keepdim=True)
    if not basis.modes.is_fourier:
        squares = torch.einsum("gc,...gj->...cj", own_waves, centred) ** 2
        power = add_up(squares, column_mode, len(basis.modes))
    else:
        waves = torch.fft.rfft(centred, dim=-2)[..., 1:, :]
        power = (waves.real**2 + waves.imag**2) * dimensions[:, None] / centred.shape[-2]
    own = over_group.square().sum(dim=-2)
    size = own if mean_square is None else torch.maximum(own, over_group.shape[-2] * mean_square)
    is_constant = power.sum(dim=-2) <= CONSTANT_SHARE * size  # never true of NaN
    return Spectrum(torch.where(is_constant[..., None, :], 0, power), dimensions, is_constant)


def add_up(
    values: Float[Tensor, "*runs columns neurons"], place: Int[Tensor, " columns"], size: int
) -> Float[Tensor, "*runs places neurons"]:
    """Σ of the columns with the same place, 0 ≤ place < size, such as the mode to which each belongs."""
    if values.device.type == "cpu":
        return values.new_zeros(*values.shape[:-2], size, values.shape[-1]).index_add(-2, place, values)
    # One product with 0 and 1: no atomics, always the same order.
    return (torch.arange(size, device=place.device)[:, None] == place).to(values.dtype) @ values


# As long as a basis lives, so do its copies: CUDA graphs read them without asking.
_COPIES: "WeakKeyDictionary[Basis, dict[torch.device, tuple[Tensor, ...]]]" = WeakKeyDictionary()


def _on_device(basis: Basis, device: torch.device) -> tuple[Tensor, ...]:
    """Answers, dimensions, waves and the mode of each wave, copied to a device once."""
    copies = _COPIES.setdefault(basis, {})
    if device not in copies:
        copies[device] = _copied(basis, device)
    return copies[device]


def _copied(basis: Basis, device: torch.device) -> tuple[Tensor, ...]:
    modes = basis.modes
    waves = (modes.basis[:, 1:], modes.column_mode) if not modes.is_fourier else (np.empty(0), np.empty(0))
    answers, *rest = (torch.tensor(part, device=device) for part in (basis.answers, modes.dimensions, *waves))
    return answers, rest[0].double(), *rest[1:]


def mostly_varies(power: Float[Tensor, "*runs modes neurons"]) -> Bool[Tensor, "*runs"]:
    """Whether most of a run's neurons vary and all are numbers: otherwise what is read of its modes is undefined.

    >>> mostly_varies(torch.tensor([[1.0, 1.0, 0.0], [2.0, 0.0, 0.0]]))
    tensor(True)
    """
    varies = power.sum(dim=-2) > 0
    return (2 * varies.sum(dim=-1) > power.shape[-1]) & power.isfinite().all(dim=-1).all(dim=-1)


def mode_number(index: Int[Tensor, "*runs"], value: Float[Tensor, "*runs"]) -> Float[Tensor, "*runs"]:
    """A mode counted from 1, as columns have it; NaN where the value that it belongs to is undefined."""
    return (index + 1).double().where(~value.isnan(), torch.nan)
