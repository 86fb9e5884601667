"""The fitted forecaster: a survival model on a few named signals, read from a small JSON file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from grokscope.errors import InputError, plural
from grokscope.forecast.cases import Case
from grokscope.forecast.forecast import Forecast
from grokscope.forecast.prefix import Prefix
from grokscope.forecast.signals import SIGNALS, signals_at
from grokscope.forecast.survival import LEFT, forecast_from, forecasts_from, reached_at
from grokscope.forecast.survival_fit import SurvivalFit, fit_survival
from grokscope.shapes import Float

__all__ = ["HazardForecaster", "fit_hazard", "signals_of_tier"]

FORMAT = "grokscope forecaster 1"
FARTHEST = 4.0  # deviations from the mean beyond which a signal tells no more
MARGIN = 0.1  # share of the fitted range by which a run may leave it
EVERY = 200  # steps between the prefixes of a run that are fitted to
KNOWN = ("weight_decay", "learning_rate", "train_fraction", "batch_size", "layers", "width", "dropout")
KINDS = {  # values that were the same in all runs fitted to, or not: what a run that differs is
    "is_transformer": ("a transformer", "no transformer"),
    "is_squared_error": ("trained on the squared error", "trained on cross-entropy"),
    "changes_gradients": ("trained with changed gradients", "trained with plain gradients"),
    "holds_norm": ("trained with a norm that is held", "trained with free norms"),
    "changes_decay": ("a fork, or its λ is changed on the way", "no fork, and its λ stays"),
}
LABELS = {
    "weight_decay": "λ",
    "learning_rate": "η",
    "train_fraction": "share of the rows that is trained on",
    "classes": "the number of classes",
    "is_transformer": "kind of model",
    "is_squared_error": "loss function",
    "changes_gradients": "whether gradients are changed",
    "holds_norm": "whether a norm is held",
    "changes_decay": "whether it is a fork or its λ is changed",
}
COLUMNS = {  # what a signal is made of, beside λ and η
    "is_memorized": ("train_accuracy",),
    "log_memorized": ("train_accuracy",),
    "log_train_loss": ("train_loss",),
    "train_spread": ("train_loss",),
    "log_norm": ("norm",),
    "norm_slope": ("norm",),
    "log_margin": ("train_margin",),
    "train_share": ("train_share",),
    "train_share_slope": ("train_share",),
    "train_spectral_entropy": ("train_spectral_entropy",),
    "log_entropy": ("output_entropy",),
    "entropy_slope": ("output_entropy",),
    "log_loss": ("validation_loss",),
    "log_over_guess": ("validation_loss",),
    "loss_slope": ("validation_loss",),
    "loss_fall": ("validation_loss",),
    "log_odds": ("validation_accuracy",),
    "odds_slope": ("validation_accuracy",),
}
BASES = {  # what a forecaster reads of each tier
    0: "",
    1: "training loss and accuracy",
    2: "norms of weights and updates",
    3: "activations on training rows",
    4: "predictions on all inputs",
    5: "validation loss",
}
NOT_MEMORIZED = "it has not memorised its training data, and all runs fitted to did"
UNKNOWN_IF_MEMORIZED = "whether it memorised its training data is not known, and all runs fitted to did"


@dataclass(frozen=True)
class HazardForecaster:
    """P(T − now > s | what was seen), log-logistic with a share of runs that never grok (see `survival_fit`)."""

    tier: int
    """The highest that it reads."""
    signals: tuple[str, ...]
    """Names of `SIGNALS`, in the order of the coefficients."""
    means: Float[np.ndarray, " signals"]
    """Of each signal over the prefixes fitted to; subtracted."""
    deviations: Float[np.ndarray, " signals"]
    """Of each signal; divided by."""
    fit: SurvivalFit
    """The coefficients."""
    ranges: Mapping[str, tuple[float, float]]
    """The least and greatest value of the configuration, and of the step, that it was fitted to."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """What it was fitted to: runs, cells, prefixes, sources."""
    name: str = "hazard model"
    """What a table calls it."""
    alarms: Mapping[float, float] = field(default_factory=dict)
    """Share of false alarms → the probability at which an alarm is raised, as found on the runs fitted to."""

    def predict(self, prefixes: Sequence[Prefix], horizon: int | Sequence[int]) -> list[Forecast]:
        """A forecast of each run, for one horizon or for that of each; what was not measured counts as average."""
        if not prefixes:
            return []
        found = np.stack([signals_at(run, self.signals) for run in prefixes])
        survival = self.fit.survival(self._standardized(found), LEFT)
        ahead = forecasts_from(prefixes, survival, horizon, self.tier, [self.outside(run) for run in prefixes])
        return [replace(one, basis=self.basis) for one in ahead]

    def predict_known(self, cases: Sequence[Case], step: int, horizon: int) -> list[Forecast]:
        """Those of `predict`, of runs that have not grokked by a step, from the signals that each had then."""
        survival = self.fit.survival(
            self._standardized(np.stack([one.signals(step, self.signals) for one in cases])), LEFT
        )
        steps = [int(one.run.steps[np.searchsorted(one.run.steps, step, side="right") - 1]) for one in cases]
        return [forecast_from(above, at, horizon, self.tier) for above, at in zip(survival, steps, strict=True)]

    def probabilities(self, found: Float[np.ndarray, "runs signals"], horizon: int) -> Float[np.ndarray, " runs"]:
        """Those of `predict`, of runs whose signals are known."""
        reached = reached_at(self.fit.survival(self._standardized(found), LEFT))
        return np.array([np.interp(horizon, LEFT, one) for one in reached])

    @property
    def basis(self) -> str:
        """What it reads, and the runs that it was fitted to."""
        read = ["λ, η and the step", *(BASES[tier] for tier in sorted({SIGNALS[name][0] for name in self.signals}))]
        runs, cells = (self.provenance.get(name) for name in ("runs", "cells"))
        fitted = (
            f"{runs:,} runs of grokscope in {plural(cells, 'configuration')}"
            if runs and cells
            else "runs that are not named"
        )
        return f"tier {self.tier} ({', '.join(filter(None, read))}), fitted to {fitted} that all memorised"

    def outside(self, run: Prefix) -> tuple[str, ...]:
        """Why a run is unlike those fitted to, or is not known to be like them; empty if it is as they were."""
        named = [name for name in (*self.ranges, *self._scales) if name != "step"]
        unknown = [_label(name) for name in named if isnan(run.value(name))]
        return (*self.unlike(run), *((f"not known are {', '.join(unknown)}",) if unknown else ()))

    def missing(self, run: Prefix) -> tuple[str, ...]:
        """What it reads of every run and this one lacks: λ, η, and losses, accuracies or norms of its tier."""
        read = ("weight_decay", "learning_rate", *self._scales)
        rates = [_label(name) for name in read if isnan(run.value(name))]
        columns = dict.fromkeys(column for name in self.signals for column in COLUMNS.get(name, ()))
        absent = [name.replace("_", " ") for name in columns if np.all(np.isnan(run.column(name)))]
        return (*rates, *absent)

    def unlike(self, run: Prefix) -> tuple[str, ...]:
        """In what a run is known to differ from those fitted to."""
        found = []
        for name, (low, high) in self.ranges.items():
            value = float(run.step) if name == "step" else run.value(name)
            if not isnan(value) and not low * (1 - MARGIN) <= value <= high * (1 + MARGIN):
                found.append(_difference(name, value, low, high))
        if run.grokked is None and run.memorized is None:
            is_measured = not np.all(np.isnan(run.column("train_accuracy")))
            found.append(NOT_MEMORIZED if is_measured else UNKNOWN_IF_MEMORIZED)
        return tuple(found)

    def to_json(self) -> str:
        """As it is stored: numbers to six digits."""
        fit = {name: _rounded(getattr(self.fit, name)) for name in ("time", "grokking", "spread")}
        parts = {
            "format": FORMAT,
            "name": self.name,
            "tier": self.tier,
            "signals": [*self.signals],
            "means": _rounded(self.means),
            "deviations": _rounded(self.deviations),
            **fit,
            "ranges": {name: [low, high] for name, (low, high) in self.ranges.items()},
            "alarms": {f"{level:g}": threshold for level, threshold in self.alarms.items()},
            "provenance": dict(self.provenance),
        }
        return json.dumps(parts, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str, name: str = "the forecaster") -> "HazardForecaster":
        """From what is stored."""
        try:
            parts = json.loads(text)
            if parts["format"] != FORMAT or not {*parts["signals"]} <= {*SIGNALS}:
                raise ValueError(f"its format is {parts['format']!r}")
            arrays = [np.array(parts[one], float) for one in ("time", "grokking", "spread")]
            if {len(one) for one in arrays} != {len(parts["signals"]) + 1}:
                raise ValueError("it has not one coefficient for each signal")
            ranges = {one: (float(low), float(high)) for one, (low, high) in parts["ranges"].items()}
            means, deviations = (np.array(parts[one], float) for one in ("means", "deviations"))
            fit = SurvivalFit(*arrays)
            alarms = {float(level): float(threshold) for level, threshold in parts.get("alarms", {}).items()}
            return cls(
                parts["tier"],
                tuple(parts["signals"]),
                means,
                deviations,
                fit,
                ranges,
                parts["provenance"],
                parts["name"],
                alarms,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{name} is no forecaster that this version reads: {error}") from None

    @classmethod
    def load(cls, path: Path) -> "HazardForecaster":
        """From a file."""
        return cls.from_json(path.read_text(encoding="utf-8"), path.name)

    @property
    def _scales(self) -> tuple[str, ...]:
        """What of the configuration a signal is measured against."""
        return ("classes",) if "log_over_guess" in self.signals else ()

    def _standardized(self, found: Float[np.ndarray, "runs signals"]) -> Float[np.ndarray, "runs signals"]:
        scaled = (found - self.means) / self.deviations
        return np.clip(np.nan_to_num(scaled), -FARTHEST, FARTHEST)


def signals_of_tier(tier: int) -> tuple[str, ...]:
    """The names of all signals that a tier may read.

    >>> signals_of_tier(0)
    ('log_time', 'log_clock', 'log_rate', 'log_data', 'log_fraction')
    """
    return tuple(name for name, (needed, _) in SIGNALS.items() if needed <= tier)


def fit_hazard(
    cases: Sequence[Case],
    tier: int,
    signals: Sequence[str] | None = None,
    name: str = "hazard model",
    ridge: float = 10.0,
    every: int = EVERY,
    sources: Sequence[str] = (),
) -> HazardForecaster:
    """Fit a tier's forecaster to prefixes of runs, every 200 steps until each grokked or ended.

    `signals` are all of the tier if not given. A run counts once, however long it is, and a cell of n runs as √n.

    >>> from grokscope.specs import RunSpec
    >>> from grokscope.forecast.cases import usable_cases
    >>> steps = list(range(0, 3001, 100))
    >>> def log(grok):
    ...     accuracy = [float(step >= grok) for step in steps]
    ...     return {"step": steps, "train_accuracy": [1.0] * 31, "validation_accuracy": accuracy}
    >>> runs = [(RunSpec().with_seed(seed), log(1500 + 50 * seed)) for seed in range(10)]
    >>> forecaster = fit_hazard(usable_cases(runs), tier=0)
    >>> found = forecaster.predict([usable_cases(runs)[0].run.until(600)], 10_000)[0]
    >>> 500 < found.median < 2500, found.outside
    (True, ())
    """
    names = signals_of_tier(tier) if signals is None else tuple(signals)
    rows, left, came, weights = [], [], [], []
    sizes: dict[str, int] = {}
    for case in cases:
        sizes[case.cell] = sizes.get(case.cell, 0) + 1
    for case in cases:
        chosen = _prefix_steps(case, every)
        for step in chosen:
            rows.append(case.signals(step, names))
            left.append(float(case.end - step))
            came.append(case.grokked is not None)
            weights.append(4 / len(chosen) / sizes[case.cell] ** 0.5)
    found = np.stack(rows)
    measured = ~np.all(np.isnan(found), axis=0)
    names, found = tuple(np.array(names)[measured].tolist()), found[:, measured]
    means, deviations = np.nanmean(found, axis=0), np.maximum(np.nanstd(found, axis=0), 1e-3)
    scaled = np.clip(np.nan_to_num((found - means) / deviations), -FARTHEST, FARTHEST)
    fit = fit_survival(scaled, np.array(left), np.array(came), np.array(weights), ridge)
    provenance = {"runs": len(cases), "cells": len(sizes), "prefixes": len(rows), "ridge": ridge, "from": [*sources]}
    return HazardForecaster(tier, names, means, deviations, fit, _ranges(cases), provenance, name)


def _prefix_steps(case: Case, every: int) -> list[int]:
    steps = [int(step) for step in case.run.steps if step < case.end]
    return [step for step in steps if step % every == every // 2] or steps[-1:]


def _ranges(cases: Sequence[Case]) -> dict[str, tuple[float, float]]:
    found = {"step": (0.0, float(max(case.end for case in cases)))}
    for name in (*KNOWN, *KINDS):
        values = [value for case in cases if not isnan(value := case.run.value(name))]
        if values:
            found[name] = (min(values), max(values))
    return found


def _rounded(values: Float[np.ndarray, " any"]) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def _difference(name: str, value: float, low: float, high: float) -> str:
    if name in KINDS:
        return KINDS[name][value == 0]
    if name == "step":
        return f"it is at step {value:,.0f}, fitted to steps up to {high:,.0f}"
    return f"{_label(name)} = {value:g}, fitted to {f'{low:g}' if low == high else f'{low:g} to {high:g}'}"


def _label(name: str) -> str:
    """A value of the configuration as a sentence names it."""
    return LABELS.get(name, name.replace("_", " "))
