"""How many modes a neuron needs."""

from dataclasses import dataclass

import torch
from torch import Tensor

from grokscope.errors import require
from grokscope.measures.question import BLOCK_0, MOSTLY_CONSTANT, Columns, Measure, Question
from grokscope.measures.spectrum import mostly_varies
from grokscope.shapes import Float

__all__ = ["ENTRIES", "RankResult", "explained_at_rank", "fourier_rank", "mean_explained"]

EXPLAINED_SHARE = 0.90
ROUNDING = 1e-12  # a share reached up to the rounding of its sum is reached


@dataclass(frozen=True)
class RankResult:
    """Fourier ranks of each run's neurons."""

    rank: Float[Tensor, "*runs neurons"]
    """R_j(τ); NaN for a neuron that does not vary."""
    median: Float[Tensor, "*runs"]
    """R̃, the median over the neurons that vary; NaN where most do not."""
    rank_one_share: Float[Tensor, "*runs"]
    """Share of those whose rank is 1."""


def fourier_rank(power: Float[Tensor, "*runs modes neurons"], explained_share: float = EXPLAINED_SHARE) -> RankResult:
    """R_j(τ) = min{k : the k strongest modes hold at least the share τ of neuron j's power}. Paper: Definition 1.

    The median is that of numpy: halfway between the two middle neurons where their number is even.

    >>> fourier_rank(torch.tensor([[9.0, 1.0], [1.0, 1.0], [0.0, 0.0]])).rank
    tensor([1., 2.])
    """
    require(0 < explained_share <= 1, "explained_share must lie in (0, 1]", explained_share)
    total = power.sum(dim=-2)
    reached = power.sort(dim=-2, descending=True).values.cumsum(dim=-2)
    enough = reached >= explained_share * total[..., None, :] * (1 - ROUNDING)
    rank = 1.0 + (~enough).sum(dim=-2).to(power.dtype)
    rank = torch.where(total > 0, rank, torch.nan)
    defined = mostly_varies(power)
    median = rank.nanquantile(0.5, dim=-1).where(defined, torch.nan)
    ones = (rank == 1).sum(dim=-1) / (total > 0).sum(dim=-1)
    return RankResult(rank, median, ones.to(power.dtype).where(defined, torch.nan))


def explained_at_rank(power: Float[Tensor, "*runs modes neurons"], rank: int = 1) -> Float[Tensor, "*runs neurons"]:
    """R² of each neuron's best `rank` modes: the share of its variance over answers that they explain (§5.4).

    >>> explained_at_rank(torch.tensor([[9.0], [1.0]]))
    tensor([0.9000])
    """
    require(rank >= 1, "rank must be at least 1", rank)
    best = power.topk(min(rank, power.shape[-2]), dim=-2).values.sum(dim=-2)
    return best / power.sum(dim=-2)  # NaN for a neuron that does not vary


def mean_explained(power: Float[Tensor, "*runs modes neurons"], rank: int = 1) -> Float[Tensor, "*runs"]:
    """Table 6's "R² (rank 1)" of a run: the mean over its neurons that vary; NaN where most do not.

    >>> mean_explained(torch.tensor([[3.0, 1.0], [1.0, 0.0]]))  # the strongest mode holds 0.75 and 1 of the power
    tensor(0.8750)
    """
    return explained_at_rank(power, rank).nanmean(dim=-1).where(mostly_varies(power), torch.nan)


def _columns(question: Question) -> Columns:
    power = question.spectrum().power
    found = fourier_rank(power)
    return {"rank": found.median, "rank_one_share": found.rank_one_share, "r2_rank_1": mean_explained(power)}


ENTRIES = {
    "rank": Measure(
        title="Fourier rank: how many modes a neuron needs",
        formula="R_j(τ) = min{k : the k strongest modes hold the share τ = 0.90 of neuron j's power}",
        source="the paper, Definition 1",
        cost=BLOCK_0,
        null="at p = 97 white noise has rank about 29, untrained networks 25 or 26",
        undefined=MOSTLY_CONSTANT,
        columns={
            "rank": "median over the neurons that vary",
            "rank_one_share": "share of those with rank 1",
            "r2_rank_1": "mean R² of each neuron's best single mode (Table 6)",
        },
        compute=_columns,
    ),
}
