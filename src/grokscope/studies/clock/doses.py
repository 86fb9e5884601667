"""Does the norm set the time to grok, and what does the final LayerNorm do to it? arXiv 2606.13753, by forks.

Reported, of the MLP: the norm at grokking varies by 1 to 2 %; held at ρ times it, runs grok at T ∝ exp(αρ) with α = 7.6
for ρ from 0.85 to 1.25 at p = 59 (7.5 over four primes); of attention without LayerNorm α = 15.45; with LayerNorm the
dependence is gone, which was tried with the norm of one group of matrices at a time and here is with that of all. There
grokking is validation accuracy ≥ 0.9, here ≥ 0.95 as everywhere; they report that the norm at grokking changes by less
than 2 % between 0.8 and 0.95.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from grokscope.studies import Claim, Rule, rule
from grokscope.studies.clock.experiments import DOSES, dose
from grokscope.studies.clock.reading import clamp_estimand, slope_and_fit
from grokscope.studies.estimand import Derive, Estimand
from grokscope.studies.reduction import Reduction, mean, median, spread

__all__ = ["CLAIMS", "DEPENDENCE", "FITTED", "NO_DEPENDENCE", "compare", "derive_exponent", "derive_ratio"]

PAPER = "arXiv 2606.13753"
SEEDS = 16  # of a cell of the paper
FITTED = (0.85, 1.25)  # ρ over which the law is reported
SHOWN = "tab-doses"
Limits = tuple[float | int, float | int]
"""Between which numbers a bound decides nothing."""


def derive_ratio(late: str, early: str, what: str, limits: Limits) -> Derive:
    """How many times as late one cell groks as another, in the median.

    Where most of a cell's runs had not grokked, only a bound is known: the ratio is at least, or at most, that of their
    last evaluation. It is taken where it decides the rule, at least the upper limit or at most the lower one, and is
    NaN otherwise.
    """

    def derive(parts: Mapping[str, Any]) -> Mapping[str, Any]:
        after, before = parts[f"{what} {late}"], parts[f"{what} {early}"]
        least, most = parts[f"seen {what} {late}"] / before, after / parts[f"seen {what} {early}"]
        is_least = np.isinf(after) & np.isfinite(before) & (least >= limits[1])
        is_most = np.isfinite(after) & np.isinf(before) & (most <= limits[0])
        ratio = np.where(np.isfinite(after) & np.isfinite(before), after / before, np.nan)
        return {"ratio": np.where(is_least, least, np.where(is_most, most, ratio))}

    return derive


def derive_exponent(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """α and R² of ln T = α ρ + constant over cells with a median within the reported range; three at least.

    ρ is what was held over what the parents' norm came to be, so a level that was set too high shifts a point along
    the line and not off it.
    """
    cells = [name.removeprefix("ρ ") for name in parts if name.startswith("ρ ")]
    rho = np.stack(np.broadcast_arrays(*(parts[f"ρ {cell}"] for cell in cells)))
    steps = np.stack(np.broadcast_arrays(*(parts[f"step {cell}"] for cell in cells)))
    with np.errstate(divide="ignore"):
        is_fitted = (rho >= FITTED[0]) & (rho <= FITTED[1])
        exponent, fit = slope_and_fit(np.where(is_fitted, rho, np.nan), np.log(steps))
    return {"α": exponent, "R²": fit}


def exponent(model: str) -> Estimand:
    """The exponent of a model's law over its doses."""
    cells = tuple(dose(rho) for rho in DOSES[model])
    parts: dict[str, Reduction] = {}
    for cell in cells:
        parts |= {f"ρ {cell}": median(f"ρ {cell}"), f"step {cell}": median(f"step {cell}")}
    text, effect = "α = {α:.2f}, R² = {R²:.3f}", (("α", "R²"), ".2f")
    return clamp_estimand("exponent of the delay", model, cells, parts, text, effect, derive_exponent, SEEDS)


def compare(
    name: str, model: str, late: str, early: str, limits: Limits, drawn: int | None = SEEDS, what: str = "step"
) -> Estimand:
    """How many times as late one cell of a model groks as another; `limits` are those of the rule."""
    columns = tuple(f"{seen}{what} {cell}" for seen in ("", "seen ") for cell in (late, early))
    return clamp_estimand(
        name,
        model,
        (late, early),
        {column: median(column) for column in columns},
        "{ratio:.2f} times",
        ("ratio", ".2f"),
        derive_ratio(late, early, what, limits),
        drawn,
    )


def dependence(model: str, limit: float | int, drawn: int | None = SEEDS) -> Estimand:
    """How much longer a model takes to grok, from the fork on, held at 1.15 than at 0.9 of its norm.

    Under the law exp(0.25 α) at least: the steps before the fork, which all share, would hide what is soon over.
    """
    what = "delay since the fork at ρ = 1.15 over that at 0.9"
    return compare(what, model, dose(1.15), dose(0.9), (limit, limit), drawn, "delay")


def _derive_variation(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"CV": parts["spread"] / parts["mean"]}


NO_DEPENDENCE, DEPENDENCE = 2.0, 4.0  # exp(7.5 · 0.25) = 6.5 and exp(15.45 · 0.25) = 48 are what the law says
CLAIMS = (
    Claim(
        "norm-concentrated",
        "Free runs of the MLP grok at one norm: it varies by a few percent between seeds.",
        f"{PAPER}, abstract and §4",
        "CV 1 to 2 %",
        clamp_estimand(
            "norm at grokking",
            "mlp",
            ("free",),
            {"mean": mean("norm free"), "spread": spread("norm free")},
            "{mean:.1f}, CV {CV:.1%}",
            ("CV", ".1%"),
            _derive_variation,
            SEEDS,
        ),
        Rule(rule.at_most(0.03, "CV")),
        SHOWN,
    ),
    Claim(
        "clamp-at-one",
        "Held at the norm at which it would grok, the MLP groks no later than free runs: to be held delays nothing.",
        f"{PAPER}, Table 1",
        "0.73 times as late; 0.78 in its dense sweep",
        compare("grok step at ρ = 1 over that of the parent", "mlp", dose(1.0), "free", (1, 1)),
        Rule(rule.at_most(1, "ratio")),
        SHOWN,
    ),
    Claim(
        "clamp-delays",
        "Held above that norm, at ρ = 1.15, the MLP still groks: the norm delays and does not prevent.",
        f"{PAPER}, §5",
        "16 of 16",
        clamp_estimand(
            "share that groks at ρ = 1.15",
            "mlp",
            (dose(1.15),),
            {"share": mean(f"groks {dose(1.15)}")},
            "{share:.0%}",
            ("share", ".0%"),
            drawn=SEEDS,
        ),
        Rule(rule.at_least(0.9, "share")),
        SHOWN,
    ),
    Claim(
        "exponential-mlp",
        "The MLP's time to grok grows as exp(αρ) with α = 7.6 in the held norm.",
        f"{PAPER}, Eq. 1 and Figure 3",
        "α = 7.64 [7.47, 7.81], R² = 0.994",
        exponent("mlp"),
        Rule(rule.all_of(rule.within(0.25, 7.64, "α"), rule.at_least(0.97, "R²"))),
        SHOWN,
    ),
    Claim(
        "exponential-attention",
        "So does that of attention without LayerNorm, with α = 15.",
        f"{PAPER}, §7",
        "α = 15.45 [14.84, 15.98], R² = 0.999",
        exponent("none"),
        Rule(rule.all_of(rule.within(0.25, 15.45, "α"), rule.at_least(0.97, "R²"))),
        SHOWN,
    ),
    Claim(
        "norm-removes",
        "With LayerNorms in the block and at the end the held norm hardly moves the time to grok.",
        f"{PAPER}, abstract and §7",
        "no dependence; of single groups at most 2 times",
        dependence("both", NO_DEPENDENCE),
        Rule(rule.all_of(rule.at_most(NO_DEPENDENCE, "ratio"), rule.at_least(1 / NO_DEPENDENCE, "ratio"))),
        SHOWN,
    ),
    Claim(
        "norm-returns",
        "Without any LayerNorm the dependence is there.",
        f"{PAPER}, abstract and §7",
        "exp(15.45 · 0.25) = 48 times",
        dependence("none", DEPENDENCE),
        Rule(rule.at_least(DEPENDENCE, "ratio")),
        SHOWN,
    ),
    Claim(
        "final-norm-suffices",
        "The final LayerNorm alone removes the dependence.",
        f"{PAPER}, abstract; asked here of each LayerNorm for itself",
        "a final LayerNorm removes the dependence",
        dependence("final", NO_DEPENDENCE, None),
        Rule.of_many(rule.all_of(rule.at_most(NO_DEPENDENCE, "ratio"), rule.at_least(1 / NO_DEPENDENCE, "ratio"))),
        SHOWN,
        "new",
    ),
    Claim(
        "final-norm-needed",
        "Without the final LayerNorm the dependence is there, whatever LayerNorms the block has.",
        f"{PAPER}, abstract; asked here of each LayerNorm for itself",
        "without it the exponential law returns",
        dependence("block", DEPENDENCE, None),
        Rule.of_many(rule.at_least(DEPENDENCE, "ratio")),
        SHOWN,
        "new",
    ),
    Claim(
        "random-direction",
        "It is the norm and not the rescaling: raised to the same norm along a fixed random direction, the MLP groks "
        "as late as rescaled, within a factor of two.",
        "a control, asked here",
        "—",
        compare(
            "grok step, raised along a random direction over rescaled",
            "mlp",
            dose(1.15, along="random"),
            dose(1.15),
            (0.5, 2),
            None,
        ),
        Rule.of_many(rule.between(0.5, 2.0, "ratio")),
        "tab-controls",
        "new",
    ),
    Claim(
        "matched-norm",
        "Held at its parent's own norm, step by step, a fork groks when the parent does.",
        "a control, asked here",
        "—",
        compare("grok step at the parent's norm over that of the parent", "mlp", "matched", "free", (0.9, 1.1), None),
        Rule.of_many(rule.between(0.9, 1.1, "ratio")),
        "tab-controls",
        "new",
    ),
)
