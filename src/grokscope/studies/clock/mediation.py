"""Does the norm act through the scale of the logits? arXiv 2606.18465, by forks of one state.

Reported, of the MLP with cross-entropy: at ρ = 1.15 the output temperature that gives the logits the scale that they
have at ρ = 1 takes back 0.83 of the delay at p = 59; over cells of (ρ, temperature) the scale of the logits explains
97 % of the variance of ln T, and ρ adds 1 to 2 %; forks of one state that are held at 1.15 and at 1 differ 3.3 times in
their delay; attention without LayerNorm groks 4.7 times as soon with the temperature raised. The scale is read at
grokking. Their runs with a squared error, of which the norm's effect is said to be half as large, are not among ours.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from grokscope.studies import Claim, Rule, rule
from grokscope.studies.clock.doses import compare
from grokscope.studies.clock.experiments import DOSES, TEMPERATURES, dose
from grokscope.studies.clock.reading import clamp_estimand
from grokscope.studies.reduction import Reduction, median

__all__ = ["CLAIMS", "COLLAPSED", "derive_collapse", "derive_recovery", "interpolate"]

PAPER = "arXiv 2606.18465"
SEEDS = 12  # of a cell of the paper
SHOWN = "tab-temperatures"
RAISED = tuple(dose(rho, temperature) for rho, temperature in TEMPERATURES["mlp"] if rho == 1.15)
RECOVERED = (dose(1.0), dose(1.15), *RAISED)
COLLAPSED = (*(dose(rho) for rho in DOSES["mlp"] if rho <= 1.15), *(dose(*pair) for pair in TEMPERATURES["mlp"]))


def interpolate(at: Any, x: Any, y: Any) -> Any:
    """The value y at a place, linear between points along the first axis, and constant beyond the first and the last.

    >>> float(interpolate(1.5, np.array([2.0, 1.0]), np.array([10.0, 20.0])))
    15.0
    """
    order = np.argsort(x, axis=0)
    x, y = (np.take_along_axis(one, order, axis=0) for one in (x, y))
    found = y[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        for i, j in pairwise(range(len(x))):
            found = found + np.clip((at - x[i]) / (x[j] - x[i]), 0, 1) * (y[j] - y[i])
    return found


def derive_recovery(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """(T₁ − T₂)/(T₁ − T₀): T₀ at ρ = 1, T₁ at 1.15, T₂ at 1.15 where the scale of the logits is that at ρ = 1.

    T₂ is read between the temperatures that were run, linearly in the scale; NaN where a cell has no median.
    """
    cells = (dose(1.15), *RAISED)
    steps, scales = (
        np.stack(np.broadcast_arrays(*(parts[f"{what} {cell}"] for cell in cells))).astype(float)
        for what in ("step", "logits")
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        matched = interpolate(parts[f"logits {dose(1.0)}"], scales, steps)
        return {"recovery": (steps[0] - matched) / (steps[0] - parts[f"step {dose(1.0)}"])}


def derive_collapse(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """R² of ln T over the cells: on the scale of the logits alone, and what ρ adds to it.

    With r the correlations, R² of two predictors is (r₁² + r₂² − 2 r₁ r₂ r₁₂)/(1 − r₁₂²). NaN where a cell has no
    median.
    """

    def column(what: str) -> Any:
        found = np.stack(np.broadcast_arrays(*(parts[f"{what} {cell}"] for cell in COLLAPSED))).astype(float)
        with np.errstate(invalid="ignore"):
            return found - found.mean(axis=0)

    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.stack(np.broadcast_arrays(*(np.log(parts[f"step {cell}"]) for cell in COLLAPSED)))
        y, x, rho = logs - logs.mean(axis=0), column("logits"), column("ρ")

        def related(a: Any, b: Any) -> Any:
            return (a * b).sum(axis=0) / np.sqrt((a * a).sum(axis=0) * (b * b).sum(axis=0))

        first, second, both = related(x, y), related(rho, y), related(x, rho)
        joint = (first**2 + second**2 - 2 * first * second * both) / (1 - both**2)
        return {"R²": first**2, "gain": joint - first**2}


def _medians(columns: tuple[str, ...], cells: tuple[str, ...]) -> dict[str, Reduction]:
    return {f"{column} {cell}": median(f"{column} {cell}") for column in columns for cell in cells}


CLAIMS = (
    Claim(
        "same-state",
        "Forks of one state that are held at 1.15 of the norm take 3.3 times as long to grok as those held at 1.",
        f"{PAPER}, §4.6",
        "3.36 [3.27, 3.43] and 3.27 [3.21, 3.38]",
        compare(
            "delay since the fork at ρ = 1.15 over that at 1",
            "mlp",
            dose(1.15),
            dose(1.0),
            (1.98, 4.62),
            SEEDS,
            "delay",
        ),
        Rule(rule.within(0.4, 3.3, "ratio")),
        SHOWN,
    ),
    Claim(
        "logits-mediate",
        "Giving the logits their scale back takes back most of the delay that a raised norm causes.",
        f"{PAPER}, abstract and Table 2",
        "0.83 [0.82, 0.85] at p = 59",
        clamp_estimand(
            "share of the delay that is taken back",
            "mlp",
            RECOVERED,
            _medians(("step", "logits"), RECOVERED),
            "{recovery:.2f}",
            ("recovery", ".2f"),
            derive_recovery,
            SEEDS,
        ),
        Rule(rule.at_least(0.7, "recovery")),
        SHOWN,
    ),
    Claim(
        "logits-collapse",
        "Over norms and temperatures the time to grok follows the scale of the logits; the norm adds little to it.",
        f"{PAPER}, abstract and Table 3",
        "R² = 0.968; the norm adds 0.01 to 0.02",
        clamp_estimand(
            "variance of ln T that the scale of the logits explains",
            "mlp",
            COLLAPSED,
            _medians(("step", "logits", "ρ"), COLLAPSED),
            "R² = {R²:.2f}, ρ adds {gain:.2f}",
            (("R²", "gain"), ".2f"),
            derive_collapse,
            SEEDS,
        ),
        Rule(rule.all_of(rule.at_least(0.9, "R²"), rule.at_most(0.05, "gain"))),
        SHOWN,
    ),
    Claim(
        "logits-attention",
        "In attention without LayerNorm, too, a higher temperature at the same norm lets runs grok sooner.",
        f"{PAPER}, the transformer's table",
        "4.7 times as soon at ρ = 1.15 with temperature 1.7",
        compare(
            "grok step at ρ = 1.05 over that with temperature 2.5", "none", dose(1.05), dose(1.05, 2.5), (2, 2), SEEDS
        ),
        Rule(rule.at_least(2, "ratio")),
        SHOWN,
    ),
    Claim(
        "logits-with-final-norm",
        "With LayerNorms in the block and at the end the temperature moves the time to grok where the norm does not.",
        "asked here",
        "—",
        compare(
            "grok step with temperature 0.5 over that with 2", "both", dose(1.0, 0.5), dose(1.0, 2.0), (1.5, 1.5), None
        ),
        Rule.of_many(rule.at_least(1.5, "ratio")),
        SHOWN,
        "new",
    ),
)
