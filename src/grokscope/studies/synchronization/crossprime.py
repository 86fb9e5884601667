"""§6: Δt = C/λ on three primes (Table 10, Figure 6)."""

from collections.abc import Mapping
from dataclasses import replace
from math import isnan, nan
from typing import Any

import numpy as np

from grokscope.law import Ending
from grokscope.stats import known
from grokscope.studies import (
    Claim,
    Contradiction,
    Estimand,
    Evidence,
    Item,
    Quantity,
    Rule,
    Selection,
    Stratum,
    cell,
    rule,
)
from grokscope.studies.reduction import greatest, least
from grokscope.studies.synchronization import readings
from grokscope.studies.synchronization.branches import at, branch_estimand, derive_law
from grokscope.studies.synchronization.experiments import DECAYS, TABLE_1
from grokscope.studies.synchronization.forks import law, r_squared_of_draws, times_to_grok
from grokscope.studies.synchronization.reported import REPORTED
from grokscope.view.charts.figure import Figure, Panel, Series
from grokscope.view.numbers import format_range
from grokscope.view.table import Cell, Column, Row, Table, not_trained, text

__all__ = [
    "CLAIMS",
    "CONTRADICTIONS",
    "EVERY_DRAW",
    "FIGURES",
    "FORKS",
    "LABELS",
    "TABLES",
    "forks",
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


def task_law(task: str) -> Quantity:
    """The paper's law of one task, from the fork."""
    return law(forks(task, experiment="crossprime"), needed=FORKS)


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


def _stratum(prime: str, drawn: int | None = DRAWS, decays: tuple[float, ...] = DECAYS) -> Stratum:
    names = tuple(f"add_mod{prime}_d{draw}" for draw in TABLE_1["add_mod97"])
    return Stratum(f"p = {prime}", forks(f"add_mod{prime}", *decays), drawn, names)


THREE = tuple(map(_stratum, PRIMES))
EVERY_DRAW = tuple(_stratum(prime, None) for prime in PRIMES)
RANGES = {
    f"{end} R² ({one.name})": how("R²", one.name)
    for one in THREE
    for end, how in (("least", least), ("most", greatest))
}


def _derive_ranges(parts: Mapping[str, Any]) -> Mapping[str, Any]:
    return {f"range ({label})": parts[f"most R² ({label})"] - parts[f"least R² ({label})"] for label in LABELS}


def _law(name: str, text: str, effect: tuple[str | tuple[str, ...], str]) -> Estimand:
    return branch_estimand(name, THREE, DECAYS, {"Δt": "mean", "time": "median"}, text, effect, derive_law)


def _every_label(form: str, digits: str) -> str:
    return ", ".join(f"{label}: {{{form} ({label}):{digits}}}" for label in LABELS)


CELLS = {
    (prime, decay): REPORTED["tab:crossprime"].get(prime, f"mean {decay:g}") for prime in PRIMES for decay in DECAYS
}
CELL_CONDITIONS = [
    rule.within(0.2, step, at("Δt", decay, f"p = {prime}"))
    for (prime, decay), step in CELLS.items()
    if isinstance(step, int)
]
CLAIMS = (
    Claim(
        "law-fits-three-primes",
        "Δt = C/λ fits the seed-averaged Δt of three primes with R² of 0.89 and more.",
        "Abstract, §6, Table 10, Figure 6",
        "R² = 0.89, 0.94, 0.99",
        _law("R² of the cells' means", _every_label("R²", ".2f"), (tuple(f"R² ({label})" for label in LABELS), ".2f")),
        Rule(rule.every(rule.at_least(0.885), *(f"R² ({label})" for label in LABELS))),  # to two digits
        "tab-crossprime",
    ),
    Claim(
        "law-constant-falls",
        "The constant C of Δt = C/λ decreases with p.",
        "§6, Table 10",
        "4,780, 2,727, 1,760",
        _law("C = mean(λΔt)", _every_label("C", ",.0f"), (tuple(f"C ({label})" for label in LABELS), ",.0f")),
        Rule(rule.falling(*(f"C ({label})" for label in LABELS))),
        "tab-crossprime",
    ),
    Claim(
        "table-10-cells",
        "The eleven mean times of Table 10 are those of such branches, within 20 %.",
        "§6, Table 10",
        "4,100 to 600",
        _law(
            "mean Δt of each cell", _every_label("C", ",.0f"), (tuple(at("Δt", 1, label) for label in LABELS), ",.0f")
        ),
        Rule(rule.all_of(*CELL_CONDITIONS)),
        "tab-crossprime",
    ),
    Claim(
        "table-10-spread-131",
        "At p = 131 five repetitions at λ = 2, and five at 3, all take the same time.",
        "§6, Table 10",
        "std 0 and 0",
        branch_estimand(
            "standard deviation of Δt",
            (_stratum("131"),),
            DECAYS,
            {"Δt": "spread"},
            "{Δt (λ = 2):.0f} and {Δt (λ = 3):.0f}",
            (at("Δt", 2), ".0f"),
        ),
        Rule(rule.every(rule.equals(0), at("Δt", 2), at("Δt", 3))),
        "tab-crossprime",
    ),
    Claim(
        "law-per-draw",
        "R² of the law fitted to single repetitions varies by 0.2 and more at p = 53 and 97.",
        "§6, Table 10",
        "0.49–0.95, 0.69–1.00, 0.96–0.99",
        branch_estimand(
            "range of R² over single repetitions",
            THREE,
            DECAYS,
            {},
            _every_label("range", ".2f"),
            (("range (p = 53)", "range (p = 97)"), ".2f"),
            _derive_ranges,
            whole=RANGES,
        ),
        Rule(rule.every(rule.at_least(0.2), "range (p = 53)", "range (p = 97)")),
        "tab-crossprime",
    ),
    Claim(
        "law-131-fails",
        "At p = 131 none of five repetitions groks at λ = 5 by step 8,000.",
        "§6, Table 10",
        "never",
        branch_estimand(
            "branches at λ = 5 that never grok",
            (_stratum("131", decays=(5.0,)),),
            (5.0,),
            {"never": "mean"},
            "{never (λ = 5):.0%} never grok",
            (at("never", 5), ".0%"),
        ),
        Rule(rule.equals(1, at("never", 5))),
        "tab-crossprime",
    ),
    Claim(
        "law-flattens",
        "At p = 97 and λ = 5 Δt is at least 10 % longer than C/λ (22 % reported).",
        "§6, Table 10",
        "667 against 545",
        _law("Δt over C/λ at λ = 5", "{over the law (p = 97):.2f}", ("over the law (p = 97)", ".2f")),
        Rule(rule.above(1.1, "over the law (p = 97)")),
        "fig-crossprime",
    ),
)
CONTRADICTIONS = (
    Contradiction(
        "five-draws",
        "§6, Table 10",
        "Every cell is said to have five draws; at 100-step resolution 2,425 ± 249 needs four and 667 ± 125 three.",
    ),
    Contradiction(
        "decay-form",
        "§6, Eq. 3",
        "The norm is said to decay as e^{−λt}; AdamW multiplies by 1 − ηλ each step: with e^{−λt} no weight would be "
        "left after ten steps.",
        ("decay-rate",),
    ),
)
TABLES = (Item("tab-crossprime", ("crossprime",), _table_10),)
FIGURES = (Item("fig-crossprime", ("crossprime",), _figure_6),)
