"""Figures of forked runs: the intervention on weight decay, and the law across primes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isnan, nan

import numpy as np

from grokscope.law import Ending, ForkedRun, LawFit, forked_run
from grokscope.runs.records import RunRecord
from grokscope.stats import kaplan_meier
from grokscope.studies.evidence import Evidence
from grokscope.studies.figures.captions import THEORY_CONSTANT
from grokscope.studies.figures.reading import OPEN, curve, ends_of, paper_points, shown_until
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.studies.tables.forks import DECAYS, FITTED, PRINTED_RUN, STABLE, law_of, left_out, pooled_wait
from grokscope.studies.tables.reading import REPORTED_LOOKS, seen_every, span_of
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.table import not_trained

__all__ = ["fig_crossprime", "fig_wd"]

WORDS = {Ending.CENSORED: "never", Ending.FAILED: "unstable", Ending.BEFORE: "before"}
SMOOTH = 41  # points of a drawn law


def fig_wd(evidence: Evidence) -> Figure:
    """Figure 3: accuracy after the fork by λ, and Δt against 3,000/λ."""
    study = evidence.study("fork")
    own = {decay: study.get(f"{PRINTED_RUN}_x{decay}") for decay in DECAYS}
    until = shown_until(own.values(), 6000)
    curves = tuple(
        curve(own[decay], "validation_accuracy", until, f"λ = {decay}", f"λ = {decay}")
        for decay in reversed(DECAYS)  # the steady ones above the unstable
    )
    panels = [
        Panel("Seed 42 by λ", "step", "validation accuracy", curves, x_range=(1000, until), y_range=(-0.06, 1.08))
    ]
    seeds = {name.rpartition("_x")[0] for name in study}
    if len(seeds) > 1:
        panels.append(_shares(study, until))
    panels.append(_waits(study))
    others = f" and all seeds, {_seeds_of(study)} a λ" if len(seeds) > 1 else ""
    counts = f"seed 42{others}, {len(study)} branches" if study else "no runs"
    title = f"Weight decay raised at step 1,000: {counts}"
    notes = (
        f"Δt is seen every {PRINTED_LOOKS} steps, as in the paper; the curves every 100. Adam's moments are kept.",
        "Of many seeds: the share grokked is 1 − Kaplan–Meier, and a branch that became unstable stays among those "
        "that may yet grok; Δt is the median with its 95 % interval.",
        *((OPEN,) if len(seeds) > 1 else ()),
        *not_trained({f"{PRINTED_RUN}_x{decay}" for decay in DECAYS} - study.keys()),
    )
    size = (3.3, 2.4) if len(panels) < 3 else (2.6, 2.2)
    return Figure("fig-wd", "fig:wd_intervention", title, tuple(panels), notes, len(panels), size)


def _shares(study: Mapping[str, RunRecord], until: int) -> Panel:
    """The share of all seeds that has grokked, by λ."""
    series = []
    for decay in DECAYS:
        runs = [record.timeline for name, record in study.items() if name.endswith(f"_x{decay}")]
        if runs:
            longest = max(run.last for run in runs)
            steps = [longest if run.grokked is None else run.grokked for run in runs]
            found = kaplan_meier(steps, [run.grokked is not None for run in runs])
            kept = [i for i, time in enumerate(found.times) if time <= until]
            x = (1000.0, *(float(found.times[i]) for i in kept), float(until))
            y = (0.0, *(1 - float(found.survival[i]) for i in kept))
            low = (0.0, *(1 - _known(float(found.high[i]), 0.0) for i in kept))
            high = (0.0, *(1 - float(found.low[i]) for i in kept))
            y, low, high = ((*part, part[-1]) for part in (y, low, high))
            series.append(Series(f"λ = {decay}", "step", f"λ = {decay}", "run", x, y, low, high))
    title = f"All seeds, {_seeds_of(study)} a λ, 95 % bands"
    return Panel(title, "step", "share grokked", tuple(series), x_range=(1000, until), y_range=(-0.06, 1.08))


def _seeds_of(study: Mapping[str, RunRecord]) -> str:
    """How many seeds a λ has."""
    return span_of(Counter(name.rpartition("_x")[2] for name in study).values())


def _known(value: float, otherwise: float) -> float:
    return otherwise if isnan(value) else value


def _waits(study: Mapping[str, RunRecord]) -> Panel:
    """Δt by λ: observed, printed, and by the law."""
    printed = REPORTED["tab:wd_intervention"]
    runs = {name: forked_run(record.spec, seen_every(record).timeline) for name, record in study.items()}
    own = {decay: runs.get(f"{PRINTED_RUN}_x{decay}") for decay in DECAYS}
    places = tuple(range(len(DECAYS)))
    series: list[Series] = []
    if study:
        values, words = zip(*(_wait(own[decay]) for decay in DECAYS), strict=True)
        series.append(Series("Δt, seed 42", "bars", "restored", "run", places, values, (), (), words, width=0.6))
    if len(runs) > len(DECAYS):
        cells = [pooled_wait([run for name, run in runs.items() if name.endswith(f"_x{d}")])[0] for d in DECAYS]
        texts = tuple("never" if cell.ours == "never" else "" for cell in cells)
        series.append(Series("Δt, median of all seeds", "points", "mem", "seeds", places, *ends_of(cells), texts))
    fit = law_of([run for run in own.values() if run], STABLE)
    if fit:
        constant = fit.parameters["constant"].value
        line = tuple(constant / float(decay) for decay in DECAYS)
        series.append(Series(f"{constant:,.0f}/λ, our fit to λ ≤ 3", "line", "restored", "fit", places, line))
    theory = tuple(THEORY_CONSTANT / float(decay) for decay in DECAYS)
    series.append(Series(f"{THEORY_CONSTANT:,}/λ, paper", "line", "theory", "paper", places, theory))
    series.append(paper_points({i: printed.get(decay, "wait") for i, decay in enumerate(DECAYS)}, "Δt, paper"))
    ticks = tuple(enumerate(DECAYS))
    return Panel("Steps from fork to grokking", "λ after the fork", "Δt (steps)", tuple(series), ticks)


def _wait(run: ForkedRun | None) -> tuple[float, str]:
    if run is None:
        return nan, "no run"
    if run.ending is Ending.GROKKED and run.steps_to_grok is not None:
        return float(run.steps_to_grok), ""
    return nan, WORDS[run.ending]


def fig_crossprime(evidence: Evidence) -> Figure:
    """Figure 6: Δt against λ for three primes with C_p/λ, on plain and on logarithmic axes."""
    study = evidence.study("crossprime")
    runs = [forked_run(record.spec, record.timeline) for record in study.values() if record.spec.fork]
    by_prime = {p: [run for run in runs if run.task == f"add_mod{p}"] for p in REPORTED["tab:crossprime"].rows}
    series: list[Series] = []
    for modulus, own in by_prime.items():
        series += [*_law(modulus, own), _means(modulus, own), _printed_means(modulus)]
    fits = [fit for own in by_prime.values() if (fit := law_of(own, FITTED))]
    ticks = tuple((float(decay), decay) for decay in ("1", "2", "3", "5"))
    reference = _reference(fits)
    axes = {"x_label": "λ after the fork", "y_label": "Δt (steps)", "x_ticks": ticks}
    panels = (
        Panel("Δt against λ, mean ± std of draws", series=tuple(series), x_range=(0.6, 5.4), **axes),  # type: ignore[arg-type]
        Panel(
            "The same on logarithmic axes",
            series=(*reference, *series),
            log_x=True,
            log_y=True,
            x_range=(0.85, 6.0),
            **axes,  # type: ignore[arg-type]
        ),
    )
    draws = span_of(len({run.draw for run in own}) for own in by_prime.values() if own)
    counts = f"{len(runs)} forks, {draws} draws a prime" if runs else "no runs"
    title = f"Δt = C/λ across primes: {counts}"
    notes = (
        "Δt is seen every 100 steps; mean and population standard deviation of the draws that grokked after the fork.",
        "Draws are seeds for p = 97, data orders for p = 53 and 131. C = mean(λΔt) over λ, the paper's estimator.",
        *left_out(runs),
        *not_trained({f"add_mod{p}" for p, own in by_prime.items() if not own}),
    )
    return Figure("fig-crossprime", "fig:crossprime", title, panels, notes, 2)


def _law(modulus: str, runs: Sequence[ForkedRun]) -> list[Series]:
    fit = law_of(runs, FITTED)
    if fit is None:
        return []
    constant = fit.parameters["constant"]
    x = tuple(np.geomspace(1, 5, SMOOTH).tolist())
    interval = f" [{constant.low:,.0f}, {constant.high:,.0f}]" if constant.low == constant.low else ""
    label = f"p = {modulus}: C = {constant.value:,.0f}{interval}, R² = {fit.r_squared:.2f}"
    return [Series(label, "line", f"p = {modulus}", "fit", x, tuple(constant.value / decay for decay in x))]


def _means(modulus: str, runs: Sequence[ForkedRun]) -> Series:
    found: dict[float, list[float]] = {}
    for run in runs:
        if run.ending is Ending.GROKKED and run.steps_to_grok is not None:
            found.setdefault(float(run.weight_decay), []).append(float(run.steps_to_grok))
    kept = sorted(found)
    means = [float(np.mean(found[decay])) for decay in kept]
    spreads = [float(np.std(found[decay])) for decay in kept]
    low, high = (tuple(m + sign * s for m, s in zip(means, spreads, strict=True)) for sign in (-1, 1))
    return Series(f"p = {modulus}, ours", "points", f"p = {modulus}", "run", tuple(kept), tuple(means), low, high)


def _printed_means(modulus: str) -> Series:
    printed = REPORTED["tab:crossprime"]
    rows = [
        (float(d), printed.get(modulus, f"mean {d}"), printed.get(modulus, f"std {d}")) for d in ("1", "2", "3", "5")
    ]
    known = [(decay, m, s) for decay, m, s in rows if isinstance(m, int | float) and isinstance(s, int | float)]
    x, y = tuple(row[0] for row in known), tuple(row[1] for row in known)
    low, high = tuple(m - s for _, m, s in known), tuple(m + s for _, m, s in known)
    return Series(f"p = {modulus}, paper", "points", f"p = {modulus}", "paper", x, y, low, high)


def _reference(fits: Sequence[LawFit]) -> tuple[Series, ...]:
    """A line of slope −1 below the data."""
    if not fits:
        return ()
    least = 0.8 * min(fit.parameters["constant"].value for fit in fits)
    return (Series("slope −1", "line", "null", "null", (1.0, 5.0), (least, least / 5)),)
