"""Laws of the delay, calibrated on the runs at λ = 1 and η = 0.001 and scored on runs at other λ and η.

T_mem and T are the first evaluations with train accuracy ≥ 0.99 and validation accuracy ≥ 0.95, V = ‖W‖² of the
matrices.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log, nan
from statistics import median

import numpy as np

from grokscope.errors import InputError
from grokscope.law import first_passage_steps, norm_decay
from grokscope.runs.records import RunRecord
from grokscope.stats import Estimate
from grokscope.studies import Measured, Quantity, Records
from grokscope.studies.clock.experiments import RATES
from grokscope.studies.clock.norms import matrix_norm_at, matrix_norms, norm_at_grokking_of
from grokscope.studies.clock.reading import cells_of

__all__ = ["LAWS", "FreeRun", "free_run_of", "law_errors", "rate_cells", "score_laws"]

BOOTSTRAPS, SEED = 200, 2026
REFERENCE = (1.0, 1e-3)  # λ and η


@dataclass(frozen=True)
class FreeRun:
    """What the laws need of a run that memorised."""

    decay: float
    """λ."""
    rate: float
    """η."""
    memorized: int
    """T_mem."""
    seen: int
    """T, or the last evaluation of a run that had not grokked."""
    groks: bool
    """Whether it had."""
    norm: float
    """‖W‖ at T_mem."""
    norm_at_grok: float
    """‖W‖ at T; NaN without."""
    last_norm: float
    """‖W‖ at the last evaluation, 500 steps after T."""
    efficiency: float
    """κ: the rate at which ln‖W‖ falls from T_mem to T, over ηλ; NaN without."""

    @property
    def delay(self) -> int:
        """T − T_mem."""
        return self.seen - self.memorized


def free_run_of(record: RunRecord) -> FreeRun | None:
    """None of a run that did not memorise before it grokked, which no law of the delay is about."""
    events, training = record.timeline, record.spec.training
    if events.memorized is None or (events.grokked is not None and events.grokked <= events.memorized):
        return None
    steps, norms = record.evaluations["step"], matrix_norms(record)
    end = events.last if events.grokked is None else events.grokked
    rows = [(step, norm) for step, norm in zip(steps, norms, strict=True) if events.memorized <= step <= end]
    decay, rate = training.known_weight_decay, training.learning_rate
    kappa = nan
    if events.grokked is not None and len(rows) > 1:
        kappa = norm_decay([step for step, _ in rows], [norm for _, norm in rows], decay, rate).efficiency
    return FreeRun(
        decay,
        rate,
        events.memorized,
        end,
        events.grokked is not None,
        matrix_norm_at(record, events.memorized),
        norm_at_grokking_of(record),
        float(norms[-1]),
        kappa,
    )


Predict = Callable[[FreeRun], float]
"""The step at which a run groks, from what is known when it has memorised; of norm separation, afterwards."""


def _first_passage(runs: Sequence[FreeRun]) -> Predict:
    """T = T_mem + ln(V_mem/V*)/(2κηλ), V* and κ the medians over the runs; 2605.18845."""
    threshold, kappa = median(run.norm_at_grok for run in runs), median(run.efficiency for run in runs)

    def predict(run: FreeRun) -> float:
        try:
            return run.memorized + first_passage_steps(run.norm, threshold, run.decay, run.rate, kappa)
        except InputError:  # a norm that rose has no passage downwards
            return nan

    return predict


def _norm_separation(runs: Sequence[FreeRun]) -> Predict:
    """T = T_mem + C/(ηλ) ln(V_mem/V_post), C the median; V_post is known only afterwards. 2603.13331."""

    def span(run: FreeRun) -> float:
        return 2 * log(run.norm / run.last_norm) / (run.rate * run.decay)

    constant = median(run.delay / span(run) if span(run) else nan for run in runs)
    return lambda run: run.memorized + constant * span(run)


def _decay_and_rate(runs: Sequence[FreeRun]) -> Predict:
    """T = C/(ηλ)."""
    constant = median(run.seen * run.rate * run.decay for run in runs)
    return lambda run: constant / (run.rate * run.decay)


def _since_memorized(runs: Sequence[FreeRun]) -> Predict:
    """T = T_mem + C/(ηλ): first passage and norm separation without the norms."""
    constant = median(run.delay * run.rate * run.decay for run in runs)
    return lambda run: run.memorized + constant / (run.rate * run.decay)


def _decay_alone(runs: Sequence[FreeRun]) -> Predict:
    """T = C/λ."""
    constant = median(run.seen * run.decay for run in runs)
    return lambda run: constant / run.decay


LAWS: Mapping[str, tuple[str, Callable[[Sequence[FreeRun]], Predict]]] = {
    "first passage": ("T_mem + ln(V_mem/V*)/(2κηλ)", _first_passage),
    "norm separation": ("T_mem + C ln(V_mem/V_post)/(ηλ)", _norm_separation),
    "ηλt since memorisation": ("T_mem + C/(ηλ)", _since_memorized),
    "ηλt": ("C/(ηλ)", _decay_and_rate),
    "λt": ("C/λ", _decay_alone),
}


def law_errors(law: str, reference: Sequence[FreeRun], others: Sequence[FreeRun]) -> list[float]:
    """|T̂ − T|/T of each of the other runs; of one that had not grokked by T what is sure, max(0, T − T̂)/T.

    A law that predicts no number is wrong by all of T.
    """
    predict = LAWS[law][1](reference)
    found = []
    for run in others:
        expected = predict(run)
        if not isfinite(expected):
            found.append(1.0)
        elif run.groks:
            found.append(abs(expected - run.seen) / run.seen)
        else:
            found.append(max(0.0, run.seen - expected) / run.seen)
    return found


def _score(records: Records) -> Measured:
    """Mean error of each law, with percentile intervals over bootstraps of both sets of runs; and κ and ‖W‖*."""
    runs = [run for record in records.values() if (run := free_run_of(record)) is not None]
    reference = [run for run in runs if (run.decay, run.rate) == REFERENCE and run.groks and isfinite(run.efficiency)]
    others = [run for run in runs if (run.decay, run.rate) != REFERENCE]
    if len(reference) < 2 or len(others) < 2:
        return Measured.lacking(min(len(reference), len(others)), 2, "grokked runs at λ = 1, η = 0.001 and others")
    means = {law: float(np.mean(law_errors(law, reference, others))) for law in LAWS}
    generator, drawn = np.random.default_rng(SEED), dict[str, list[float]]()
    for _ in range(BOOTSTRAPS):
        chosen = [[one[i] for i in generator.integers(0, len(one), len(one))] for one in (reference, others)]
        own = {law: float(np.mean(law_errors(law, *chosen))) for law in LAWS}
        for name, value in (own | _gains(own)).items():
            drawn.setdefault(name, []).append(value)
    parts = {name: _estimate(value, drawn[name], len(others)) for name, value in (means | _gains(means)).items()}
    text = ", ".join(f"{law} {100 * means[law]:.0f} %" for law in LAWS)
    note = f"{sum(not run.groks for run in others)} of {len(others)} had not grokked."
    kappa, norm = median(run.efficiency for run in reference), median(run.norm_at_grok for run in reference)
    least = parts["gain of first passage"].low  # of what the norm adds
    more = {"least gain": least, "κ": kappa, "‖W‖*": norm}
    return Measured({"value": parts["first passage"], **parts, **more}, text, len(others), note)


def _estimate(value: float, drawn: Sequence[float], items: int) -> Estimate:
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Estimate(value, float(low), float(high), items)


def _gains(means: Mapping[str, float]) -> dict[str, float]:
    """How much smaller the error of each law of the norm is than that of the same law without the norms."""
    without = means["ηλt since memorisation"]
    return {f"gain of {law}": without - means[law] for law in ("first passage", "norm separation")}


def rate_cells(model: str) -> tuple[str, ...]:
    """The cells of free runs of a model at other λ and η.

    >>> rate_cells("both")[0]
    'decay0.5-rate0.001'
    """
    return tuple(f"decay{decay:g}-rate{rate:g}" for decay, rate in RATES[model])


def score_laws(model: str) -> Quantity:
    """The mean error of each law on runs at other λ and η."""
    return Quantity("error out of cell", cells_of(model, "free", *rate_cells(model)), _score)
