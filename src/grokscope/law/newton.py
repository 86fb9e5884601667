"""The most likely line through intervals, for many weightings of them at once."""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from grokscope.shapes import Float

__all__ = ["interval_log_likelihoods", "most_likely_lines"]

STEPS = 60
HALVINGS = 30
LOG_ROOT_TWO_PI = np.log(2 * np.pi) / 2
DECREMENT = 1e-9  # of twice the log-likelihood still to be gained: far below what an interval's digits show


def interval_log_likelihoods(a: Float[np.ndarray, "*shape"], b: Float[np.ndarray, "*shape"]) -> np.ndarray:
    """log(Φ(b) − Φ(a)), without cancellation in the tails; NaN where an end is no number."""
    flip = a > 0  # Φ(b) − Φ(a) = Φ(−a) − Φ(−b), the latter exact where both are near 1
    low, high = log_ndtr(np.where(flip, -b, a)), log_ndtr(np.where(flip, -a, b))
    with np.errstate(divide="ignore", invalid="ignore"):
        return high + np.log1p(-np.exp(low - high))


def most_likely_lines(
    design: Float[np.ndarray, "runs columns"],
    after: Float[np.ndarray, " runs"],
    until: Float[np.ndarray, " runs"],
    weights: Float[np.ndarray, "samples runs"],
    start: Float[np.ndarray, " parameters"],
) -> Float[np.ndarray, "samples parameters"]:
    """(σ, coefficients) that make y ~ N(design · coefficients, σ²) most likely to lie in (after, until], by sample.

    In h = 1/σ and γ = coefficients/σ both ends of every interval are linear, and log(Φ(b) − Φ(a)) is concave in them
    (Olsen, 1978; Prékopa, 1973): Newton's steps, halved until they gain, end at the one maximum. NaN where they do not
    end, as where σ wants to be 0.
    """
    ends = _End.of(design, after), _End.of(design, until)
    found = np.broadcast_to(np.array([1, *start[1:]]) / start[0], (len(weights), len(start))).copy()
    value, step, is_done = _newton(ends, weights, found)
    for _ in range(STEPS):
        if is_done.all():
            break
        size = np.where(is_done, 0.0, 1.0)[:, None]
        for _ in range(HALVINGS):
            worse = ~(_total(ends, weights, found + size * step) >= value)
            if not worse.any():
                break
            size[worse] /= 2
        found = found + np.where(worse[:, None], 0, size * step)
        value, step, is_done = _newton(ends, weights, found)
    natural = np.column_stack([1 / found[:, 0], found[:, 1:] / found[:, :1]])
    return np.where(is_done[:, None], natural, np.nan)


@dataclass(frozen=True)
class _End:
    """One end of every interval, linear in (h, γ)."""

    rows: Float[np.ndarray, "runs parameters"]
    """What each run's end is made of; 0 in place of an infinite one."""
    squares: Float[np.ndarray, "runs squares"]
    """Products of its parts, two by two."""
    fixed: Float[np.ndarray, " runs"]
    """±∞ for an end that is; else 0."""

    @classmethod
    def of(cls, design: np.ndarray, at: np.ndarray) -> "_End":
        infinite = np.isinf(at)
        rows = np.column_stack([np.where(infinite, 0, at), -design])
        return cls(rows, (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1), np.where(infinite, at, 0))

    def at(self, found: np.ndarray) -> np.ndarray:
        return found @ self.rows.T + self.fixed


def _total(ends: tuple[_End, _End], weights: np.ndarray, found: np.ndarray) -> np.ndarray:
    """The log-likelihood of each sample; −∞ where σ is not positive."""
    values = (weights * interval_log_likelihoods(*(end.at(found) for end in ends))).sum(axis=1)
    return np.where((found[:, 0] > 0) & ~np.isnan(values), values, -np.inf)


def _newton(
    ends: tuple[_End, _End], weights: np.ndarray, found: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The log-likelihood, Newton's step, and whether nothing is left to gain, of each sample; no step without one."""
    low, high = ends
    a, b = low.at(found), high.at(found)
    logs = interval_log_likelihoods(a, b)
    with np.errstate(over="ignore", invalid="ignore"):  # where σ falls to 0
        at_a, at_b = (np.exp(-(x**2) / 2 - LOG_ROOT_TWO_PI - logs) for x in (a, b))  # φ/(Φ(b) − Φ(a))
        finite_a, finite_b = (np.where(np.isinf(x), 0, x) for x in (a, b))
        slope = (weights * at_b) @ high.rows - (weights * at_a) @ low.rows
        cross = np.einsum("sr,ri,rj->sij", weights * at_a * at_b, low.rows, high.rows)
        shape = (len(found), found.shape[1], found.shape[1])
        curvature = (weights * (finite_a - at_a) * at_a) @ low.squares - (
            weights * (finite_b + at_b) * at_b
        ) @ high.squares
        curvature = curvature.reshape(shape) + cross + cross.transpose(0, 2, 1)
    known = np.isfinite(curvature).all(axis=(1, 2)) & np.isfinite(slope).all(axis=1)
    curvature[~known], slope[~known] = 0, 0
    step = -(np.linalg.pinv(curvature, hermitian=True) @ slope[..., None])[..., 0]
    return (weights * logs).sum(axis=1), step, known & ((slope * step).sum(axis=1) < DECREMENT)
