"""§6: Δt = C/λ on three primes (Table 10, Figure 6)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan, nan

import numpy as np

from grokscope.errors import InputError
from grokscope.law import Ending, ForkedRun, fit_mean_constant
from grokscope.stats import Estimate, jackknife, known
from grokscope.studies import Claim, Evidence, Item, Measured, Quantity, Records, Rule, Selection, cell, rule
from grokscope.studies.synchronization import readings
from grokscope.studies.synchronization.experiments import DECAYS, TABLE_1
from grokscope.studies.synchronization.forks import across, law, r_squared_of_draws, times_to_grok
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.numbers import format_estimate, format_number, format_range
from grokscope.view.table import Cell, Column, Row, Table, not_trained, text

__all__ = [
    "ALL_FORKS",
    "CLAIMS",
    "FIGURES",
    "FORKS",
    "LABELS",
    "LAWS",
    "TABLES",
    "forks",
    "over_law",
    "task_law",
    "times_at",
]

PRIMES = ("53", "97", "131")
LABELS = tuple(f"p = {prime}" for prime in PRIMES)
DRAWS = 5  # reported of each cell of Table 10
FORKS = DRAWS * len(DECAYS)  # reported of each prime
REPORTED_FORKS = {f"add_mod{p}_d{draw}_x{d:g}" for p in PRIMES for draw in TABLE_1["add_mod97"] for d in DECAYS}
SMOOTH = 41  # points of a drawn law
NOTES = (
    "Δt is evaluated every 100 steps; mean and population standard deviation of the replicates that grokked after the "
    "fork.",
    "Replicates differ in the seed (p = 97) or in the data order (p = 53, 131)",
)


def forks(task: str, *decays: float, experiment: str = "crossprime") -> Selection:
    """The forks of a task, at some λ or at all that the law is fitted to."""
    return Selection((experiment,), task=task, weight_decays=decays or DECAYS, forks=True)


def times_at(task: str, decay: float, experiment: str = "crossprime") -> Quantity:
    """Δt of a task's forks at one λ."""
    return times_to_grok(forks(task, decay, experiment=experiment), needed=DRAWS)


def task_law(task: str, experiment: str = "crossprime") -> Quantity:
    """The paper's law of one task, from the fork."""
    return law(forks(task, experiment=experiment), needed=FORKS)


def over_law(runs: Sequence[ForkedRun], decay: float) -> Estimate:
    """The mean Δt at one λ over the law's, with an interval that leaves a replicate out of both, one at a time."""

    def ratio(kept: Sequence[ForkedRun]) -> float:
        try:
            fit = fit_mean_constant(kept)
        except InputError:  # too few points to have a law
            return nan
        found = (fit.observed / fit.predicted)[fit.weight_decay == decay]
        return float(found[0]) if len(found) else nan

    draws = dict.fromkeys(run.draw for run in runs)
    return jackknife(ratio(runs), [ratio([run for run in runs if run.draw != draw]) for draw in draws], is_log=True)


def _over_law(records: Records, decay: float) -> Measured:
    return Measured.of(over_law(readings.forked_runs(records), decay), n=len(records))


def _flattening(found: Mapping[str, Measured]) -> Measured:
    """The mean Δt at λ = 5 against C/5."""
    times, fitted, ratio = (found[name] for name in ("Δt", "law", "ratio"))
    mean, predicted = times.parts.get("mean"), fitted.number("C") / 5
    missing = times.missing or fitted.missing
    if not isinstance(mean, Estimate) or mean.items < 2:
        return Measured(text="too few grok to have a mean", n=fitted.n, missing=missing)
    return Measured(
        {"value": mean, "Δt over C/5": ratio.parts.get("value")},
        text=f"{format_estimate(mean)} against C/5 = {format_number(predicted)}",
        n=fitted.n,
        note=f"{mean.items} runs grokked at λ = 5.",
        missing=missing,
    )


def _grokked_draws(found: Mapping[str, Measured]) -> Measured:
    """How many forks grok at λ = 5."""
    counts = {
        name: (one.number("forks") - one.number("never grok") - one.number("before"), one.n)
        for name, one in found.items()
    }
    shown = ", ".join(f"{name}: {count:g} of {n} grok at λ = 5" for name, (count, n) in counts.items() if n)
    return Measured(
        {name: count for name, (count, _) in counts.items()},
        shown,
        sum(n for _, n in counts.values()),
        "",
        missing="" if shown else "No fork at λ = 5 is there.",
    )


def _table_10(evidence: Evidence) -> Table:
    """Mean ± std of Δt over replicates, C_p and R², for three primes."""
    reported = REPORTED["tab:crossprime"]
    return Table(
        "tab-crossprime",
        reported.label,
        "The timing law across primes",
        columns=(
            Column("p"),
            *(column for d in DECAYS for column in (Column(f"Δt(λ = {d:g})"), Column(f"std(λ = {d:g})"))),
            Column("C_p"),
            Column("R²", digits=2),
            *(Column(f"{end} R² of a replicate", digits=2) for end in ("Lowest", "Highest")),
        ),
        rows=tuple(_row(evidence, prime) for prime in reported.rows),
        notes=(
            NOTES[0],
            f"{NOTES[1]}; means have 95 % t intervals over replicates, C such that leave out one replicate at a time.",
            "Means over evaluations are late, by half a cadence on average: C here is the paper's estimator, and "
            "sup:law has the fit that allows for it.",
            *_left_out(evidence),
            *not_trained(REPORTED_FORKS - evidence.experiment("crossprime").keys()),
        ),
    )


def _row(evidence: Evidence, prime: str) -> Row:
    fit, reported = task_law(f"add_mod{prime}"), REPORTED["tab:crossprime"]
    draws = r_squared_of_draws(fit.runs, FORKS)
    parts = ((fit, "C", "constant"), (fit, "R²", "r_squared"), (draws, "lowest", "low"), (draws, "highest", "high"))
    return (
        text(prime),
        *(one for decay in DECAYS for one in _mean_and_spread(evidence, prime, decay)),
        *(cell(evidence, quantity, part, reported.get(prime, name)) for quantity, part, name in parts),
    )


def _mean_and_spread(evidence: Evidence, prime: str, decay: float) -> tuple[Cell, Cell]:
    """Mean and standard deviation of Δt; the mean's interval only where there are more replicates than reported."""
    reported, quantity = REPORTED["tab:crossprime"], times_at(f"add_mod{prime}", decay)
    mean, std = (cell(evidence, quantity, part, reported.get(prime, f"{part} {decay:g}")) for part in ("mean", "std"))
    n = evidence.measure(quantity).n
    counted = n if isinstance(mean.ours, str) else mean.n  # "never", or "before the fork"
    return replace(mean, n=counted, interval=mean.interval if n > DRAWS else None), std


def _left_out(evidence: Evidence) -> tuple[str, ...]:
    """How many runs are not in the means, and why."""
    runs = readings.forked_runs(evidence.experiment("crossprime"))
    counts = {ending: sum(run.ending is ending for run in runs) for ending in Ending if ending is not Ending.GROKKED}
    shown = [f"{count} {ending}" for ending, count in counts.items() if count]
    return (f"Of {len(runs)} forks, not in the means: {', '.join(shown)}.",) if shown else ()


def _figure_6(evidence: Evidence) -> Figure:
    """Δt against λ for three primes with C_p/λ, on plain and on logarithmic axes."""
    drawn = tuple(one for prime in PRIMES for one in _prime_series(evidence, prime))
    axes, ticks = ("λ after the fork", "Δt (steps)"), tuple((decay, f"{decay:g}") for decay in DECAYS)
    above = (*_reference(evidence), *drawn)
    runs = {p: readings.forked_runs(forks(f"add_mod{p}").select(evidence.records)) for p in PRIMES}
    draws = format_range(len({run.draw for run in own}) for own in runs.values() if own)
    total = sum(map(len, runs.values()))
    return Figure(
        "fig-crossprime",
        "fig:crossprime",
        f"Δt = C/λ across primes: {f'{total} forks, {draws} replicates per prime' if total else 'no runs'}",
        panels=(
            Panel("Δt against λ, mean ± std of replicates", *axes, drawn, ticks, x_range=(0.6, 5.4)),
            Panel("The same on logarithmic axes", *axes, above, ticks, log_x=True, log_y=True, x_range=(0.85, 6.0)),
        ),
        notes=(
            NOTES[0],
            f"{NOTES[1]}. C = mean(λΔt) over λ, the paper's estimator.",
            *_left_out(evidence),
            *not_trained({f"add_mod{prime}" for prime, own in runs.items() if not own}),
        ),
        columns=2,
    )


def _prime_series(evidence: Evidence, prime: str) -> list[Series]:
    """The law of a prime where it has one, our means, and the reported ones."""
    role, quantity = f"p = {prime}", task_law(f"add_mod{prime}")
    fit, x = evidence.measure(quantity), tuple(np.geomspace(1, 5, SMOOTH).tolist())
    y = tuple(fit.number("C") / decay for decay in x)
    law_line = Series(f"{role}: {fit.text}", "line", role, "fit", x, y, quantity=quantity.key)
    return [*([] if isnan(y[0]) else [law_line]), _means(evidence, prime), _reported_means(prime)]


def _means(evidence: Evidence, prime: str) -> Series:
    """Mean Δt with a standard deviation to both sides, where a fork grokked."""
    quantities = {decay: times_at(f"add_mod{prime}", decay) for decay in DECAYS}
    found = {decay: evidence.measure(quantity) for decay, quantity in quantities.items()}
    rows = {d: (one.number("mean"), one.number("std")) for d, one in found.items() if not isnan(one.number("std"))}
    return _points(f"p = {prime}, ours", prime, "run", rows, "; ".join(quantities[decay].key for decay in rows))


def _reported_means(prime: str) -> Series:
    reported = REPORTED["tab:crossprime"]
    found = {d: (reported.get(prime, f"mean {d:g}"), reported.get(prime, f"std {d:g}")) for d in DECAYS}
    rows = {d: (float(m), float(s)) for d, (m, s) in found.items() if isinstance(m, int) and isinstance(s, int)}
    return _points(f"p = {prime}, paper", prime, "paper", rows, "")


def _points(label: str, prime: str, source: str, rows: Mapping[float, tuple[float, float]], keys: str) -> Series:
    means = tuple(mean for mean, _ in rows.values())
    low, high = (tuple(mean + sign * std for mean, std in rows.values()) for sign in (-1, 1))
    return Series(label, "points", f"p = {prime}", source, tuple(rows), means, low, high, quantity=keys)  # type: ignore[arg-type]


def _reference(evidence: Evidence) -> tuple[Series, ...]:
    """A line of slope −1 below the data."""
    constants = known(evidence.measure(task_law(f"add_mod{prime}")).number("C") for prime in PRIMES)
    least = 0.8 * min(constants, default=nan)
    return (Series("slope −1", "line", "null", "null", (1.0, 5.0), (least, least / 5)),) if constants else ()


ALL_FORKS = Selection(("crossprime",), forks=True)
LAWS = {label: task_law(f"add_mod{prime}") for label, prime in zip(LABELS, PRIMES, strict=True)}
SINGLE_DRAWS = {label: r_squared_of_draws(quantity.runs, FORKS) for label, quantity in LAWS.items()}
AT_FIVE = {label: times_at(f"add_mod{prime}", 5.0) for label, prime in zip(LABELS, PRIMES, strict=True)}
FLATTENING = {
    "Δt": AT_FIVE["p = 97"],
    "law": LAWS["p = 97"],
    "ratio": Quantity("mean Δt over the law's", forks("add_mod97"), _over_law, options={"decay": 5.0}),
}
CLAIMS = (
    Claim(
        "law-fits-three-primes",
        "Δt = C/λ fits the seed-averaged Δt of three primes.",
        "Abstract, §6, Table 10, Figure 6",
        "R² = 0.89, 0.94, 0.99",
        across("R² of the cells' means", ALL_FORKS, LAWS, "R²", 2),
        Rule(rule.every(rule.at_least(0.885), *LABELS), rule.every(rule.at_least(0.495), *LABELS)),  # to two digits
        "tab-crossprime",
    ),
    Claim(
        "law-constant-falls",
        "C_p decreases with p.",
        "§6, Table 10",
        "4,780, 2,727, 1,760",
        across("C = mean(λΔt) of each prime", ALL_FORKS, LAWS, "C", 0),
        Rule(rule.falling(*LABELS, apart=True), rule.falling(*LABELS)),
        "tab-crossprime",
    ),
    Claim(
        "law-per-draw",
        "R² of single draws varies widely.",
        "§6, Table 10",
        "0.49–0.95, 0.69–1.00, 0.96–0.99",
        across("range of R² over single replicates", ALL_FORKS, SINGLE_DRAWS, "range"),
        Rule(
            rule.all_of(rule.at_least(0.2, "p = 53"), rule.at_least(0.2, "p = 97")),
            rule.any_of(rule.at_least(0.2, "p = 53"), rule.at_least(0.2, "p = 97")),
        ),
        "tab-crossprime",
    ),
    Claim(
        "law-131-fails",
        "p = 131 never groks at λ = 5.",
        "§6, Table 10",
        "never",
        AT_FIVE["p = 131"],
        Rule(rule.more_than(1, "never grok", operator="="), rule.more_than(1 / 2, "never grok")),
        "tab-crossprime",
    ),
    Claim(
        "law-flattens",
        "At high λ Δt falls more slowly than 1/λ.",
        "§6, Table 10",
        "667 against 545 at p = 97, λ = 5",
        Quantity("Δt at λ = 5 over C/5", forks("add_mod97"), _flattening, members=FLATTENING),
        Rule(rule.above(1, "Δt over C/5", "low"), rule.above(1, "Δt over C/5")),
        "fig-crossprime",
    ),
    Claim(
        "five-draws",
        "Every cell of Table 10 has five draws.",
        "§6, Table 10",
        "5",
        Quantity("forks that grok", replace(ALL_FORKS, weight_decays=(5.0,)), _grokked_draws, members=AT_FIVE),
        Rule(contradiction="At 100-step resolution 2,425 ± 249 needs four draws and 667 ± 125 three, not five."),
        "tab-crossprime",
    ),
)
TABLES = (Item("tab-crossprime", ("crossprime",), _table_10),)
FIGURES = (Item("fig-crossprime", ("crossprime",), _figure_6),)
