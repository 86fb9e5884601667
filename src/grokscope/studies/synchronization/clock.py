"""Which clock grokking runs on, and formation with it: steps, λ·t or ηλ·t. §6 and beyond the paper."""

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np

from grokscope.runs.records import RunRecord
from grokscope.studies import Claim, Estimand, Rule, rule
from grokscope.studies.reduction import median
from grokscope.studies.synchronization import crossprime
from grokscope.studies.synchronization.branches import branch_estimand, derive_clock
from grokscope.studies.synchronization.designs import every_run
from grokscope.studies.synchronization.experiments import DECAYS

__all__ = ["CLAIMS"]

DECAYS_97 = tuple(f"add_mod97_x{decay}" for decay in ("0.03", "0.1", "0.3", "1", "3"))
OTHER_TASKS = {task: tuple(f"{task}_x{decay}" for decay in ("0.3", "1", "3")) for task in ("add_mod53", "mult_mod97")}
RATES = ("eta0.0003_x1", "eta0.003_x1", "eta0.0003_x3.333", "eta0.003_x0.333", "add_mod97_x1", "add_mod97_x3")


def read_clock(record: RunRecord) -> Mapping[str, float]:
    """λ·t and ηλ·t at grokking, from the first step; infinite where the run has not grokked."""
    training, grokked = record.spec.training, record.timeline.grokked
    decays = inf if grokked is None else training.known_weight_decay * grokked
    return {"λt": decays, "ηλt": training.learning_rate * decays}


def _derive_ratio(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The largest over the smallest median, over configurations."""
    values = np.stack(np.broadcast_arrays(*(value for name, value in parts.items() if name.startswith("median"))))
    return {"largest over smallest": values.max(axis=0) / values.min(axis=0)}


def _derive_ratios(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same for each of the other tasks."""
    return {
        task: _derive_ratio({f"median {one}": parts[f"median {one}"] for one in names})["largest over smallest"]
        for task, names in OTHER_TASKS.items()
    }


def _clock(name: str, configurations: tuple[str, ...], column: str) -> Estimand:
    parts = {f"median {one}": median(column, one) for one in configurations}
    text, effect = "{largest over smallest:.2f}", ("largest over smallest", ".2f")
    strata = every_run(*configurations, experiment="clock")
    return Estimand(name, strata, read_clock, parts, text, effect, derive=_derive_ratio)


CLAIMS = (
    Claim(
        "formation-independent",
        "The circuit forms (median Fourier rank 10 or less) as soon at one λ as at another: median times at λ = 1 to 5 "
        "differ by at most 25 %.",
        "§6: Phase 1 does not depend on λ",
        "independent of λ",
        branch_estimand(
            "steps from the fork to formation",
            (crossprime.THREE[1],),
            DECAYS,
            {"formation": "median"},
            "times at λ = 1 to 5 differ by a factor of {largest over smallest:.1f}",
            ("largest over smallest", ".1f"),
            derive_clock,
        ),
        Rule(rule.at_most(1.25, "largest over smallest")),
        "fig-crossprime",
    ),
    Claim(
        "formation-clock",
        "The circuit forms on the clock λ·t, as 1/λ, at three primes: the exponent of median times is within 0.1 of 1.",
        "asked here",
        "—",
        branch_estimand(
            "exponent α of the median steps from the fork to formation ∝ λ^−α",
            crossprime.EVERY_DRAW,
            DECAYS,
            {"formation": "median"},
            ", ".join(f"{label}: {{α ({label}):.2f}}" for label in crossprime.LABELS),
            (tuple(f"α ({label})" for label in crossprime.LABELS), ".2f"),
            derive_clock,
        ),
        Rule.of_many(rule.every(rule.between(0.9, 1.1), *(f"α ({label})" for label in crossprime.LABELS))),
        "fig-crossprime",
        "new",
    ),
    Claim(
        "clock-over-decays",
        "With λ set from the first step, runs of addition mod 97 grok at one λ·t over a hundredfold λ, 0.03 to 3: "
        "medians differ by at most 25 %.",
        "asked here",
        "—",
        _clock("λ·t at grokking over λ", DECAYS_97, "λt"),
        Rule.of_many(rule.at_most(1.25, "largest over smallest")),
        "sup-law",
        "new",
    ),
    Claim(
        "clock-over-rates",
        "The clock is ηλ·t: with η changed tenfold medians of ηλ·t at grokking differ by at most 25 %.",
        "asked here",
        "—",
        _clock("ηλ·t at grokking over η and λ", RATES, "ηλt"),
        Rule.of_many(rule.at_most(1.25, "largest over smallest")),
        "sup-law",
        "new",
    ),
    Claim(
        "clock-on-other-tasks",
        "On addition mod 53 and on multiplication mod 97 too, λ·t at grokking differs by at most 25 % over "
        "λ = 0.3 to 3, in the median.",
        "asked here",
        "—",
        Estimand(
            "λ·t at grokking on other tasks",
            every_run(*(name for names in OTHER_TASKS.values() for name in names), experiment="clock"),
            read_clock,
            {f"median {name}": median("λt", name) for names in OTHER_TASKS.values() for name in names},
            ", ".join(f"{task} {{{task}:.2f}}" for task in OTHER_TASKS),
            (tuple(OTHER_TASKS), ".2f"),
            derive=_derive_ratios,
        ),
        Rule.of_many(rule.every(rule.at_most(1.25), *OTHER_TASKS)),
        "sup-law",
        "new",
    ),
)
