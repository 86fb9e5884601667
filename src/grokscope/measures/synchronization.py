"""How far neurons agree on one dominant mode."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from grokscope.shapes import Float, Int

__all__ = ["FsdResult", "fsd"]


@dataclass(frozen=True)
class FsdResult:
    """Synchronisation of each run's neurons."""

    fsd: Float[Tensor, "*runs"]
    """(peak participation − chance) / (1 − chance), in [0, 1]; NaN where most neurons are constant."""
    mode: Int[Tensor, "*runs"]
    """Index of the mode most neurons share."""
    participation: Float[Tensor, "*runs modes"]
    """Share of the responding neurons whose strongest mode is k."""


def fsd(power: Float[Tensor, "*runs modes neurons"]) -> FsdResult:
    """Frequency Synchronization Degree, FSD = (max_k par(k) − c) / (1 − c) with c = 1 / modes.

    Paper: Definition 2; Algorithm 1, lines 4–6. A neuron without power has no dominant mode and does not vote; where
    most have none, or any is not a number, FSD is undefined, never 1.

    >>> fsd(torch.tensor([[0.0, 0.0], [3.0, 2.0]])).fsd
    tensor(1.)
    """
    modes = power.shape[-2]
    responds = power.amax(dim=-2) > 0
    votes = one_hot(power.argmax(dim=-2), modes) * responds[..., None]
    participation = votes.sum(dim=-2).to(power.dtype) / responds.sum(dim=-1, keepdim=True)
    peak, mode = participation.max(dim=-1)
    chance = 1 / modes
    value = (peak - chance) / (1 - chance)
    defined = (responds.float().mean(dim=-1) > 0.5) & ~power.isnan().any(dim=-1).any(dim=-1)
    return FsdResult(value.where(defined, torch.nan), mode, participation)
