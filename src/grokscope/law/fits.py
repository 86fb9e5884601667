"""Timing laws fitted to cell means, with intervals over seeds and errors out of sample.

>>> from grokscope.timeline import Outcome
>>> times = {1: 3500, 2: 2000, 3: 1000}  # Δt by λ, evaluated every 500 steps
>>> runs = [ForkedRun(decay, time, Outcome.GROKKED, 500, 15000) for decay, time in times.items()]
>>> fit = fit_law(runs, "mean")
>>> round(fit.parameters["constant"].value), round(fit.r_squared, 2)
(3500, 0.97)
>>> {seed: round(one.parameters["constant"].value) for (task, seed), one in fit_each_draw(runs).items()}
{0: 3500}
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, nan

import numpy as np

from grokscope.errors import InputError
from grokscope.law.forms import Form, FormName, Points, named_form
from grokscope.law.runs import Cells, Draw, ForkedRun, cells_of
from grokscope.shapes import Float
from grokscope.stats import Estimate, jackknife

__all__ = ["LawFit", "fit_each_draw", "fit_law"]


@dataclass(frozen=True)
class LawFit:
    """A law, as fitted to the mean Δt of each cell."""

    form: FormName
    """Which law."""
    parameters: dict[str, Estimate]
    """Its free parameters, with intervals over seeds: constant C, exponent α, offset d, efficiency κ, τ."""
    r_squared: float
    """1 − Σ(Δt − fit)²/Σ(Δt − mean)² over cells, as the paper's (Tables 9 and 10); NaN where Δt does not vary."""
    aic: float
    """n log(SSE/n) + 2(parameters + 1) over the n cells, Gaussian errors; −∞ where every cell is met."""
    left_out_error: float
    """Mean over cells of |Δt − fit to the other cells|/Δt; NaN where the others do not determine the law."""
    tasks: tuple[str, ...]
    """Task of each cell."""
    weight_decay: Float[np.ndarray, " cells"]
    """λ of each cell."""
    observed: Float[np.ndarray, " cells"]
    """Mean Δt of each cell's grokked runs."""
    predicted: Float[np.ndarray, " cells"]
    """What the law says."""
    threshold_norm: float | None = None
    """τ where it was given."""

    def predict(self, weight_decay: float | int, norm: float = nan, learning_rate: float = 1e-3) -> float:
        """Δt at any λ; first passage needs the norm at the fork too."""
        one = np.array([weight_decay])
        points = Points(one, one * learning_rate, np.array([nan]), np.log(np.array([norm])))
        values = np.array([estimate.value for estimate in self.parameters.values()])
        return float(named_form(self.form, self.threshold_norm).predict(points, values)[0])


def fit_law(
    runs: Sequence[ForkedRun],
    form: FormName = "inverse",
    *,
    threshold_norm: float | None = None,
    level: float = 0.95,
) -> LawFit:
    """Least squares of one form on the mean Δt of each (task, η, λ). Paper: §6, Eq. 3, Tables 9 and 10.

    `mean`: Δt = C/λ, C = mean(λΔt), the paper's estimator; `inverse`: the same by least squares; `power`: C λ^−α;
    `offset`: C/λ + d; `first_passage`: log(‖W(t*)‖/τ)/(κηλ) with τ given or fitted. Eq. 3 writes the decay as e^{−λt};
    AdamW's is e^{−ηλt}, and gradients oppose it: κ is the share that is left. Runs that never grokked are not in the
    fit (`fit_censored` uses those that may yet; `outcomes_by_decay` counts those that failed). Intervals leave out one
    seed at a time with all its forks, and are of what these means estimate: a mean over evaluations is later than Δt.
    """
    chosen, cells = named_form(form, threshold_norm), cells_of(runs)
    points = _points(cells, np.ones(len(cells.draws)))
    values = chosen.solve(points)
    if np.isnan(values).any():
        raise InputError(
            f"{form} has {len(chosen.parameters)} parameters, which {len(cells.tasks)} cells do not determine"
        )
    left_out = chosen.solve(_points(cells, 1 - np.eye(len(cells.draws))))
    predicted = chosen.predict(points, values)
    size, misses = len(predicted), float(((points.steps - predicted) ** 2).sum())
    around_mean = float(((points.steps - points.steps.mean()) ** 2).sum())
    parameters = {
        name: jackknife(value, left_out[:, i], [task for task, _ in cells.draws], level=level)
        for i, (name, value) in enumerate(zip(chosen.parameters, values.tolist(), strict=True))
    }
    return LawFit(
        form=form,
        parameters=parameters,
        r_squared=1 - misses / around_mean if around_mean > 0 else nan,
        aic=(size * log(misses / size) if misses > 0 else -np.inf) + 2 * (len(values) + 1),
        left_out_error=_left_out_error(chosen, points),
        tasks=cells.tasks,
        weight_decay=cells.weight_decay,
        observed=points.steps,
        predicted=predicted,
        threshold_norm=threshold_norm,
    )


def fit_each_draw(runs: Sequence[ForkedRun]) -> dict[Draw, LawFit]:
    """C = mean(λΔt) of each seed alone, by task and seed: the paper's "per-draw R²" (Table 10). No intervals."""
    draws = cells_of(runs).draws
    members = {key: [run for run in runs if (run.task, run.draw) == key] for key in draws}
    return {key: fit_law(group, "mean") for key, group in members.items()}


def _points(cells: Cells, weights: Float[np.ndarray, "*samples draws"]) -> Points:
    """Cell means under a weighting of seeds; NaN where no weight falls on a cell."""
    with np.errstate(invalid="ignore"):
        steps, log_norm = ((weights @ sums) / (weights @ cells.counts) for sums in (cells.steps, cells.log_norm))
    return Points(cells.weight_decay, cells.rate, steps, log_norm)


def _left_out_error(form: Form, points: Points) -> float:
    size = len(points.steps)
    others = np.where(np.eye(size, dtype=bool), nan, points.steps)
    without = Points(points.weight_decay, points.rate, others, np.broadcast_to(points.log_norm, (size, size)))
    predicted = np.diagonal(form.predict(without, form.solve(without)))
    return float((np.abs(points.steps - predicted) / points.steps).mean())
