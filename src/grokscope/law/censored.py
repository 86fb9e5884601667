"""Timing laws by maximum likelihood, from runs whose Δt is known only to an interval or to be longer.

>>> from grokscope.timeline import Outcome
>>> times = {1: 3500, 2: 2000, 3: 1000}  # Δt by λ, evaluated every 500 steps
>>> runs = [ForkedRun(decay, time, Outcome.GROKKED, 500, 15000) for decay, time in times.items()]
>>> round(fit_censored(runs).parameters["constant"].value)
3030
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import Literal

import numpy as np
import scipy.optimize

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.law.newton import interval_log_likelihoods, most_likely_lines
from grokscope.law.runs import Ending, ForkedRun, in_order
from grokscope.shapes import Float
from grokscope.stats import Estimate, jackknife

__all__ = ["CensoredFit", "CensoredForm", "constants_met", "fit_censored"]

CensoredForm = Literal["inverse", "power", "offset"]
LEAST_SPREAD = 1e-3  # where every interval can be met at once, the likelihood rises as σ falls without end

# log of the median Δt, from log λ and the parameters (log C and what else the form has)
MEDIANS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "inverse": lambda logs, found: found[0] - logs,
    "power": lambda logs, found: found[0] - found[1] * logs,
    "offset": lambda logs, found: _log(np.exp(found[0] - logs) + found[1]),
}
PARAMETERS = {"inverse": ("constant",), "power": ("constant", "exponent"), "offset": ("constant", "offset")}


@dataclass(frozen=True)
class CensoredFit:
    """A law with log-normal scatter around it."""

    form: CensoredForm
    """Which law gives the median Δt."""
    parameters: dict[str, Estimate]
    """Its parameters, with intervals over seeds."""
    spread: float
    """σ of log Δt around the law; at its floor of 0.001 the law meets every interval, and may not be the only one."""
    log_likelihood: float
    """Of the intervals seen."""
    aic: float
    """2(parameters + 1) − 2 log-likelihood; to be compared among censored fits of the same runs only."""
    endings: dict[Ending, int]
    """Runs by whether they grokked; the first two kinds are in the fit."""

    def predict(self, weight_decay: float | int) -> float:
        """Median Δt at any λ."""
        found = np.array([estimate.value for estimate in self.parameters.values()])
        found[0] = np.log(found[0])
        return float(np.exp(MEDIANS[self.form](np.log(np.array([weight_decay])), found)[0]))


@dataclass(frozen=True)
class _Times:
    """The runs in the fit, as columns."""

    logs: Float[np.ndarray, " runs"]
    """log λ."""
    after: Float[np.ndarray, " runs"]
    """log of the last Δt at which it had not grokked; −∞ for none."""
    until: Float[np.ndarray, " runs"]
    """log of the first at which it had; ∞ for none."""


def fit_censored(runs: Sequence[ForkedRun], form: CensoredForm = "inverse", *, level: float = 0.95) -> CensoredFit:
    """Maximum likelihood of log Δt ~ N(log of the law, σ²), intervals between evaluations and budgets accounted for.

    A run seen grokked at Δt with cadence c counts as Φ over (Δt − c, Δt]; a stable run that had not grokked as the
    chance to take longer. Failed runs, a competing event, and those grokked before the fork stay out. Forms as in
    `fit_law`; the fit is to runs, not to cell means. Intervals leave out one seed at a time with all its forks, within
    its task; C's is that of its logarithm. `offset` is no line, is searched once and has none.
    """
    if form not in MEDIANS:
        raise InputError(f"there is no censored law {shown(form)}{did_you_mean(form, MEDIANS)}")
    fitted = in_order(run for run in runs if run.ending in (Ending.GROKKED, Ending.CENSORED))
    times = _times(fitted)
    once = np.ones((1, len(fitted)))
    if not _determined(form, times, once[0]):
        raise InputError(f"{form} needs {len(PARAMETERS[form])} values of λ at which runs grokked")
    draws = list(dict.fromkeys((run.task, run.draw) for run in fitted))
    of_run = [draws.index((run.task, run.draw)) for run in fitted]
    others = (1 - np.eye(len(draws)))[:, of_run] if form != "offset" else np.full((len(draws), len(fitted)), nan)
    found = _natural(_maxima(form, times, np.concatenate([once, others])))
    tasks = [task for task, _ in draws]
    log_likelihood = _log_likelihood(form, times, found[0])
    return CensoredFit(
        form=form,
        parameters={
            name: jackknife(float(column[0]), column[1:], tasks, is_log=name == "constant", level=level)
            for name, column in zip(PARAMETERS[form], found[:, 1:].T, strict=True)
        },
        spread=float(found[0, 0]),
        log_likelihood=log_likelihood,
        aic=2 * found.shape[1] - 2 * log_likelihood,
        endings={ending: sum(run.ending is ending for run in runs) for ending in Ending},
    )


def constants_met(runs: Sequence[ForkedRun]) -> tuple[float, float] | None:
    """The constants (low, high] with which Δt = C/λ meets every run's interval; None if no constant does.

    λ(Δt − c) < C ≤ λΔt for a run seen grokked at Δt with cadence c, and λ·watched < C for one that had not grokked.
    Table 9, evaluated every 500 steps, is met by every C in (2,500, 3,000], and not by the paper's 3,600.

    >>> from grokscope.timeline import Outcome
    >>> times = {1: 3000, 2: 1500, 3: 1000}  # Δt by λ, evaluated every 500 steps
    >>> runs = [ForkedRun(decay, time, Outcome.GROKKED, 500, 15000) for decay, time in times.items()]
    >>> low, high = constants_met(runs)
    >>> round(low), round(high)
    (2500, 3000)
    """
    times = _times([run for run in runs if run.ending in (Ending.GROKKED, Ending.CENSORED)])
    low = float(np.exp(times.after + times.logs).max(initial=0))
    high = float(np.exp(times.until + times.logs).min(initial=np.inf))
    return (low, high) if low < high else None


def _log(values: np.ndarray) -> np.ndarray:
    """The logarithm, NaN where there is none."""
    return np.log(np.where(values > 0, values, nan))


def _natural(found: np.ndarray) -> np.ndarray:
    """(σ, C, …) from rows of (log σ, log C, …)."""
    return np.concatenate([np.exp(found[:, :2]), found[:, 2:]], axis=1)


def _times(runs: Sequence[ForkedRun]) -> _Times:
    grokked = np.array([run.ending is Ending.GROKKED for run in runs], dtype=bool)
    until = np.array([run.steps_to_grok if run.steps_to_grok is not None else np.inf for run in runs])
    watched, cadence = (np.array([getattr(run, name) for run in runs], dtype=float) for name in ("watched", "cadence"))
    after = np.where(grokked, until - cadence, watched)
    with np.errstate(divide="ignore"):  # the first evaluation after a fork: it grokked somewhere since the fork
        return _Times(np.log([run.weight_decay for run in runs]), np.log(np.maximum(after, 0)), np.log(until))


def _determined(form: CensoredForm, times: _Times, weights: np.ndarray) -> bool:
    seen = np.isfinite(times.until) & (weights > 0)
    return len(np.unique(times.logs[seen])) >= len(PARAMETERS[form])


def _guess(form: CensoredForm, times: _Times) -> np.ndarray:
    """(log σ, log C, …) to start from: the grokked runs taken at their evaluations."""
    seen = np.isfinite(times.until)
    products = times.until[seen] + times.logs[seen]
    spread = np.log(max(float(products.std()), 0.05))
    return np.array([spread, products.mean(), *{"inverse": [], "power": [1.0], "offset": [0.0]}[form]])


def _log_likelihood(form: CensoredForm, times: _Times, found: np.ndarray, weights: np.ndarray | float = 1.0) -> float:
    """Of (σ, C, …); NaN where the law gives no time."""
    medians = MEDIANS[form](times.logs, np.array([np.log(found[1]), *found[2:]]))
    ends = ((end - medians) / found[0] for end in (times.after, times.until))
    return float((weights * interval_log_likelihoods(*ends)).sum())


def _maxima(form: CensoredForm, times: _Times, weights: np.ndarray) -> np.ndarray:
    """The most likely (log σ, log C, …) under each weighting of the runs; NaN where it does not determine the law."""
    start = _guess(form, times)
    found = np.full((len(weights), len(start)), nan)
    if form != "offset":  # a line in log λ: all at once
        ones = np.ones_like(times.logs)
        design, shift = (ones[:, None], times.logs) if form == "inverse" else (np.stack([ones, -times.logs], -1), 0)
        begun = np.array([np.exp(start[0]), *start[1:]])
        found[:] = most_likely_lines(design, times.after + shift, times.until + shift, weights, begun)
        found[:, 0] = np.log(np.where(found[:, 0] > LEAST_SPREAD, found[:, 0], nan))
        found[np.isnan(found[:, 0])] = nan
    for row, weight in zip(found, weights, strict=True):
        if np.isnan(weight).any() or not _determined(form, times, weight):
            row[:] = nan
        elif np.isnan(row).any():
            row[:] = _searched_maximum(form, times, weight, start)
    return found


def _searched_maximum(form: CensoredForm, times: _Times, weights: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The most likely (log σ, log C, …) where it is at the floor of σ, or the law is no line."""
    # The offset is searched in units of a typical Δt, so that one step size suits all parameters.
    units = np.ones_like(start)
    if form == "offset":
        units[2] = np.exp(times.until[np.isfinite(times.until)].mean())

    def cost(scaled: np.ndarray) -> float:
        value = -_log_likelihood(form, times, _natural((scaled * units)[None])[0], weights)
        return value if np.isfinite(value) else np.inf

    bounds = [(np.log(LEAST_SPREAD), None)] + [(None, None)] * (len(start) - 1)
    options = {"xatol": 1e-7, "fatol": 1e-9, "maxiter": 4000, "maxfev": 4000}
    best = start / units
    for _ in range(2):  # begun again from where it ended, a collapsed simplex cannot pass for a maximum
        best = scipy.optimize.minimize(cost, best, method="Nelder-Mead", bounds=bounds, options=options).x
    return best * units
