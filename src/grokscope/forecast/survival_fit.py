"""Fit a log-logistic time with a share that never comes, by penalised maximum likelihood.

With features x, T the steps left: log T = x·β + σε, ε logistic, for the share π of runs that grok at all,
    S(s | x) = 1 − π + π / (1 + (s / e^{x·β})^{1/σ}),    π = 1/(1 + e^{−x·γ}),    σ = e^{x·δ}.
A run that has not grokked at its end adds log S, one that has the density. β, γ and δ without their first entries, the
constants, are drawn to 0 by a ridge.
"""

from dataclasses import dataclass

import numpy as np

from grokscope.shapes import Bool, Float

__all__ = ["SurvivalFit", "fit_survival"]


@dataclass(frozen=True)
class SurvivalFit:
    """Coefficients, each with the constant first."""

    time: Float[np.ndarray, " features"]
    """β: of the log of the steps left."""
    grokking: Float[np.ndarray, " features"]
    """γ: of the log odds of grokking at all."""
    spread: Float[np.ndarray, " features"]
    """δ: of the log of σ."""

    def survival(
        self, features: Float[np.ndarray, "runs signals"], left: Float[np.ndarray, " left"]
    ) -> Float[np.ndarray, "runs left"]:
        """S(s | x) for each run at each number of steps left.

        >>> fit = SurvivalFit(np.array([np.log(1000)]), np.array([50.0]), np.array([0.0]))
        >>> fit.survival(np.zeros((1, 0)), np.array([0.0, 1000.0])).tolist()
        [[1.0, 0.5]]
        """
        from scipy.special import expit  # here, so that reading a forecaster does not load scipy

        x = np.column_stack([np.ones(len(features)), features])
        share, sigma = expit(x @ self.grokking)[:, None], np.exp(np.clip(x @ self.spread, -3, 2))[:, None]
        logs = np.log(np.maximum(left, 1e-9))[None] - (x @ self.time)[:, None]
        return np.where(left > 0, 1 - share * expit(logs / sigma), 1.0)


def fit_survival(
    features: Float[np.ndarray, "rows signals"],
    left: Float[np.ndarray, " rows"],
    came: Bool[np.ndarray, " rows"],
    weights: Float[np.ndarray, " rows"],
    ridge: float = 10.0,
) -> SurvivalFit:
    """The coefficients that make the weighted rows most likely; `left` is the time, or how long it did not come.

    >>> rng = np.random.default_rng(0)
    >>> times = np.exp(7 + 0.3 * rng.logistic(size=2000))
    >>> found = fit_survival(np.zeros((2000, 0)), times, np.ones(2000, bool), np.ones(2000))
    >>> np.round([found.time[0], np.exp(found.spread[0])], 1).tolist()
    [7.0, 0.3]
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    x = np.column_stack([np.ones(len(features)), features])
    logs, size = np.log(np.maximum(left, 1.0)), x.shape[1]
    penalty = np.concatenate([[0.0], np.full(size - 1, ridge)])
    penalties = np.concatenate([penalty, penalty + 0.1, penalty * 3])

    def loss(parameters: Float[np.ndarray, " all"]) -> tuple[float, Float[np.ndarray, " all"]]:
        beta, gamma, delta = np.split(parameters, 3)
        log_sigma = x @ delta
        z = (logs - x @ beta) / np.exp(log_sigma)
        odds = x @ gamma
        log_share, log_rest = -np.logaddexp(0, -odds), -np.logaddexp(0, odds)
        log_later = -np.logaddexp(0, z)  # log P(later | it groks)
        log_never = np.logaddexp(log_rest, log_share + log_later)
        likelihood = np.where(came, log_share + z - log_sigma + 2 * log_later, log_never)
        later = np.exp(log_share + log_later - log_never)  # P(it groks | not yet), where it has not come
        by_z = np.where(came, 1 - 2 * expit(z), -later * expit(z))
        by_odds = np.where(came, expit(-odds), later - expit(odds))
        parts = (-by_z / np.exp(log_sigma), by_odds, -by_z * z - came)
        gradient = np.concatenate([x.T @ (weights * part) for part in parts])
        value = float(weights @ likelihood) - 0.5 * float(penalties @ parameters**2)
        return -value, penalties * parameters - gradient

    begin = np.zeros(3 * size)
    begin[0], begin[2 * size] = np.average(logs, weights=weights), -0.7
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": 250})
    return SurvivalFit(*np.split(found.x, 3))
