"""How few modes hold a neuron's power, by three measures that rival FSD and rank.

All read the shares q_k = P_k / Σ_l P_l of a neuron's power over its modes. Where modes differ in dimension, power says
how much of the variance they hold, and power per dimension (`Spectrum.density`) is what noise spreads evenly.
An embedding is read alike: `spectrum(embedding, basis).power` has its columns in the place of neurons.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import torch
from torch import Tensor

from grokscope.measures.question import BLOCK_0, MOSTLY_CONSTANT, Columns, Measure, Question
from grokscope.measures.spectrum import mostly_varies
from grokscope.measures.weight_spectra import embedding_spectrum
from grokscope.shapes import Float

__all__ = ["ENTRIES", "Concentration", "gini", "inverse_participation_ratio", "spectral_entropy"]


@dataclass(frozen=True)
class Concentration:
    """One measure of concentration over modes, of each run."""

    neuron: Float[Tensor, "*runs neurons"]
    """Of each neuron; NaN for one that does not vary."""
    median: Float[Tensor, "*runs"]
    """The median over the neurons that vary; NaN where most do not."""
    pooled: Float[Tensor, "*runs"]
    """Of all neurons' power together: low where neurons are pure and do not agree; NaN as the median."""


def inverse_participation_ratio(power: Float[Tensor, "*runs modes neurons"]) -> Concentration:
    """IPR = Σ_k q_k², in [1/modes, 1]: 1/m for m equal modes, 1 for a single one.

    >>> inverse_participation_ratio(torch.tensor([[1.0, 1.0], [1.0, 0.0]])).neuron
    tensor([0.5000, 1.0000])
    """
    return _concentration(power, lambda shares: shares.square().sum(dim=-2))


def gini(power: Float[Tensor, "*runs modes neurons"]) -> Concentration:
    """G = Σ_i (2i − m − 1) q_(i) / m over the shares in ascending order, in [0, 1 − 1/m] for m modes: 0 for equal ones.

    It is half the mean of |q_k − q_l| over all pairs (k, l), in units of the mean share 1/m.

    >>> gini(torch.tensor([[1.0, 1.0], [1.0, 0.0]])).neuron
    tensor([0.0000, 0.5000])
    """
    modes = power.shape[-2]
    weights = (2 * torch.arange(1, modes + 1, device=power.device) - modes - 1).to(power.dtype) / modes
    return _concentration(power, lambda shares: (shares.sort(dim=-2).values * weights[:, None]).sum(dim=-2))


def spectral_entropy(power: Float[Tensor, "*runs modes neurons"]) -> Concentration:
    """H = −Σ_k q_k ln q_k / ln(modes), in [0, 1]: 1 for equal modes, 0 for a single one. Of one mode, undefined.

    >>> spectral_entropy(torch.tensor([[1.0, 1.0], [1.0, 0.0]])).neuron
    tensor([1., 0.])
    """
    largest = log(power.shape[-2]) or torch.nan
    return _concentration(power, lambda shares: torch.special.entr(shares).sum(dim=-2) / largest)


def _concentration(power: Tensor, of_shares: Callable[[Tensor], Tensor]) -> Concentration:
    neuron = of_shares(power / power.sum(dim=-2, keepdim=True))  # 0/0 is NaN: a neuron that does not vary
    together = power.sum(dim=-1, keepdim=True)
    pooled = of_shares(together / together.sum(dim=-2, keepdim=True))[..., 0]
    defined = mostly_varies(power)
    return Concentration(
        neuron, neuron.nanquantile(0.5, dim=-1).where(defined, torch.nan), pooled.where(defined, torch.nan)
    )


def _columns(question: Question) -> Columns:
    """Of the neurons, and of the embedding where there is one and the basis is one of its symbols."""
    kinds = {"ipr": inverse_participation_ratio, "gini": gini, "entropy": spectral_entropy}
    power = question.spectrum().power
    found = {name: of(power).median for name, of in kinds.items()}
    if question.has("weights") and question.has("answers") and "embed.W_E" in question.stack.weights:
        embedding = embedding_spectrum(question.stack, question.basis).power[..., None]
        found |= {f"embedding_{name}": of(embedding).pooled for name, of in kinds.items()}
    return found


ENTRIES = {
    "concentration": Measure(
        title="Alternatives to rank: inverse participation ratio, Gini, spectral entropy",
        formula="IPR = Σ q_k²; G = Σ_i (2i − m − 1) q_(i) / m; H = −Σ q_k ln q_k / ln m, of the shares q of m modes",
        source="standard; used on embeddings and neurons by work on grokking before the paper",
        cost=BLOCK_0 + "; the embedding costs nothing",
        null="white noise over m modes of dimension 2: IPR 2/(m + 1), G about 1/2, H about 1 − 0.42/ln m",
        undefined=MOSTLY_CONSTANT,
        columns={
            "{ipr,gini,entropy}": "median over the neurons that vary",
            "embedding_{ipr,gini,entropy}": "of the embedding's power over modes, where symbols are embedded",
        },
        compute=_columns,
    ),
}
