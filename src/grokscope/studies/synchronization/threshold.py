"""§6, the threshold mechanism: the norm at which runs grok, and how fast it falls (Figure 7)."""

from collections.abc import Mapping
from dataclasses import replace
from math import isnan, nan
from statistics import fmean

from grokscope.law import Ending, forked_run, norm_decay, threshold_norm
from grokscope.runs.records import RunRecord
from grokscope.stats import estimate_mean
from grokscope.studies import (
    Claim,
    Estimand,
    Evidence,
    Item,
    Measured,
    Part,
    Quantity,
    Records,
    Rule,
    Selection,
    Stratum,
    cell,
    rule,
)
from grokscope.studies.reduction import median
from grokscope.studies.synchronization import crossprime, readings, series
from grokscope.studies.synchronization.branches import branch_estimand, derive_norms
from grokscope.studies.synchronization.designs import EVERY_ADDITION
from grokscope.studies.synchronization.experiments import DECAYS
from grokscope.timeline import first_step_below
from grokscope.view.charts.figure import Ends, Figure, Panel, Series
from grokscope.view.numbers import format_estimate, format_number
from grokscope.view.table import not_trained

__all__ = ["CLAIMS", "FIGURES"]

LEARNING_RATE = 1e-3
THRESHOLD_NORM = 23.5  # Figure 7: the norm at grokking
DECAY_SHARE = 0.2  # §6: "the fitted rate is ≈ 0.2× the pure-decay value ηλ"
SCALE = 1000  # rates are shown per thousand steps
RUNS = Selection(("crossprime",), task="add_mod97", weight_decays=DECAYS, forks=True)


def _mean(values: list[float]) -> Part:
    return estimate_mean(values) if values else None


def _norm_at_grokking(records: Records) -> Measured:
    """The mean norm at the evaluation at which forks had grokked."""
    runs = [record for record in records.values() if _grokked_after(record)]
    norms = [record.timeline.norm_at_grok for record in runs]
    steps: Part = runs[0].timeline.grokked if len(runs) == 1 else None
    return Measured({"value": _mean(norms), "step": steps}, n=len(norms))


def _grokked_after(record: RunRecord) -> bool:
    """Whether a fork grokked after the fork, with its norm known."""
    run = forked_run(record.spec, record.timeline)
    return run.ending is Ending.GROKKED and not isnan(run.norm_at_grok)


def norm_at_grokking(runs: Selection) -> Quantity:
    """At which norm forks grok."""
    return Quantity("norm at grokking", runs, _norm_at_grokking)


def _norm_rate(records: Records) -> Measured:
    """How fast the log norm falls from the fork to grokking: per thousand steps, and as a share κ of ηλ."""
    found, training = [], next(iter(records.values())).spec.training  # forks at one λ share it
    for record in records.values():
        grok = record.timeline.grokked
        rows = zip(record.evaluations["step"], record.evaluations["norm"], strict=True)
        kept = [(step, norm) for step, norm in rows if grok is not None and step <= grok and norm > 0]
        if len(kept) > 1:
            steps, norms = ([row[i] for row in kept] for i in (0, 1))
            found.append(norm_decay(steps, norms, training.known_weight_decay, training.learning_rate))
    return Measured(
        {
            "rate": _mean([SCALE * one.rate for one in found]),
            "κ": fmean(one.efficiency for one in found) if found else None,
            "decay alone": SCALE * training.learning_rate * training.known_weight_decay,
        },
        n=len(found),
    )


def norm_rate(runs: Selection) -> Quantity:
    """How fast the norm of forks falls."""
    return Quantity("decay of the norm", runs, _norm_rate)


def _threshold(found: Mapping[str, Measured]) -> Measured:
    """τ, the mean over λ of the mean norm at grokking, and its coefficient of variation across λ."""
    cells = {name: one.number() for name, one in found.items() if not isnan(one.number())}
    n = sum(one.n for one in found.values())
    lacking = Measured.lacking(n if len(cells) > 2 else len(cells), 4, "grokked forks at three λ")
    if not cells:
        return lacking
    tau = threshold_norm([*cells.values()])
    measured = Measured.of(
        tau.mean,
        text=f"τ = {format_estimate(tau.mean, 1)}, CV = {format_number(tau.variation, 2)}",
        n=n,
        note=f"Norms at grokking: {', '.join(f'{name}: {format_number(norm, 1)}' for name, norm in cells.items())}.",
        variation=tau.variation,
    )
    return measured if n > 3 and len(cells) > 2 else replace(measured, missing=lacking.missing)


def at_decay(decay: float) -> Selection:
    """The forks of p = 97 at one λ."""
    return replace(RUNS, weight_decays=(decay,))


def own_fork(decay: float) -> Selection:
    """The fork of seed 42 at one λ."""
    return readings.one_run(f"add_mod97_d42_x{decay:g}", "crossprime")


THRESHOLD = Quantity(
    "norm at grokking across λ",
    RUNS,
    _threshold,
    members={f"λ = {decay:g}": norm_at_grokking(at_decay(decay)) for decay in DECAYS},
)


def _figure_7(evidence: Evidence) -> Figure:
    """The norm along forks of p = 97, its value at grokking, and its rate against ηλ."""
    sizes = [len(at_decay(decay).select(evidence.records)) for decay in DECAYS]
    total, most = sum(sizes), max(sizes)
    seeds = f"seed 42 and all {most} seeds, {total} forks" if most > 1 else f"seed 42, {total} forks"
    title = "Norm at grokking, forks of addition mod 97: " + (seeds if total else "no runs")
    found = evidence.measure(THRESHOLD)
    if found.estimate:
        title += f"; τ = {found.number():.1f}, CV = {found.number('variation'):.2f} across λ"
    return Figure(
        "fig-threshold",
        "fig:normthresh",
        title,
        panels=(_along(evidence), _at_grokking(evidence, most), _rates(evidence, most)),
        notes=(
            "τ is the mean over λ of the mean norm at the evaluation at which a fork had grokked; its band is "
            "the 95 % t interval over λ.",
            "A rate is the slope of log ‖W‖ from the fork to grokking, by least squares; without grokking there is "
            "none.",
            "Of many seeds: medians with quartiles in (a), means with 95 % t intervals in (b) and (c).",
            *not_trained({own_fork(decay).names[0] for decay in DECAYS} - evidence.experiment("crossprime").keys()),
        ),
        columns=3,
        panel_size=(2.6, 2.2),
    )


def _lines(evidence: Evidence, ends: Ends) -> tuple[Series, ...]:
    """τ, ours with its interval, and the paper's."""
    paper = Series(f"τ = {THRESHOLD_NORM}, paper", "line", "theory", "paper", ends, (THRESHOLD_NORM,) * 2)
    tau = evidence.measure(THRESHOLD).estimate
    if tau is None:
        return (paper,)
    times = 0 if isnan(tau.low) else 2
    y, low, high = (tau.value,) * 2, (tau.low,) * times, (tau.high,) * times
    label = f"τ = {tau.value:.1f}, ours"
    return Series(label, "line", "grokked", "fit", ends, y, low, high, quantity=THRESHOLD.key), paper


def _along(evidence: Evidence) -> Panel:
    own = [record for decay in DECAYS for record in own_fork(decay).select(evidence.records).values()]
    until = series.last_shown(own, 3000)
    drawn: list[Series] = [*_lines(evidence, (1000, until))]
    for decay in DECAYS:
        role = f"λ = {decay:g}"
        drawn.append(series.seeds_line(evidence, series.quartiles(at_decay(decay), "norm"), until, role, role))
        drawn.append(series.line(evidence, series.curve(own_fork(decay), "norm"), until, role, role))
    for quantity in (norm_at_grokking(own_fork(decay)) for decay in DECAYS):
        found = evidence.measure(quantity)
        if found.n:
            point = (found.number("step"),), (found.number(),)
            drawn.append(Series("grokked, seed 42", "points", "grokked", "run", *point, quantity=quantity.key))
    return Panel("Along the forks of seed 42", "step", "‖W‖", tuple(drawn), log_y=True, x_range=(1000, until))


def _at_grokking(evidence: Evidence, seeds: int) -> Panel:
    return Panel(
        "At grokking",
        "λ after the fork",
        "‖W‖",
        series=(
            *_lines(evidence, (0.5, 5.5)),
            *_seeds(evidence, {decay: norm_at_grokking(at_decay(decay)) for decay in DECAYS}, "value", seeds),
            _own(evidence, {d: norm_at_grokking(own_fork(d)) for d in DECAYS}, "value", "grokked, seed 42", "grokked"),
        ),
        x_ticks=_ticks(),
        x_range=(0.5, 5.5),
    )


def _rates(evidence: Evidence, seeds: int) -> Panel:
    rates = {decay: norm_rate(at_decay(decay)) for decay in DECAYS}
    paper = tuple(DECAY_SHARE * (SCALE * LEARNING_RATE * decay) for decay in DECAYS)
    return Panel(
        "How fast it falls",
        "λ after the fork",
        "rate (per 1,000 steps)",
        (
            replace(_own(evidence, rates, "decay alone", "decay alone, ηλ", "theory"), kind="line", source="fit"),
            Series(f"{DECAY_SHARE} ηλ, paper", "line", "theory", "paper", DECAYS, paper),
            *_seeds(evidence, rates, "rate", seeds),
            _own(evidence, {decay: norm_rate(own_fork(decay)) for decay in DECAYS}, "rate", "rate, seed 42", "norm"),
        ),
        _ticks(),
        x_range=(0.5, 5.5),
    )


def _ticks() -> tuple[tuple[float, str], ...]:
    return tuple((decay, f"{decay:g}") for decay in DECAYS)


def _seeds(evidence: Evidence, cells: Mapping[float, Quantity], part: str, seeds: int) -> tuple[Series, ...]:
    """Means over seeds by λ; none where there is one seed."""
    known = [decay for decay, quantity in cells.items() if evidence.measure(quantity).n]
    drawn = series.medians(
        (cell(evidence, cells[decay], part) for decay in known), "validation", f"mean of {seeds} seeds"
    )
    return (replace(drawn, x=tuple(known), texts=()),) if seeds > 1 else ()


def _own(evidence: Evidence, cells: Mapping[float, Quantity], part: str, label: str, role: str) -> Series:
    """A part of each quantity by λ, where a fork grokked."""
    found = {decay: evidence.measure(quantity) for decay, quantity in cells.items()}
    values = {decay: one.number(part) for decay, one in found.items() if one.n and not one.missing}
    keys = "; ".join(cells[decay].key for decay in values)
    return Series(label, "points", role, "run", tuple(values), tuple(values.values()), quantity=keys)


LABELS = ("p = 53", "p = 97", "p = 131")


def _norms(
    name: str,
    text: str,
    effect: tuple[str | tuple[str, ...], str],
    strata: tuple[Stratum, ...] = (crossprime.THREE[1],),
) -> Estimand:
    return branch_estimand(name, strata, DECAYS, {"norm": "mean", "κ": "mean"}, text, effect, derive_norms)


def _read_waiting(record: RunRecord) -> Mapping[str, float]:
    """Steps from the first evaluation with the norm at which a run groks to its grokking."""
    grokked, norm = record.timeline.grokked, record.timeline.norm_at_grok
    if grokked is None or isnan(norm):
        return {"waits": nan}
    steps = [int(step) for step in record.evaluations["step"]]
    reached = first_step_below(steps, record.evaluations["norm"], norm)
    return {"waits": nan if reached is None else float(grokked - reached)}


CLAIMS = (
    Claim(
        "threshold-norm",
        "Branches of addition mod 97 grok at a weight norm of 23.5 in the mean, within 10 %.",
        "§6, Figure 7",
        "τ = 23.5",
        _norms("norm at grokking", "τ = {τ:.1f}", ("τ", ".1f")),
        Rule(rule.within(0.1, 23.5, "τ")),
        "fig-threshold",
    ),
    Claim(
        "threshold-variation",
        "At p = 97 the norm at grokking varies little across λ: coefficient of variation of at most 0.16 (0.13 "
        "reported).",
        "Abstract, §6, Figure 7",
        "CV = 0.13",
        _norms("variation across λ of the norm at grokking", "CV = {CV:.2f}", ("CV", ".2f")),
        Rule(rule.at_most(0.16, "CV")),
        "fig-threshold",
    ),
    Claim(
        "threshold-every-prime",
        "The norm at grokking is the same at λ = 1 and λ = 5, within 10 %, at p = 53, 97 and 131.",
        "§6: grokking occurs at a fixed norm, tested here for a trend and on three primes",
        "the same",
        _norms(
            "norm at grokking at λ = 5 over that at λ = 1",
            ", ".join(f"{label}: {{trend ({label}):.2f}}" for label in LABELS),
            (tuple(f"trend ({label})" for label in LABELS), ".2f"),
            crossprime.EVERY_DRAW,
        ),
        Rule.of_many(rule.every(rule.between(0.9, 1.1), *(f"trend ({label})" for label in LABELS))),
        "fig-threshold",
        "new",
    ),
    Claim(
        "threshold-first-passage",
        "A run groks as soon as its norm has fallen to the value at which it groks: within 500 steps in the median, at "
        "every prime.",
        "§6: a threshold, tested here",
        "at once",
        Estimand(
            "steps from the norm of grokking to grokking",
            EVERY_ADDITION,
            _read_waiting,
            {f"waits {one.name}": median("waits", one.name) for one in EVERY_ADDITION},
            "{waits add_mod53:,.0f} at p = 53",
            (tuple(f"waits {one.name}" for one in EVERY_ADDITION), ",.0f"),
        ),
        Rule.of_many(rule.every(rule.at_most(500), *(f"waits {one.name}" for one in EVERY_ADDITION))),
        "fig-threshold",
        "new",
    ),
    Claim(
        "decay-rate",
        "From the fork to grokking the norm decays at about 0.2 of the rate ηλ of weight decay alone: 0.15 to 0.25.",
        "§6, Figure 7",
        "0.2",
        _norms("decay of the norm as a share of ηλ", "{mean κ:.2f}", ("mean κ", ".2f")),
        Rule(rule.between(0.15, 0.25, "mean κ")),
        "fig-threshold",
    ),
)
FIGURES = (Item("fig-threshold", ("crossprime",), _figure_7),)
