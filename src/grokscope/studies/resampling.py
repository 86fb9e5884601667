"""How often a paper's design would have shown what it reports, if our many runs are the world.

Sets of units as large as the paper's are drawn, with replacement, from all of ours: the share of them that show the
claim is its support. The same over worlds that are themselves drawn from our units gives the support's interval, and
says whether the verdict hangs on which seeds we happened to train.

A bootstrap of units of which none, or all, have something gives the same world always, as if a unit that differs could
not exist. In every world each yes-or-no column therefore has half a yes and half a no added to it: a share of 0 or n of
n units varies as Beta(½, n + ½) or its mirror image, the posterior of Jeffreys' prior, whose interval covers well at
the ends too (Brown, Cai and DasGupta, Statistical Science 16, 2001); Rubin's bootstrap (Annals of Statistics 9, 1981)
with two half units. Numbers that are no yes or no are drawn as they are.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from grokscope.stats import Estimate, share
from grokscope.studies.estimand import Estimand, Sample
from grokscope.studies.quantity import Measured
from grokscope.studies.reduction import Values
from grokscope.studies.rule import Condition

__all__ = ["DESIGNS", "WORLDS", "Support", "effects_of", "part_numbers", "support_of"]

SEED = 2026  # of every resampling: the same records give the same verdicts
DESIGNS = 10_000  # drawn sets of the paper's size
WORLDS = 200  # bootstraps over our units
WITHIN = (100, 2_000)  # designs drawn in each of them: at least, at most
NUMBERS = 4_000_000  # drawn in all worlds together, where WITHIN allows
AT_ONCE = 20  # worlds
EFFECTS = 2_000  # bootstraps for the interval of an effect


@dataclass(frozen=True)
class Support:
    """The share of drawn designs that show a claim."""

    share: Estimate
    """With its 95 % interval over bootstraps of our units; its items are our units."""
    worlds: tuple[float, ...]
    """The share in each of these bootstraps."""


def support_of(estimand: Estimand, sample: Sample, shown: Condition) -> Support:
    """The share of resampled designs that show something, and its bootstrap over units.

    Of designs of one unit the share is exact, k of n, with its Clopper–Pearson interval; worlds are drawn from its
    posterior, Beta(k + ½, n − k + ½) after Jeffreys, for a bootstrap of none or all would never vary.
    """
    if [one.drawn for one in estimand.strata] == [1]:
        return _support_of_single_units(estimand, sample, shown)
    sizes = {one.name: one.drawn or len(sample.units[one.name]) for one in estimand.strata}
    generator = np.random.default_rng(SEED)
    designs = {name: generator.integers(0, len(sample.units[name]), (DESIGNS, size)) for name, size in sizes.items()}
    columns = estimand.columns(shown.named_parts)
    value = _share(estimand, _taken(sample, designs, columns), shown)
    within = int(np.clip(NUMBERS // (WORLDS * sum(sizes.values())), *WITHIN))
    halves = np.random.default_rng((SEED, 2))
    worlds = np.concatenate(
        [
            np.atleast_1d(_share(estimand, _with_halves(_taken(sample, places, columns), sample, halves), shown))
            for places in _places_in_worlds(sample, sizes, within)
        ]
    )
    low, high = np.quantile(worlds, (0.025, 0.975))
    found = Estimate(float(value), float(min(low, value)), float(max(high, value)), sample.n)
    return Support(found, tuple(worlds.tolist()))


def _support_of_single_units(estimand: Estimand, sample: Sample, shown: Condition) -> Support:
    each = {
        stratum: {column: values[:, None] for column, values in columns.items()}
        for stratum, columns in sample.values.items()
    }
    found = np.broadcast_to(shown.holds(estimand.compute(each, shown.named_parts)), (sample.n,))
    hits = int(np.sum(found))
    posterior = np.random.default_rng(SEED).beta(hits + 0.5, sample.n - hits + 0.5, EFFECTS)
    return Support(share(hits, sample.n), tuple(posterior.tolist()))


def part_numbers(measured: Measured) -> dict[str, float]:
    """The parts of a quantity that are numbers, with the ends of their intervals as `value, low` and `value, high`.

    >>> part_numbers(Measured.of(Estimate(2.0, 1.5, 2.5, 9)))
    {'value': 2.0, 'value, low': 1.5, 'value, high': 2.5, 'n': 1}
    """
    numbers: dict[str, float] = {}
    for name, part in measured.parts.items():
        if isinstance(part, Estimate):
            numbers |= {name: part.value, f"{name}, low": part.low, f"{name}, high": part.high}
        elif isinstance(part, float | int):
            numbers[name] = part
    return numbers | {"n": measured.n}


def effects_of(estimand: Estimand, sample: Sample, parts: Collection[str]) -> dict[str, Estimate]:
    """Parts of an estimand over all our units, with 95 % percentile intervals over bootstraps of them."""
    whole = estimand.compute(sample.values)
    values = {part: float(np.asarray(whole[part])) for part in parts}
    exact = {part: exactly for part in parts if (exactly := _exact_share(estimand, sample, part)) is not None}
    if min(map(len, sample.units.values())) < 2:
        return {part: Estimate(value, np.nan, np.nan, sample.n) for part, value in values.items()}
    generator = np.random.default_rng(SEED)
    sizes = {name: len(units) for name, units in sample.units.items()}
    drawn = {name: generator.integers(0, size, (EFFECTS, size)) for name, size in sizes.items()}
    found = estimand.compute(_taken(sample, drawn, estimand.columns(values)), values)
    intervals = {part: Estimate(value, *_percentiles(found[part]), sample.n) for part, value in values.items()}
    return intervals | exact


def _exact_share(estimand: Estimand, sample: Sample, part: str) -> Estimate | None:
    """The share of units with something, with its Clopper–Pearson interval; None of a part that is no such share."""
    reduction = estimand.parts.get(part)
    if reduction is None or reduction.how != "mean":
        return None
    columns = [
        values[reduction.column]
        for stratum, values in sample.values.items()
        if reduction.column in values and (not reduction.strata or stratum in reduction.strata)
    ]
    found = np.concatenate(columns) if columns else np.array([])
    known = found[~np.isnan(found)]
    return share(int(known.sum()), len(known)) if _is_flag(found) else None


def _percentiles(found: Any) -> tuple[float, float]:
    known = np.broadcast_to(np.asarray(found, dtype=np.float64), (EFFECTS,))
    known = known[~np.isnan(known)]
    if not len(known):
        return np.nan, np.nan
    low, high = np.quantile(known, (0.025, 0.975), method="nearest")  # a step that was never reached is infinite
    return float(low), float(high)


def _places_in_worlds(sample: Sample, sizes: dict[str, int], within: int) -> Iterator[dict[str, Any]]:
    """Which units make up the designs drawn in worlds that are drawn from our units, some worlds at a time."""
    generator = np.random.default_rng((SEED, 1))
    for _ in range(0, WORLDS, AT_ONCE):
        places = {}
        for name, size in sizes.items():
            units = len(sample.units[name])
            world = generator.integers(0, units, (AT_ONCE, units))
            chosen = generator.integers(0, units, (AT_ONCE, within * size))
            places[name] = np.take_along_axis(world, chosen, axis=1).reshape(AT_ONCE, within, size)
        yield places


def _taken(sample: Sample, places: dict[str, Any], wanted: Collection[str]) -> Values:
    """The wanted columns of drawn units, and one of each stratum at least, which tells how many they are."""
    return {
        stratum: {
            column: values[places[stratum]]
            for place, (column, values) in enumerate(columns.items())
            if place == 0 or column in wanted
        }
        for stratum, columns in sample.values.items()
    }


def _with_halves(drawn: Values, sample: Sample, generator: np.random.Generator) -> Values:
    """Drawn units of worlds, in each of which a yes-or-no column has half a yes and half a no added to its units.

    Of n units and two halves, weighted after Dirichlet, the halves have the share Beta(1, n), and the yes of it
    Beta(½, ½): so many drawn values are replaced.
    """
    return {
        stratum: {
            column: _replaced(values, int((~np.isnan(sample.values[stratum][column])).sum()), generator)
            if _is_flag(sample.values[stratum][column])
            else values
            for column, values in columns.items()
        }
        for stratum, columns in drawn.items()
    }


def _is_flag(values: Any) -> bool:
    known = values[~np.isnan(values)]
    return len(known) > 0 and bool(np.isin(known, (0.0, 1.0)).all())


def _replaced(values: Any, n: int, generator: np.random.Generator) -> Any:
    """Values of designs in worlds, the first axis; what is not defined stays so."""
    world = (len(values), 1, 1)
    halves, yes = generator.beta(1, n, world), generator.beta(0.5, 0.5, world)
    chance = generator.random(values.shape)  # one draw says both whether a value is replaced, and by what
    found = np.where(chance < halves * yes, 1.0, np.where(chance < halves, 0.0, values))
    return np.where(np.isnan(values), np.nan, found)


def _share(estimand: Estimand, values: Values, shown: Condition) -> Any:
    """The share of designs that show it, along the last axis of designs."""
    found = np.asarray(shown.holds(estimand.compute(values, shown.named_parts)), dtype=bool)
    return found.mean(axis=-1) if found.ndim else np.float64(found)
