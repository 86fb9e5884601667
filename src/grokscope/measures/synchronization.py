"""How far neurons agree on one dominant mode."""

from dataclasses import dataclass

import torch
from torch import Tensor

from grokscope.errors import require
from grokscope.measures.question import BLOCK_0, MOSTLY_CONSTANT, UNTRAINED, Columns, Measure, Question
from grokscope.measures.spectrum import mode_number, mostly_varies
from grokscope.shapes import Float, Int

__all__ = ["ENTRIES", "FsdResult", "fsd", "fsd_gen", "fsd_top_k"]

ROUNDING = 1e-24  # of a neuron's strongest mode, (1e-12)²: more than a transform in float64 leaves in the others


@dataclass(frozen=True)
class FsdResult:
    """Synchronisation of each run's neurons."""

    fsd: Float[Tensor, "*runs"]
    """(peak participation − chance) / (1 − chance), in [0, 1], or below where neurons have power in fewer than `top_k`
    modes; NaN where most neurons are constant."""
    mode: Int[Tensor, "*runs"]
    """Index of the mode most neurons share; for Z_n, the frequency less one."""
    participation: Float[Tensor, "*runs modes"]
    """Share of the responding neurons that have mode k among their `top_k` strongest."""
    strongest_mode: Int[Tensor, "*runs neurons"]
    """k*_j, the strongest mode of each neuron; −1 where it has none."""
    constant: Int[Tensor, "*runs"]
    """Neurons that do not vary over the answers: they have no dominant mode and are excluded."""
    top_k: int
    """How many of its strongest modes a neuron takes part in."""
    chance: float
    """Participation of each mode where neurons choose theirs at random, top_k / modes."""

    @property
    def responding(self) -> Int[Tensor, "*runs"]:
        """Neurons that vote."""
        return (self.strongest_mode >= 0).sum(dim=-1)

    @property
    def constant_share(self) -> Float[Tensor, "*runs"]:
        """Share of the neurons that are constant."""
        return self.constant / self.strongest_mode.shape[-1]

    @property
    def peak(self) -> Int[Tensor, "*runs"]:
        """Neurons that share the mode most share."""
        return (self.participation.nan_to_num().amax(dim=-1) * self.responding).round().long()


def fsd(density: Float[Tensor, "*runs modes neurons"]) -> FsdResult:
    """Frequency Synchronization Degree, FSD = (max_k par(k) − c) / (1 − c) with c = 1 / modes.

    Paper: Definition 2; Algorithm 1, lines 4–6. par(k) is the share of neurons whose strongest mode is k, by power per
    dimension. A neuron without power has no dominant mode and does not vote; where most have none, or any is not a
    number, FSD is undefined, never 1. With a single mode there is nothing to agree on: undefined too.

    >>> fsd(torch.tensor([[0.0, 0.0], [3.0, 2.0]])).fsd
    tensor(1.)
    """
    return _synchronized(density, top_k=1, averaged=1)


def fsd_top_k(density: Float[Tensor, "*runs modes neurons"], top_k: int) -> FsdResult:
    """FSD_k = (max_{|S|=k} mean_{f∈S} par(f) − c_k) / (1 − c_k) with c_k = k / modes. Paper: Definition 2, top-k.

    par(f) is the share of neurons with f among their k strongest modes, so the best S is the k most shared modes.

    >>> two_of_four = torch.tensor([[3.0, 2.0], [2.0, 3.0], [1.0, 1.0], [1.0, 1.0]])
    >>> fsd_top_k(two_of_four, 2).fsd, fsd(two_of_four).fsd
    (tensor(1.), tensor(0.3333))
    """
    return _synchronized(density, top_k, averaged=top_k)


def fsd_gen(density: Float[Tensor, "*runs modes neurons"], top_k: int = 1) -> FsdResult:
    """FSD_gen = (max_ρ par(ρ) − c) / (1 − c), par(ρ) the share of neurons with ρ among their K strongest modes.

    Paper: §7, ranked by P_j(ρ) per dimension. It calls c "chance" and gives no formula; here c = K / modes, what K
    modes drawn at random give each, and what c_k is in Definition 2. The peak over one mode can reach 1 while FSD_k,
    the mean over K, does not: they agree at K = 1 only, where both are FSD.

    >>> shared = torch.tensor([[3.0, 3.0, 3.0], [2.0, 0.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    >>> fsd_gen(shared, 2).fsd, fsd_top_k(shared, 2).fsd
    (tensor(1.), tensor(0.3333))
    """
    return _synchronized(density, top_k, averaged=1)


def _synchronized(density: Tensor, top_k: int, averaged: int) -> FsdResult:
    """Participation by each neuron's `top_k` strongest modes; the mean of the `averaged` most shared ones, scaled."""
    modes = density.shape[-2]
    require(1 <= top_k <= modes, f"top_k must lie between 1 and the number of modes, {modes}", top_k)
    if top_k == 1:
        strongest = density.argmax(dim=-2, keepdim=True)
    else:  # equal powers in the order of the modes, as argmax has them
        strongest = density.argsort(dim=-2, descending=True, stable=True)[..., :top_k, :]
    # A mode without power is nobody's, however few are left: a pure wave has one strongest mode and no second.
    has_power = density > ROUNDING * density.amax(dim=-2, keepdim=True)
    takes_part = torch.zeros_like(has_power).scatter(-2, strongest, True) & has_power
    responds = takes_part.any(dim=-2)
    participation = takes_part.sum(dim=-1).to(density.dtype) / responds.sum(dim=-1, keepdim=True)
    chance = top_k / modes
    best = participation.topk(averaged, dim=-1).values.mean(dim=-1)
    value = (best - chance) / (1 - chance) if top_k < modes else torch.full_like(best, torch.nan)
    return FsdResult(
        fsd=value.where(mostly_varies(density), torch.nan),
        mode=participation.argmax(dim=-1),
        participation=participation,
        strongest_mode=strongest[..., 0, :].where(responds, -1),
        constant=(density == 0).all(dim=-2).sum(dim=-1),
        top_k=top_k,
        chance=chance,
    )


def _fsd_columns(question: Question) -> Columns:
    """FSD, its mode, and how much of the site it is read from."""
    found, means = fsd(question.spectrum().density), question.means()
    return {
        "fsd": found.fsd,
        "fsd_mode": mode_number(found.mode, found.fsd),
        "constant_share": found.constant_share.where(means.finite, torch.nan),
        "answer_share": means.answer_share,
    }


def _fsd_top_k_columns(question: Question) -> Columns:
    density = question.spectrum().density
    return {f"fsd_{k}": fsd_top_k(density, k).fsd for k in (2, 3) if k < density.shape[-2]}


def _fsd_gen_columns(question: Question) -> Columns:
    density = question.spectrum().density
    found = {f"fsd_gen_{k}": fsd_gen(density, k) for k in (1, 2, 3) if k == 1 or k < density.shape[-2]}
    first = found["fsd_gen_1"]
    return {name: result.fsd for name, result in found.items()} | {"fsd_gen_mode": mode_number(first.mode, first.fsd)}


ENTRIES = {
    "fsd": Measure(
        title="Frequency Synchronization Degree: how far neurons agree on one dominant mode",
        formula="FSD = (max_k par(k) − c) / (1 − c), par(k) = share of neurons whose strongest mode is k, c = 1/modes",
        source="the paper, Definition 2 and Algorithm 1",
        cost=BLOCK_0,
        null=UNTRAINED
        + "; how far depends on the numbers of modes and neurons: fsd_null computes it for a network at hand",
        undefined=MOSTLY_CONSTANT + "; there is a single mode",
        columns={
            "fsd": "FSD, in [0, 1]",
            "fsd_mode": "the mode most neurons share, counted from 1; on Z_n the frequency",
            "constant_share": "share of neurons that are constant over the answers and are excluded",
            "answer_share": "share of the activation variance that depends on the answer",
        },
        compute=_fsd_columns,
    ),
    "fsd_k": Measure(
        title="FSD of the k best modes together",
        formula="FSD_k = (max_{|S| = k} mean_{f ∈ S} par_k(f) − k/modes) / (1 − k/modes), par_k by k strongest modes",
        source="the paper, Definition 2, top-k extension",
        cost=BLOCK_0,
        null=UNTRAINED,
        undefined=MOSTLY_CONSTANT,
        columns={"fsd_{2,3}": "FSD_k for k = 2 and 3, where the basis has more modes than k"},
        compute=_fsd_top_k_columns,
    ),
    "fsd_gen": Measure(
        title="FSD over the irreps of any group",
        formula="FSD_gen = (max_ρ par_K(ρ) − K/modes) / (1 − K/modes), strongest by P_j(ρ) per dimension",
        source="the paper, §7",
        cost=BLOCK_0,
        null=UNTRAINED + "; on S5 they reach 0.64",
        undefined=MOSTLY_CONSTANT,
        columns={
            "fsd_gen_{1,2,3}": "FSD_gen for K = 1, which is FSD, and 2, 3 where the basis has more modes than K",
            "fsd_gen_mode": "the mode most neurons share at K = 1, counted from 1",
        },
        compute=_fsd_gen_columns,
    ),
}
