"""The norm at which runs grok, and how fast it falls.

>>> found = norm_decay([0, 1000, 2000], [50.0, 40.0, 32.0], weight_decay=1.0)
>>> round(found.rate, 6), round(found.efficiency, 2)
(0.000223, 0.22)
"""

from dataclasses import dataclass
from math import log

import numpy as np

from grokscope.errors import InputError
from grokscope.stats import Estimate, estimate_mean
from grokscope.stats.numbers import Numbers, column, same_length

__all__ = ["NormDecay", "ThresholdNorm", "first_passage_steps", "norm_decay", "threshold_norm"]


def first_passage_steps(
    norm: float, threshold_norm: float, weight_decay: float, learning_rate: float = 1e-3, efficiency: float = 1.0
) -> float:
    """Δt = log(‖W(t*)‖/τ)/(κηλ): how long a norm that decays at the rate κηλ takes to reach τ. Paper: Eq. 3.

    The paper writes e^{−λt}; AdamW multiplies by 1 − ηλ each step, hence η. κ = 1 is decay alone, without gradients.

    >>> round(first_passage_steps(51.93, 23.5, weight_decay=1.0, efficiency=0.22))
    3604
    """
    for name, value in (("norm", norm), ("threshold_norm", threshold_norm), ("efficiency", efficiency)):
        if not value > 0:
            raise InputError(f"{name} must be positive, got {value}")
    if not weight_decay * learning_rate > 0:
        raise InputError(f"without weight decay no norm decays, got λ = {weight_decay} and η = {learning_rate}")
    return log(norm / threshold_norm) / (efficiency * learning_rate * weight_decay)


@dataclass(frozen=True)
class ThresholdNorm:
    """How alike the norms are at which runs grok."""

    mean: Estimate
    """τ, their mean, with its t interval."""
    variation: float
    """Coefficient of variation: standard deviation (of the population, as the paper's are) over mean."""


def threshold_norm(norms: Numbers) -> ThresholdNorm:
    """τ and its coefficient of variation from the norms at grokking. Paper: §6, 23.5 and 0.13 across λ.

    That they are alike shows no cause: a norm that collapses while a run groks is alike afterwards too.

    >>> threshold_norm([20.0, 30.0]).variation
    0.2
    """
    found = column(norms, "norms")
    if len(found) == 0 or found.min() <= 0:
        raise InputError("norms must be positive, and at least one")
    return ThresholdNorm(estimate_mean(found), float(found.std() / found.mean()))


@dataclass(frozen=True)
class NormDecay:
    """How fast a norm falls."""

    rate: float
    """−slope of log‖W‖ against steps by least squares; positive where it falls."""
    r_squared: float
    """How straight that line is; NaN for a norm that does not change."""
    efficiency: float
    """κ = rate/(ηλ), the share of pure decay that gradients leave; the paper sees about 0.2."""


def norm_decay(steps: Numbers, norms: Numbers, weight_decay: float, learning_rate: float = 1e-3) -> NormDecay:
    """Log-linear decay of the norm along a fork, against ηλ. Paper: §6 (i) and Figure 7b.

    The rows are the caller's choice: the paper says "along each fork", which is from the fork to grokking.
    """
    at, logs = column(steps, "steps"), np.log(column(norms, "norms"))
    same_length(steps=at, norms=logs)
    if len(at) < 2 or np.ptp(at) == 0:
        raise InputError(f"a rate needs norms at two steps, got {len(at)}")
    around, offsets = at - at.mean(), logs - logs.mean()
    slope = float((around * offsets).sum() / (around**2).sum())
    total = float((offsets**2).sum())
    r_squared = 1 - float(((offsets - slope * around) ** 2).sum()) / total if total > 0 else float("nan")
    return NormDecay(-slope, r_squared, -slope / (learning_rate * weight_decay))
