"""What a measure gives where there is nothing to find, if neurons were independent: three nulls for any statistic.

Uniform frequencies (Algorithm 1), their exact counterpart, and Gaussian means. Neurons of a network are not
independent: what decides is in `surrogates`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from grokscope.errors import require
from grokscope.measures.spectrum import Spectrum
from grokscope.measures.synchronization import FsdResult, fsd
from grokscope.randomness import bits, uniform
from grokscope.shapes import Float
from grokscope.stats.multinomial import SIGNIFICANCE, critical_peak, peak_tail

__all__ = [
    "ExactTest",
    "NullSample",
    "Statistic",
    "exact_test",
    "fsd_of",
    "gaussian_null",
    "strongest_mode_chances",
    "uniform_null",
    "uniform_p_value",
]

Statistic = Callable[[Spectrum], Float[Tensor, "*runs"]]
"""What is compared with its null: a number for each run, made of its spectrum."""
TIE = 1e-6  # nearer values are equal: FSD moves in steps of 1/neurons, and may have been rounded to float32
WORDS_AT_ONCE = 2**22  # random words, or numbers of a surrogate: some 100 MB of intermediates


def fsd_of(waves: Spectrum) -> Float[Tensor, "*runs"]:
    """FSD of a spectrum."""
    return fsd(waves.density).fsd


@dataclass(frozen=True)
class NullSample:
    """A measure on draws from a null."""

    values: Float[Tensor, "*runs draws"]
    """One number for each draw; without run axes if the null is the same for all. NaN where it is undefined."""

    @property
    def mean(self) -> Float[Tensor, "*runs"]:
        """What to expect of nothing."""
        return self.values.nanmean(dim=-1)

    @property
    def band(self) -> tuple[Float[Tensor, "*runs"], Float[Tensor, "*runs"]]:
        """The null band: nine draws in ten lie between these two."""
        return self.quantile(0.05), self.quantile(0.95)

    def quantile(self, share: float) -> Float[Tensor, "*runs"]:
        """The value that this share of the draws does not exceed."""
        return self.values.nanquantile(share, dim=-1)

    def p_value(self, observed: Float[Tensor, "*observed"]) -> Float[Tensor, "*observed"]:
        """(1 + number of draws at least as large) / (1 + draws): never 0. NaN where anything is undefined.

        >>> NullSample(torch.tensor([0.1, 0.2, 0.3])).p_value(torch.tensor(0.2))
        tensor(0.7500)
        """
        reached = (self.values >= observed[..., None] - TIE).sum(dim=-1)
        draws = (~self.values.isnan()).sum(dim=-1)
        value = (1 + reached).to(observed.dtype) / (1 + draws)
        return value.where((draws > 0) & ~observed.isnan(), torch.nan)


def uniform_null(
    neurons: int, modes: int, resamples: int = 1000, seed: int = 0, device: torch.device | str = "cpu"
) -> NullSample:
    """FSD of neurons whose dominant frequency is drawn uniformly. Paper: Algorithm 1, lines 7–10.

    The text's own test, shuffling the assignment across neurons, leaves participation as it is: its p-value is 1.
    Right for independent neurons on odd Z_n alone; elsewhere modes of small dimension win more often.

    >>> null = uniform_null(neurons=512, modes=48)
    >>> round(float(null.values.max()), 2)  # independent neurons seldom agree
    0.03
    """
    draws = torch.arange(resamples, device=device)
    chosen = bits(torch.full_like(draws, seed), "null", draws, neurons).remainder(modes)
    votes = torch.stack([(chosen == mode).sum(dim=-1) for mode in range(modes)], dim=-1)
    peak = votes.amax(dim=-1).double() / neurons
    return NullSample((peak - 1 / modes) / (1 - 1 / modes))


def uniform_p_value(found: FsdResult, resamples: int = 1000, seed: int = 0) -> Float[Tensor, "*runs"]:
    """Algorithm 1's p-value with p = (1 + count)/(1 + B), each run against as many neurons as vote in it.

    >>> from grokscope.measures import fsd
    >>> agreeing = fsd(torch.eye(4)[:, [0] * 64])  # 64 neurons, one frequency of four
    >>> uniform_p_value(agreeing, resamples=999)
    tensor(0.0010)
    """
    _require_argmax(found)
    value = torch.full_like(found.fsd, torch.nan)
    for neurons in sorted(set(found.responding.flatten().tolist())):
        if neurons:
            null = uniform_null(neurons, found.participation.shape[-1], resamples, seed, value.device)
            value = null.p_value(found.fsd).where(found.responding == neurons, value)
    return value


@dataclass(frozen=True)
class ExactTest:
    """The exact counterpart of Algorithm 1's resampling, for each run."""

    p_value: Float[Tensor, "*runs"]
    """P(peak ≥ observed) under the null; 0 below 1e-308."""
    randomized: Float[Tensor, "*runs"]
    """P(peak > observed) + u P(peak = observed) with u uniform: uniform in (0, 1) under the null."""
    attained_size: Float[Tensor, "*runs"]
    """How often `p_value` is at most the significance under the null: less than that, for counts jump."""


def exact_test(
    found: FsdResult, chances: tuple[float, ...] = (), significance: float = SIGNIFICANCE, seed: int = 0
) -> ExactTest:
    """FSD against independent neurons that choose each mode with its chance: all alike, unless others are given.

    With `strongest_mode_chances` it is the exact Gaussian null of FSD_gen at K = 1.

    >>> from grokscope.measures import fsd
    >>> bool(exact_test(fsd(torch.eye(4)[:, [0] * 64])).p_value < 1e-30)
    True
    """
    _require_argmax(found)
    modes = found.participation.shape[-1]
    chances = chances or (1 / modes,) * modes
    tails = torch.full((3, found.fsd.numel()), torch.nan, dtype=torch.float64)
    for run in (~found.fsd.isnan()).flatten().nonzero().flatten().tolist():
        peak, neurons = (int(count.flatten()[run]) for count in (found.peak, found.responding))
        for i, x in enumerate((peak, peak + 1, critical_peak(neurons, chances, significance))):
            tails[i, run] = peak_tail(x, neurons, chances)
    reached, passed, size = tails.view(3, *found.fsd.shape).to(found.fsd.device)
    u = uniform(torch.tensor(seed), "null", torch.tensor(0), tails.shape[1]).view_as(reached).to(reached.device)
    return ExactTest(reached, passed + u * (reached - passed), size)


def _require_argmax(found: FsdResult) -> None:
    require(found.top_k == 1, f"votes are independent only where each neuron has one, got top_k {found.top_k}")


def gaussian_null(
    dimensions: Float[Tensor, " modes"],
    neurons: int,
    statistic: Statistic = fsd_of,
    resamples: int = 1000,
    seed: int = 0,
) -> NullSample:
    """A statistic of independent Gaussian answer means. Paper: §7, "i.i.d. Gaussian-activation null".

    White noise has independent powers, χ² with each mode's dimension, whatever the group: these are drawn, not means.
    It supposes that every answer has equally many pairs, and independent neurons.

    >>> null = gaussian_null(torch.full((48,), 2.0), neurons=512)
    >>> round(float(null.values.max()), 2)
    0.03
    """
    odd = (dimensions % 2 == 1).nonzero().flatten()
    halves = ((dimensions + 1) // 2).long()
    pieces, last = int(halves.sum()), halves.cumsum(0)[odd] - 1
    words = (pieces + len(odd)) * neurons
    found = []
    for draws in torch.split(torch.arange(resamples, device=halves.device), max(1, WORDS_AT_ONCE // words)):
        drawn = uniform(torch.full_like(draws, seed), "null", draws, words).view(len(draws), -1, neurons)
        # χ² of even dimension is a sum of −2 ln u; of one dimension −2 ln u · cos² 2πv (Box and Muller).
        parts = -2 * drawn[:, :pieces].log()
        parts[:, last] *= (2 * torch.pi * drawn[:, pieces:]).cos().square()
        power = torch.stack([part.sum(dim=1) for part in torch.split(parts, halves.tolist(), dim=1)], dim=1)
        found.append(statistic(Spectrum(power, dimensions, torch.zeros_like(power[:, 0], dtype=torch.bool))))
    return NullSample(torch.cat(found))


@lru_cache(maxsize=64)
def strongest_mode_chances(dimensions: tuple[int, ...]) -> tuple[float, ...]:
    """q_k = P(χ²_k/d_k is the largest) = ∫ f_k Π_{l≠k} F_l: how often noise makes each mode a neuron's strongest.

    >>> [round(q, 3) for q in strongest_mode_chances((1, 16, 16, 25, 25, 36))]  # S5: the sign wins too often
    [0.246, 0.171, 0.171, 0.144, 0.144, 0.124]
    """
    nodes, weights = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(64))
    edges = torch.linspace(0, 9, 65, dtype=torch.float64)[:, None]  # χ²₁ passes 81 with chance 2e-19
    width = edges[1] - edges[0]
    t = (edges[:-1] + width * (1 + nodes) / 2).flatten()  # x = t², in which χ²₁ has no pole
    d = torch.tensor(dimensions, dtype=torch.float64)[:, None]
    x = t.square()
    log_density = d / 2 * (d / 2).log() + (d / 2 - 1) * x.log() - d * x / 2 - (d / 2).lgamma()
    log_below = torch.special.gammainc(d / 2, d * x / 2).log()
    others = (log_below.sum(dim=0) - log_below).nan_to_num(nan=-torch.inf)  # F_k = 0 to the last digit: so is f_k
    q = ((log_density + others).exp() * 2 * t * (weights.repeat(64) * width / 2)).sum(dim=-1)
    return tuple((q / q.sum()).tolist())
