"""A parent with its branches as one unit: times to grok, norms and formation by λ, and the laws made of them.

Δt = C/λ is fitted as the paper does, C = mean(λΔt) over the mean Δt of each λ, to many resampled sets at once.
"""

from collections.abc import Mapping
from itertools import pairwise
from math import inf, isnan, nan
from typing import Any

import numpy as np

from grokscope.law import Ending, forked_run, norm_decay
from grokscope.runs.records import RunRecord
from grokscope.studies import Estimand, Stratum
from grokscope.studies.estimand import Derive
from grokscope.studies.reduction import Reduction, greatest, least, mean, median, spread, total
from grokscope.studies.synchronization.designs import as_flag
from grokscope.timeline import Outcome, first_step_below

__all__ = ["at", "branch_estimand", "derive_clock", "derive_law", "derive_norms", "read_branches"]

LATE = 50  # steps by which an event is seen late on average, evaluated every 100: laws in λ allow for it
FORMED = 10.0  # median Fourier rank at which neurons have formed their frequencies (half way down from about 25)
Runs = Mapping[str, RunRecord]


def at(name: str, decay: float | int, label: str = "") -> str:
    """What a number of the branches at one λ, of one stratum, is called.

    >>> at("Δt", 2, "p = 53"), at("norm", 1)
    ('Δt (p = 53, λ = 2)', 'norm (λ = 1)')
    """
    return f"{name} ({label}{', ' if label else ''}λ = {decay:g})"


def read_branches(runs: Runs, decays: tuple[float, ...]) -> Mapping[str, float]:
    """Of one parent's branches, by λ: Δt, the norm at grokking, the decay κ of the norm, and the steps to formation.

    Δt is NaN where a branch has none, as the paper leaves such draws out, and `time` is infinite there: a branch that
    was unstable or had not grokked takes longer than all others. Branches of runs that had grokked before have neither.
    """
    if any(f"x{decay:g}" not in runs for decay in decays):
        return {}
    found: dict[str, float] = {}
    for decay in decays:
        found |= {at(name, decay): value for name, value in _read_branch(runs[f"x{decay:g}"]).items()}
    steps = [found[at("Δt", decay)] for decay in decays]
    constant, r_squared = fit_law(np.array(decays), np.array(steps))
    return found | {"C": float(constant), "R²": float(r_squared), "falls": as_flag(_falls(steps))}


def _read_branch(record: RunRecord) -> Mapping[str, float]:
    run, events = forked_run(record.spec, record.timeline), record.timeline
    groks, before = run.ending is Ending.GROKKED, run.ending is Ending.BEFORE
    steps = [int(step) for step in record.evaluations["step"]]
    formed = first_step_below(steps, record.evaluations["rank"], FORMED) if "rank" in record.evaluations else None
    return {
        "Δt": float(run.steps_to_grok or nan) if groks else nan,
        "time": nan if before else float(run.steps_to_grok or nan) if groks else inf,
        "never": as_flag(not groks and not before),
        "unstable after": as_flag(groks and run.outcome is Outcome.UNSTABLE_AFTER),
        "norm": run.norm_at_grok if groks else nan,
        "κ": _norm_decay(record, events.grokked) if groks else nan,
        "formation": inf if formed is None else float(formed - events.first),
    }


def _norm_decay(record: RunRecord, grokked: int | None) -> float:
    """κ from the fork to grokking: the rate at which the log norm falls, as a share of ηλ."""
    rows = zip(record.evaluations["step"], record.evaluations["norm"], strict=True)
    kept = [(step, norm) for step, norm in rows if grokked is not None and step <= grokked and norm > 0]
    if len(kept) < 2:
        return nan
    steps, norms = ([row[i] for row in kept] for i in (0, 1))
    training = record.spec.training
    return norm_decay(steps, norms, training.known_weight_decay, training.learning_rate).efficiency


def _falls(steps: list[float]) -> bool:
    return not any(map(isnan, steps)) and all(before > after for before, after in pairwise(steps))


def fit_law(decays: Any, times: Any) -> tuple[Any, Any]:
    """C = mean(λΔt) over the λ that grok, and R² of C/λ there; the last axis is λ, and others are designs.

    >>> constant, r_squared = fit_law(np.array([1.0, 2.0, 3.0]), np.array([3000.0, 1500.0, 1000.0]))
    >>> float(constant), float(r_squared)
    (3000.0, 1.0)
    """
    known = np.isfinite(times)
    n = known.sum(axis=-1)
    enough = np.where(n > 1, n, np.nan)
    seen = np.where(known, times, 0.0)
    constant = (decays * seen).sum(axis=-1) / enough
    middle = seen.sum(axis=-1) / enough
    away = np.where(known, seen - constant[..., None] / decays, 0.0)
    around = np.where(known, seen - middle[..., None], 0.0)
    scale = (around**2).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return constant, 1 - (away**2).sum(axis=-1) / np.where(scale > 0, scale, np.nan)


def fit_power(decays: Any, times: Any) -> Any:
    """α of Δt ∝ λ^−α by least squares of logarithms; a λ at which most never grok is left out.

    >>> float(fit_power(np.array([1.0, 2.0]), np.array([3000.0, 1500.0]))).__round__(3)
    1.0
    """
    known = np.isfinite(times)
    enough = np.where(known.sum(axis=-1) > 1, known.sum(axis=-1), np.nan)
    x = np.where(known, np.log(decays), 0.0)
    y = np.where(known, np.log(np.where(known, times, 1.0)), 0.0)
    x, y = (np.where(known, one - (one.sum(axis=-1) / enough)[..., None], 0.0) for one in (x, y))
    return -(x * y).sum(axis=-1) / (x * x).sum(axis=-1)


def _by_label(parts: Mapping[str, Any], name: str) -> dict[str, tuple[Any, Any]]:
    """Of each stratum its λ, and a number at each of them in the last axis."""
    found: dict[str, dict[float, Any]] = {}
    for key, value in parts.items():
        if key.startswith(f"{name} ("):
            label, _, decay = key.removeprefix(f"{name} (").removesuffix(")").rpartition("λ = ")
            found.setdefault(label.removesuffix(", "), {})[float(decay)] = value
    return {label: (np.array([*own]), np.stack([*own.values()], axis=-1)) for label, own in found.items()}


def derive_law(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """C and R² of each stratum from its mean Δt, α from its median times, and Δt at the highest λ over the law's."""
    found: dict[str, Any] = {}
    for label, (decays, times) in _by_label(parts, "Δt").items():
        place = f" ({label})" if label else ""
        constant, r_squared = fit_law(decays, times)
        found |= {
            f"C{place}": constant,
            f"R²{place}": r_squared,
            f"over the law{place}": times[..., -1] * decays[-1] / constant,
        }
    for label, (decays, times) in _by_label(parts, "time").items():
        found[f"α ({label})" if label else "α"] = fit_power(decays, times - LATE)
    return found


def derive_norms(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """τ, its coefficient of variation and its trend over λ, and the mean κ.

    τ is the mean over λ of the mean norm at grokking; its trend, that norm at the highest λ over that at the lowest.
    """
    found: dict[str, Any] = {}
    for label, (_, norms) in _by_label(parts, "norm").items():
        place = f" ({label})" if label else ""
        tau = norms.mean(axis=-1)
        found |= {
            f"τ{place}": tau,
            f"CV{place}": norms.std(axis=-1) / tau,
            f"trend{place}": norms[..., -1] / norms[..., 0],
        }
    for label, (_, rates) in _by_label(parts, "κ").items():
        found[f"mean κ{f' ({label})' if label else ''}"] = rates.mean(axis=-1)
    return found


def derive_clock(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """How the steps to formation change with λ: the largest over the smallest, and the exponent α of λ^−α."""
    found: dict[str, Any] = {}
    for label, (decays, values) in _by_label(parts, "formation").items():
        place = f" ({label})" if label else ""
        most, fewest = values.max(axis=-1), values.min(axis=-1)
        # Formed at the fork at every λ, as the paper has it, is no difference at all.
        found[f"largest over smallest{place}"] = np.where(most == 0, 1.0, most / fewest)
        found[f"α{place}"] = fit_power(decays, values - LATE)
    return found


REDUCE = {"mean": mean, "median": median, "total": total, "spread": spread, "greatest": greatest, "least": least}


def branch_estimand(
    name: str,
    strata: tuple[Stratum, ...],
    decays: tuple[float, ...],
    columns: Mapping[str, str],
    text: str,
    effect: tuple[str | tuple[str, ...], str],
    derive: Derive | None = None,
    cadence: int | None = None,
    whole: Mapping[str, Reduction] | None = None,
) -> Estimand:
    """Numbers of branches by λ and stratum: `columns` says how each is summed over parents, `{"Δt": "mean"}`.

    With one stratum a number is called `Δt (λ = 1)`, with several `Δt (p = 53, λ = 1)`.
    """
    parts: dict[str, Reduction] = dict(whole or {})
    for stratum in strata:
        label = stratum.name if len(strata) > 1 else ""
        for column, how in columns.items():
            for decay in decays:
                parts[at(column, decay, label)] = REDUCE[how](at(column, decay), stratum.name)
    return Estimand(name, strata, read_branches, parts, text, effect, "parent", cadence, {"decays": decays}, derive)
