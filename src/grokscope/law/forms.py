"""The forms a timing law can take, each solved for many samples of cell means at once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.shapes import Float

__all__ = ["Form", "FormName", "Points", "named_form"]

FormName = Literal["mean", "inverse", "power", "offset", "first_passage"]

EXPONENTS = np.linspace(-2, 6, 161)  # where the free exponent is searched, before it is refined
REFINEMENTS = 40  # golden-section steps: 0.618⁴⁰ of a bracket of 0.1


@dataclass(frozen=True)
class Points:
    """What a law explains: one mean Δt for each cell, in any number of samples."""

    weight_decay: Float[np.ndarray, " cells"]
    """λ."""
    rate: Float[np.ndarray, " cells"]
    """ηλ."""
    steps: Float[np.ndarray, "*samples cells"]
    """Mean Δt; NaN where a sample has no run."""
    log_norm: Float[np.ndarray, "*samples cells"]
    """Mean log‖W(t*)‖; NaN where it was not measured."""


@dataclass(frozen=True)
class Form:
    """One form of the law."""

    parameters: tuple[str, ...]
    """Names of its free parameters."""
    solve: Callable[[Points], np.ndarray]
    """Their values, [*samples, parameters]; NaN where the cells do not determine them."""
    predict: Callable[[Points, np.ndarray], np.ndarray]
    """Δt of every cell under given parameters, [*samples, cells]."""


def named_form(name: str, known_threshold: float | None = None) -> Form:
    """A form by its name; a known τ leaves `first_passage` one free parameter instead of two."""
    if name not in get_args(FormName):
        raise InputError(f"there is no law {shown(name)}{did_you_mean(name, get_args(FormName))}")
    if known_threshold is not None and (name != "first_passage" or known_threshold <= 0):
        raise InputError(f"a threshold norm is for first_passage and positive, got {shown(known_threshold)} for {name}")
    return FORMS[name] if known_threshold is None else _first_passage_from(known_threshold)


def _mean_product(points: Points) -> np.ndarray:
    """C = mean(λᵢ Δtᵢ), the paper's estimator (§6): every cell has one vote, whatever the size of its Δt."""
    products = points.weight_decay * points.steps
    seen = ~np.isnan(products)
    with np.errstate(invalid="ignore"):
        return np.where(seen, products, 0).sum(axis=-1, keepdims=True) / seen.sum(axis=-1, keepdims=True)


def _linear(design: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Least squares of Δt on the design [*samples, cells, parameters], cells without Δt left out."""
    seen = ~np.isnan(steps)
    rows = np.where(seen[..., None], design, 0)
    if np.isnan(rows).any():
        raise InputError("first_passage needs norm_at_fork of every run that grokked")
    rows = np.broadcast_to(rows, (*steps.shape, design.shape[-1]))
    scale = np.sqrt((rows**2).sum(axis=-2, keepdims=True))
    scaled = rows / np.where(scale > 0, scale, 1)
    found = (np.linalg.pinv(scaled, rcond=1e-9) @ np.where(seen, steps, 0)[..., None])[..., 0]
    determined = np.linalg.matrix_rank(scaled, rtol=1e-9) == design.shape[-1]
    return np.where(determined[..., None], found / np.where(scale > 0, scale, np.nan)[..., 0, :], np.nan)


def _power(points: Points) -> np.ndarray:
    """Least squares of Δt on C λ^−α: for each α the best C is known, so only α is searched."""
    seen = ~np.isnan(points.steps)
    steps, logs = np.where(seen, points.steps, 0), np.log(points.weight_decay)

    def fitted(alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The best C for each sample's α, and its squared error."""
        waves = np.where(seen, np.exp(-alpha * logs), 0)
        constant = (waves * steps).sum(axis=-1, keepdims=True) / (waves**2).sum(axis=-1, keepdims=True)
        return constant, ((steps - constant * waves) ** 2).sum(axis=-1, keepdims=True)

    width = EXPONENTS[1] - EXPONENTS[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = np.stack([fitted(np.array([alpha]))[1] for alpha in EXPONENTS])
        best = EXPONENTS[errors.argmin(axis=0)]
        alpha = _golden(lambda at: fitted(at)[1], best - width, best + width)
        found = np.concatenate([fitted(alpha)[0], alpha], axis=-1)
    most, least = (np.where(seen, logs, edge) for edge in (-np.inf, np.inf))
    determined = most.max(axis=-1, keepdims=True) > least.min(axis=-1, keepdims=True)
    return np.where(determined, found, np.nan)


def _golden(error: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Where functions with one dip on [low, high] are least, all at once, by golden sections."""
    ratio = (np.sqrt(5) - 1) / 2
    for _ in range(REFINEMENTS):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        is_left = error(left) < error(right)
        low, high = np.where(is_left, low, left), np.where(is_left, right, high)
    return (low + high) / 2


def _first_passage(points: Points) -> np.ndarray:
    """κ and τ: Δt = (log‖W(t*)‖ − log τ)/(κηλ) is linear in 1/κ and log τ/κ; they differ only if ‖W(t*)‖ varies."""
    columns = np.stack([points.log_norm / points.rate, np.broadcast_to(-1 / points.rate, points.log_norm.shape)], -1)
    slope, product = np.moveaxis(_linear(columns, points.steps), -1, 0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.stack([1 / slope, np.exp(product / slope)], axis=-1)


def _passages(points: Points, efficiency: np.ndarray, threshold: np.ndarray | float) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return (points.log_norm - np.log(threshold)) / (efficiency * points.rate)


def _first_passage_from(threshold: float) -> Form:
    """First passage with τ known, as from the norms at grokking: only κ is free."""

    def solve(points: Points) -> np.ndarray:
        times = (points.log_norm - np.log(threshold)) / points.rate
        with np.errstate(divide="ignore"):
            return 1 / _linear(times[..., None], points.steps)

    return Form(("efficiency",), solve, lambda points, found: _passages(points, found[..., :1], threshold))


def _inverse_at(points: Points, found: np.ndarray) -> np.ndarray:
    return found[..., :1] / points.weight_decay


FORMS: dict[str, Form] = {
    # Δt = C/λ with C = mean(λΔt): the paper's (Tables 9 and 10).
    "mean": Form(("constant",), _mean_product, _inverse_at),
    # Δt = C/λ with C by least squares.
    "inverse": Form(("constant",), lambda points: _linear(1 / points.weight_decay[:, None], points.steps), _inverse_at),
    # Δt = C λ^−α.
    "power": Form(
        ("constant", "exponent"), _power, lambda points, found: found[..., :1] * points.weight_decay ** -found[..., 1:]
    ),
    # Δt = C/λ + d: the floor of which the paper sees a sign at λ = 5 (§6, iii).
    "offset": Form(
        ("constant", "offset"),
        lambda points: _linear(np.stack([1 / points.weight_decay, np.ones_like(points.rate)], -1), points.steps),
        lambda points, found: found[..., :1] / points.weight_decay + found[..., 1:],
    ),
    # Δt = log(‖W(t*)‖/τ)/(κηλ).
    "first_passage": Form(
        ("efficiency", "threshold_norm"),
        _first_passage,
        lambda points, found: _passages(points, found[..., :1], found[..., 1:]),
    ),
}
