"""Quantities of forked runs that several sections show: Δt from the fork to grokking, and the laws fitted to it."""

from collections import Counter
from dataclasses import replace
from math import inf, isnan
from typing import Literal

import numpy as np

from grokscope.errors import InputError
from grokscope.law import (
    CensoredFit,
    Ending,
    ForkedRun,
    fit_censored,
    fit_constant,
    fit_each_draw,
    fit_exponent,
    fit_mean_constant,
    forked_run,
)
from grokscope.law.censored import CensoredForm
from grokscope.runs.records import RunRecord
from grokscope.stats import Estimate, clustered_share, estimate_mean, known
from grokscope.studies import Measured, Part, Quantity, Records, Selection
from grokscope.studies.synchronization import readings
from grokscope.timeline import Outcome
from grokscope.view.numbers import format_estimate, format_number

__all__ = ["law", "likely_law", "r_squared_of_draws", "times_to_grok"]

NAMES = {"constant": "C", "exponent": "α", "offset": "a"}
UNSTABLE = (Outcome.UNSTABLE, Outcome.DIVERGED)
Start = Literal["fork", "FSD crossing"]


def _forked_runs(records: Records, start: Start) -> list[ForkedRun]:
    """The forks with Δt from the fork, or from FSD's crossing; one that never crossed has no second Δt."""
    if start == "fork":
        return readings.forked_runs(records)
    forks = [record for record in records.values() if record.spec.fork is not None]
    return [_from_crossing(record, step) for record in forks if (step := record.timeline.sync.step) is not None]


def _from_crossing(record: RunRecord, crossed: int) -> ForkedRun:
    run, delay = forked_run(record.spec, record.timeline), crossed - record.timeline.first
    left = None if run.steps_to_grok is None else run.steps_to_grok - delay
    return replace(run, steps_to_grok=left, watched=run.watched - delay)


def _needing(measured: Measured, needed: int) -> Measured:
    """What was measured, marked as missing for a claim where it rests on fewer forks than needed."""
    lacking = Measured.lacking(measured.n, needed, "forks").missing
    return replace(measured, missing=lacking) if measured.n < needed else measured


def _times_to_grok(records: Records, start: Start, needed: int) -> Measured:
    """How long forks take to grok, and how those that do not end; of one fork alone also its steps and its outcome."""
    runs = _forked_runs(records, start)
    endings = Counter(run.ending for run in runs)
    waiting = [run for run in runs if run.ending is not Ending.BEFORE]
    # A run that became unstable will not grok: it stays at risk as long as any, and never leaves for its own reasons.
    longest = int(max((run.watched for run in waiting), default=0))
    steps = [None if run.steps_to_grok is None else int(run.steps_to_grok) for run in waiting]
    grokked = [float(step) for step in steps if step is not None]
    draws = [run.draw for run in waiting]
    never, unstable = len(steps) - len(grokked), sum(run.outcome in UNSTABLE for run in runs)
    nothing = "never" if waiting else "before the fork"
    parts: dict[str, Part] = {
        "forks": len(runs),
        "in the fit": endings[Ending.GROKKED] + endings[Ending.CENSORED],
        "before": endings[Ending.BEFORE],
        **{
            str(kind): clustered_share((run.ending is kind for run in waiting), draws)
            for kind in (Ending.GROKKED, Ending.CENSORED, Ending.FAILED)
        },
        "median": readings.of_independent(readings.median_steps(steps, [longest] * len(steps)), draws),
        "mean": readings.of_independent(estimate_mean(grokked), draws) if grokked else nothing,
        "std": float(np.std(grokked)) if grokked else None,
        "never grok": never,
        "unstable after grokking": sum(run.outcome is Outcome.UNSTABLE_AFTER for run in runs),
    }
    if len(runs) == 1:
        parts |= _one_fork(runs[0], next(iter(records.values())))
    text, note = f"{never} of {len(runs)} never grok", f"{unstable} of {len(runs)} are unstable."
    return _needing(Measured(parts, text, len(runs), note), needed)


def _one_fork(run: ForkedRun, record: RunRecord) -> dict[str, Part]:
    return {
        "grok step": readings.step_part(record.timeline.grokked),
        "Δt": readings.time_to_grok(run),
        "steps": inf if run.steps_to_grok is None else float(run.steps_to_grok),
        "ending": str(run.ending),
        "outcome": str(run.outcome),
    }


def times_to_grok(runs: Selection, cadence: int | None = None, start: Start = "fork", needed: int = 1) -> Quantity:
    """Δt of one fork or of many, from the fork or from FSD's crossing."""
    return Quantity("Δt", runs, _times_to_grok, cadence, {"start": start, "needed": needed})


def _law(records: Records, start: Start, needed: int) -> Measured:
    """Δt = C/λ by the paper's estimator, C = mean(λΔt) over the mean Δt of each λ; empty where it cannot be tested."""
    runs = _forked_runs(records, start)
    grokked = sum(run.ending is Ending.GROKKED for run in runs)
    try:
        fit = fit_mean_constant(runs)
    except InputError as reason:
        text = "not determined" if grokked else "none grokked"
        return _needing(Measured(text=text, n=len(runs), note=f"No fit: {reason}."), needed)
    constant = fit.parameters["constant"]
    draws = len({run.draw for run in runs})
    return _needing(
        Measured(
            {"C": constant, "R²": fit.r_squared},
            text=f"C = {_format(constant, 0)}, R² = {format_number(fit.r_squared, 2)}",
            n=len(runs),
            note=f"{grokked} of {len(runs)} forks of {draws} {'parent' if draws == 1 else 'parents'} are in the fit.",
        ),
        needed,
    )


def law(runs: Selection, cadence: int | None = None, start: Start = "fork", needed: int = 1) -> Quantity:
    """Δt = C/λ by the paper's estimator, with R² (Tables 9 and 10)."""
    return Quantity("C = mean(λΔt)", runs, _law, cadence, {"start": start, "needed": needed})


def _likely_law(records: Records, form: CensoredForm, start: Start, dropped: bool, needed: int) -> Measured:
    """A law by maximum likelihood; with runs that have not yet grokked as censored, or without them."""
    runs = _forked_runs(records, start)
    kept = [run for run in runs if run.ending is Ending.GROKKED or not dropped]
    measured = Measured(text="not determined", n=len(runs))
    try:
        fit = (
            fit_censored(kept, form) if form == "offset" else (fit_exponent if form == "power" else fit_constant)(kept)
        )
    except InputError:  # too few points to test the law
        return _needing(measured, needed)
    parts: dict[str, Part] = {NAMES[name]: value for name, value in fit.parameters.items()}
    note = "By maximum likelihood, with runs that have not yet grokked as censored."
    return _needing(replace(measured, parts=parts | {"AICc": _corrected(fit)}, note=note), needed)


def _corrected(fit: CensoredFit) -> float | None:
    """AICc = AIC + 2k(k + 1)/(n − k − 1), with k parameters, σ among them (Hurvich and Tsai, 1989)."""
    size, k = fit.endings[Ending.GROKKED] + fit.endings[Ending.CENSORED], len(fit.parameters) + 1
    return fit.aic + 2 * k * (k + 1) / (size - k - 1) if size > k + 1 else None


def likely_law(
    runs: Selection, form: CensoredForm, start: Start = "fork", dropped: bool = False, needed: int = 1
) -> Quantity:
    """C/λ, C λ^−α or a + C/λ by maximum likelihood."""
    return Quantity(
        "law by maximum likelihood",
        runs,
        _likely_law,
        None,
        options={"form": form, "start": start, "dropped": dropped, "needed": needed},
    )


def _r_squared_of_draws(records: Records, needed: int) -> Measured:
    """R² of the paper's law fitted to each replicate alone: the lowest, the highest, and how far apart they are."""
    runs = readings.forked_runs(records)
    fits = fit_each_draw(runs).values() if any(run.ending is Ending.GROKKED for run in runs) else ()
    found = known(fit.r_squared for fit in fits)
    measured = _needing(
        Measured(text="none grokked", n=len(runs), note="The law is fitted to each replicate alone."), needed
    )
    if not found:
        return replace(measured, n=0)
    low, high = min(found), max(found)
    ends = {"lowest": readings.counted(low, len(found)), "highest": readings.counted(high, len(found))}
    text = f"{format_number(low, 2)} to {format_number(high, 2)}"
    return replace(measured, parts=ends | {"range": high - low}, text=text, n=len(found))


def r_squared_of_draws(runs: Selection, needed: int = 1) -> Quantity:
    """The range of R² over single replicates (Table 10)."""
    return Quantity("R² of single replicates", runs, _r_squared_of_draws, None, {"needed": needed})


def _format(part: Part, digits: int) -> str:
    """A number as text, with its interval where it has one; nothing for words."""
    if isinstance(part, Estimate):
        return format_estimate(part, digits)
    return format_number(part, digits) if isinstance(part, float) and not isnan(part) else ""
