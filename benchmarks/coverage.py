"""How often the 95 % intervals that grokscope prints hold the truth: every method on simulated data sets."""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
from numpy.random import Generator, default_rng

from benchmarks.coverage_page import PAGE, with_table
from benchmarks.page import record
from benchmarks.provenance import save
from grokscope.law import ForkedRun, fit_censored, fit_mean_constant
from grokscope.stats import (
    Estimate,
    cluster_means,
    clustered_share,
    correlation,
    estimate_mean,
    estimate_median,
    kaplan_meier,
    percentile_bootstrap,
    share,
)
from grokscope.timeline import Outcome

CLUSTERS = (8, 16, 32)
DATA_SETS = 2000
DECAYS = (1.0, 2.0, 3.0, 5.0)
CONSTANT, OF_SEED, OF_RUN = 3000.0, 0.15, 0.20  # of Δt = C/λ; log Δt scatters by seed, and from run to run
BEYOND = 0.38  # of the runs, where some are censored
Z_LEFT = 0.3055  # Φ⁻¹(0.62): a normal time above it is one of them
MANY = 1_000_000  # draws, for a truth that has no formula

Simulate = Callable[[Generator, int], Estimate | None]


@dataclass(frozen=True)
class Row:
    """An interval that is printed, or one that is not for what this shows of it, and the data it is tried on."""

    interval: str
    """Of what."""
    data: str
    """What was simulated."""
    method: str
    """How the interval is made."""
    simulate: Simulate
    """One data set of so many clusters, and the interval."""
    truth: Callable[[], float]
    """The number that it shall hold."""
    kind: str = "printed"
    """`printed`; `conservative`, printed and wide by its making; `limit`, printed, on data where it does not hold; or
    `unused` for grokscope's own numbers."""
    data_sets: int = DATA_SETS
    """How many."""


# Forks


def forks(generator: Generator, seeds: int, cadence: int = 100, is_censored: bool = False) -> list[ForkedRun]:
    """Forks of so many seeds at four λ, seen grokked at evaluations, and up to a budget where some are censored."""
    found = []
    budget = _budget(cadence) if is_censored else math.inf
    for seed, shift in enumerate(OF_SEED * generator.normal(size=seeds)):
        for decay, scatter in zip(DECAYS, OF_RUN * generator.normal(size=len(DECAYS)), strict=True):
            steps = cadence * math.ceil(CONSTANT / decay * math.exp(shift + scatter) / cadence)
            if steps <= budget:
                found.append(ForkedRun(decay, steps, Outcome.GROKKED, cadence, steps, seed))
            else:
                found.append(ForkedRun(decay, None, Outcome.NEVER, cadence, budget, seed))
    return found


@cache
def _times(count: int = MANY) -> np.ndarray:
    """Δt of so many seeds at each λ, exactly."""
    logs = math.hypot(OF_SEED, OF_RUN) * default_rng(1).normal(size=(count, 1))
    return CONSTANT / np.array(DECAYS) * np.exp(logs)


@cache
def _budget(cadence: int) -> int:
    return cadence * round(float(np.quantile(_times(), 1 - BEYOND)) / cadence)


@cache
def _mean_products(cadence: int) -> np.ndarray:
    """λ times the mean evaluated Δt, at each λ."""
    return np.array(DECAYS) * (cadence * np.ceil(_times() / cadence)).mean(axis=0)


def law(form: str, name: str, cadence: int, is_censored: bool) -> Simulate:
    return lambda generator, seeds: fit_censored(forks(generator, seeds, cadence, is_censored), form).parameters[name]  # type: ignore[arg-type]


def mean_constant(cadence: int, is_censored: bool = False) -> Simulate:
    return lambda generator, seeds: fit_mean_constant(forks(generator, seeds, cadence, is_censored)).parameters[
        "constant"
    ]


# Columns


def grid(values: np.ndarray, cadence: int = 100) -> np.ndarray:
    return cadence * np.ceil(values / cadence)


def leads(generator: Generator, count: int) -> np.ndarray:
    """Leads evaluated every 500 steps, as those of Table 2."""
    return grid(generator.normal(1750, 1000, size=count), 500)


def skewed(generator: Generator, count: int, spread: float = 0.3) -> np.ndarray:
    """Log-normal steps, evaluated every 100; their median is 2,050 before that."""
    return grid(2050 * np.exp(spread * generator.normal(size=count)))


def of_primes(generator: Generator, primes: int) -> tuple[np.ndarray, list[int]]:
    """Leads of six seeds of each prime; primes differ."""
    shifts = 600 * generator.normal(size=primes)
    return leads(generator, 6 * primes) + 500 * np.round(np.repeat(shifts, 6) / 500), [*np.repeat(range(primes), 6)]


def median_steps(generator: Generator, count: int, censoring: str) -> Estimate:
    """The median step, of which some are not reached within a budget or by the time that a run left."""
    steps = skewed(generator, count)
    if not censoring:
        return estimate_median(steps)
    limits = {
        "budget": np.full(count, float(grid(np.array(2050 * math.exp(0.3 * Z_LEFT))))),
        "apart": skewed(generator, count) * math.exp(0.3 * Z_LEFT * math.sqrt(2)),
    }[censoring]
    return kaplan_meier(np.minimum(steps, limits), (steps <= limits).tolist()).median


def survival(generator: Generator, count: int, at: float, is_censored: bool) -> Estimate:
    """S at a fixed time of standard normal times."""
    times = generator.normal(size=count)
    limits = generator.normal(Z_LEFT * math.sqrt(2), 1, size=count) if is_censored else np.full(count, np.inf)
    found = kaplan_meier(np.minimum(times, limits), (times <= limits).tolist())
    place = int(np.searchsorted(found.times, at, side="right")) - 1
    if place < 0:
        return Estimate(1.0, share(count, count).low, 1.0, count)
    return Estimate(found.at(at), float(found.low[place]), float(found.high[place]), count)


def clustered(generator: Generator, seeds: int, spread: float = 1.5) -> tuple[list[bool], list[int]]:
    """Four forks of each seed, whose chances differ by seed."""
    chances = 1 / (1 + np.exp(-(1 + spread * generator.normal(size=seeds))))
    hits = generator.random((seeds, 4)) < chances[:, None]
    return hits.ravel().tolist(), np.repeat(range(seeds), 4).tolist()


@cache
def _clustered_truth() -> float:
    return float((1 / (1 + np.exp(-(1 + 1.5 * default_rng(2).normal(size=MANY))))).mean())


def pairs(generator: Generator, count: int) -> Estimate:
    x = generator.normal(size=count)
    return correlation(x, 0.6 * x + 0.8 * generator.normal(size=count))


@cache
def _mean_of(draw: Callable[[Generator, int], np.ndarray], *options: float) -> float:
    return float(draw(default_rng(3), MANY, *options).mean())


def rows() -> list[Row]:
    """Every interval, method by method."""
    seeds_out = "t, leaving out one seed at a time"
    found = []
    for cadence in (100, 500):
        for is_censored in (False, True):
            data = f"evaluations every {cadence} steps" + (f", {BEYOND:.0%} censored" if is_censored else "")
            is_coarse = cadence == 500 and is_censored
            for form, name, label in (
                ("inverse", "constant", "C of C/λ"),
                ("power", "constant", "C of C λ^−α"),
                ("power", "exponent", "α of C λ^−α"),
            ):
                truth = CONSTANT if name == "constant" else 1.0
                kind = "limit" if is_coarse and name == "exponent" else "printed"
                simulate = law(form, name, cadence, is_censored)
                found.append(Row(f"law, {label}", data, seeds_out, simulate, lambda truth=truth: truth, kind))
            paper = mean_constant(cadence, is_censored)
            label = "C by the paper's mean(λΔt), for the true C"
            found.append(Row(label, data, seeds_out, paper, lambda: CONSTANT, "unused", 500))
    every = "evaluations every 100 steps"
    found += [
        Row(
            "C by the paper's mean(λΔt), for its own limit",
            every,
            seeds_out,
            mean_constant(100),
            lambda: float(_mean_products(100).mean()),
        ),
        Row("mean lead", "every 500 steps", "t", lambda g, n: estimate_mean(leads(g, n)), lambda: _mean_of(leads)),
        Row(
            "mean lead over primes",
            "six seeds of each prime",
            "t over means of primes",
            lambda g, n: estimate_mean(*of_primes(g, n)),
            lambda: _mean_of(leads),
        ),
        Row("mean Δt, norm or rate", "log-normal, σ = 0.3", "t", lambda g, n: estimate_mean(skewed(g, n)), _mean_steps),
        Row(
            "mean Δt, norm or rate",
            "strongly skewed: log-normal, σ = 0.6",
            "t",
            lambda g, n: estimate_mean(skewed(g, n, 0.6)),
            lambda: _mean_of(skewed, 0.6),
            "limit",
        ),
        *(
            Row(
                f"mean lead{over}",
                data,
                "percentile bootstrap, as in the paper",
                lambda g, n, draw=draw: percentile_bootstrap(draw(g, n), seed=0, resamples=999),
                lambda: _mean_of(leads),
                "unused",
            )
            for over, data, draw in (
                ("", "every 500 steps", leads),
                (" over primes", "six seeds of each prime", lambda g, n: cluster_means(*of_primes(g, n))),
            )
        ),
        Row(
            "median norm or rate",
            "normal, on no grid",
            "order statistics",
            lambda g, n: estimate_median(g.normal(size=n)),
            lambda: 0.0,
        ),
        *(
            Row(
                "median step or lead",
                data,
                "order statistics" if not censoring else "Kaplan–Meier, beta product",
                lambda g, n, censoring=censoring: median_steps(g, n, censoring),
                lambda: 2100.0,
                "conservative",
            )
            for data, censoring in (
                ("none censored", ""),
                (f"{BEYOND:.0%} beyond one budget", "budget"),
                (f"{BEYOND:.0%} censored at times of their own", "apart"),
            )
        ),
        *(
            Row(
                f"share not yet grokked, S = {value}",
                data,
                "Kaplan–Meier, beta product",
                lambda g, n, at=at, is_censored=is_censored: survival(g, n, at, is_censored),
                lambda value=value: value,
                "conservative",
            )
            for data, is_censored in (("none censored", False), (f"{BEYOND:.0%} censored", True))
            for value, at in ((0.75, -0.674490), (0.5, 0.0), (0.25, 0.674490))
        ),
        *(
            Row(
                f"share, p = {p}",
                "independent runs",
                "Clopper–Pearson",
                lambda g, n, p=p: share(int(g.binomial(n, p)), n),
                lambda p=p: p,
                "conservative",
            )
            for p in (0.5, 0.75, 0.95)
        ),
        Row(
            "share over several runs of a seed",
            "four runs of each seed",
            "Clopper–Pearson, effective number",
            lambda g, n: clustered_share(*clustered(g, n)),
            _clustered_truth,
            "conservative",
        ),
        Row(
            "share over several runs of a seed",
            "four runs of each seed",
            "Clopper–Pearson, all runs",
            lambda g, n: _plain_share(clustered(g, n)[0]),
            _clustered_truth,
            "unused",
        ),
        Row("correlation, r = 0.6", "independent pairs", "Fisher", pairs, lambda: 0.6),
    ]
    return found


def _mean_steps() -> float:
    return _mean_of(skewed)


def _plain_share(hits: list[bool]) -> Estimate:
    return share(sum(hits), len(hits))


def covered(row: Row, clusters: int, data_sets: int) -> dict[str, float]:
    """How often the interval holds the truth, where there is one; how often there is none, and how often it is open."""
    generator, truth = default_rng([clusters, crc32(f"{row.interval}; {row.data}; {row.method}".encode())]), row.truth()
    found = [row.simulate(generator, clusters) for _ in range(data_sets)]
    known = [one for one in found if one is not None and not math.isnan(one.low)]
    held = sum(one.low <= truth <= one.high for one in known)
    return {
        "covered": round(held / len(known), 4),
        "none": round(1 - len(known) / data_sets, 4),
        "open": round(sum(math.isinf(one.low) or math.isinf(one.high) for one in known) / len(known), 4),
    }


def name_of(one: dict[str, Any]) -> tuple[str, str, str]:
    return one["interval"], one["data"], one["method"]


def measured(wanted: list[Row], data_sets: int | None = None) -> list[dict[str, Any]]:
    """The record of these rows; the data sets of a row do not depend on the others."""
    found = []
    for row in wanted:
        sets = row.data_sets if data_sets is None else data_sets
        start = time.perf_counter()
        by_clusters = {str(clusters): covered(row, clusters, sets) for clusters in CLUSTERS}
        names = {name: getattr(row, name) for name in ("interval", "data", "method", "kind")}
        found.append({**names, "data_sets": sets, "clusters": by_clusters})
        shown = ", ".join(f"{count}: {one['covered']:.3f}" for count, one in by_clusters.items())
        print(f"{row.interval}; {row.data}; {row.method}: {shown} ({time.perf_counter() - start:.0f} s)", flush=True)
    return found


def main() -> None:
    """Simulate, print, store, and write the table of the documentation; with words, only the intervals they begin."""
    words = " ".join(sys.argv[1:])
    named = [row for row in rows() if row.interval.startswith(words)]
    found = {name_of(one): one for one in ([] if len(named) == len(rows()) else record("coverage")["measured"])}
    found |= {name_of(one): one for one in measured(named)}
    save("coverage", [found[row.interval, row.data, row.method] for row in rows()])
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
