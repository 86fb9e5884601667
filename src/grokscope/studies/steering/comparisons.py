"""How arms compare over the tasks that nobody tuned on: how many times sooner, how many runs they lose, what stays."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from math import exp, isfinite, log

from grokscope.stats import Estimate, estimate_mean, percentile_bootstrap, share
from grokscope.studies import Measured, Part, Quantity, Records, Selection
from grokscope.studies.steering.arms import ADAMW, HINDSIGHT
from grokscope.studies.steering.experiments import BASES, CELLS, RECIPE, in_hindsight, recipe_family
from grokscope.studies.steering.quantities import by_arm, is_tuned, outcome_of
from grokscope.studies.steering.seconds import Speed

__all__ = ["BEST_DECAY", "comparison", "geometric_mean_ratio", "reliability", "speed_up", "standing", "stays"]

REACHABLE = 0.5  # share of runs that any arm must get there for a cell to count
BEST_DECAY = "AdamW at the best λ of each task"
BASE_CELLS = frozenset(cell.name for cell in BASES)

Arms = Mapping[str, Measured]
"""What became of each arm's runs on one cell, and of the recipe's under its own name too."""


@dataclass(frozen=True)
class _Pair:
    """An arm and what it is compared with, on one cell."""

    cell: str
    arm: Measured
    baseline: Measured


def speed_up(baseline: str, speed: Speed | None = None) -> Quantity:
    """How many times sooner the recipe is on unseen tasks than AdamW at one λ for all, or at the best λ of each."""
    experiments = ("final", "hindsight") if baseline == BEST_DECAY else ("final",)
    return _quantity(f"speed-up of the recipe against {baseline}", experiments, RECIPE, baseline, speed=speed)


def comparison(arm: str, baseline: str, *experiments: str) -> Quantity:
    """How many times sooner an arm is than another on the bases of unseen tasks, and the share of runs it loses."""
    return _quantity(f"speed-up of {arm} against {baseline}", experiments, arm, baseline, bases=True)


def standing(arm: str) -> Quantity:
    """How an arm of the final stands over all cells of unseen tasks: reliability, speed against AdamW, what stays."""
    return _quantity(f"{arm} over unseen tasks", ("final",), arm, ADAMW)


def reliability() -> Quantity:
    """The share of the recipe's runs on unseen tasks, where any arm gets half of its runs there, that are stable."""
    return Quantity("reliability of the recipe", Selection(("final",)), _reliability)


def _reliability(records: Records) -> Measured:
    found = _compare(records, RECIPE, ADAMW, bases=False)
    text = f"{_percent(found.number('reliable'))} of {found.n:,} runs"
    return found if found.missing else Measured.of(found.parts["reliable"], text, found.n)


def stays() -> Quantity:
    """The share of the recipe's grokked runs that are below a half of the validation pairs later on."""
    return Quantity("share of the recipe's runs that fall", Selection(("final",)), _stays)


def _stays(records: Records) -> Measured:
    found = _compare(records, RECIPE, ADAMW, bases=False)
    if found.missing or "falls" not in found.parts:
        return found if found.missing else Measured.lacking(0, 1, "grokked runs of the recipe")
    parts = {"value": found.parts["falls"], "at the end": found.parts["not at the end"]}
    grokked = int(found.number("grokked"))
    fell = _percent(found.number("falls"))
    return Measured(parts | {"grokked": grokked}, f"{fell} of {grokked:,} grokked runs", grokked)


def _percent(share_of_runs: float) -> str:
    return f"{100 * share_of_runs:.1f} %"


def _quantity(
    name: str, experiments: tuple[str, ...], arm: str, baseline: str, bases: bool = False, speed: Speed | None = None
) -> Quantity:
    options = {"arm": arm, "baseline": baseline, "bases": bases} | ({} if speed is None else {"speed": speed})
    return Quantity(name, Selection(experiments), _compare, options=options)


def _compare(records: Records, arm: str, baseline: str, bases: bool, speed: Speed | None = None) -> Measured:
    """The ratio of medians over tasks, and what became of both arms' runs on the same cells."""
    pairs = list(_pairs(records, arm, baseline, bases))
    if not pairs:
        return Measured.lacking(0, 1, f"cells with {arm} and {baseline}")
    waits = {pair.cell: (_wait(pair.baseline, pair.cell), _wait(pair.arm, pair.cell)) for pair in pairs}
    if speed is not None:
        seconds = _seconds_per_step(speed, records, arm, baseline)
        if not waits.keys() <= seconds.keys():
            return Measured.lacking(len(waits.keys() & seconds.keys()), len(waits), "cells with measured seconds")
        waits = {cell: (wait[0] * seconds[cell][0], wait[1] * seconds[cell][1]) for cell, wait in waits.items()}
    ratio = geometric_mean_ratio(waits)
    own, other = (_counts([getattr(pair, name) for pair in pairs]) for name in ("arm", "baseline"))
    parts: dict[str, Part] = {
        **ratio.parts,
        "reliable": share(own["reached"], own["runs"]),
        "runs": own["runs"],
        "lost": other["reached"] / other["runs"] - own["reached"] / own["runs"],
        "grokked": own["grokked"],
        "late cells": own["late"],
        "late cells of the baseline": other["late"],
    }
    if own["grokked"]:
        parts |= {
            "falls": share(own["fell"], own["grokked"]),
            "not at the end": share(own["not at the end"], own["grokked"]),
        }
    text = (
        f"{ratio.text}; {own['reached']:,} of {own['runs']:,} runs stable, of the baseline {other['reached']:,} of "
        f"{other['runs']:,}{_late(own['late'], other['late'], len(pairs))}"
    )
    return Measured(parts, text, own["runs"])


def _pairs(records: Records, arm: str, baseline: str, bases: bool) -> Iterator[_Pair]:
    """The unseen cells that have both, and on which any arm gets half of its runs there."""
    recipe = recipe_family()
    for cell, arms in by_arm(records).items():
        if is_tuned(cell) or (bases and cell not in BASE_CELLS):
            continue
        found = {name: outcome_of(runs) for name, runs in arms.items()}
        found |= {RECIPE: found[recipe]} if recipe in found else {}
        rival = _best_in_hindsight(found) if baseline == BEST_DECAY else found.get(baseline)
        is_reachable = any(one.number("stable") >= REACHABLE for one in found.values())
        if arm in found and rival is not None and is_reachable:
            yield _Pair(cell, found[arm], rival)


def _best_in_hindsight(found: Arms) -> Measured | None:
    """Of AdamW's λ the fastest that is at least as reliable as the recipe; if none is, the most reliable.

    The λ of the final's AdamW is among them: where both experiments have a run, it counts there. None where not all λ
    were run.
    """
    own = [found[arm] for arm in (ADAMW, *map(in_hindsight, HINDSIGHT)) if arm in found]
    if RECIPE not in found or len(own) < len(HINDSIGHT):
        return None
    reliable = [one for one in own if one.number("stable") >= found[RECIPE].number("stable")]
    if reliable:
        return min(reliable, key=lambda one: one.number("steps"))
    return max(own, key=lambda one: one.number("stable"))


def _wait(found: Measured, cell: str) -> float:
    """The median steps; the budget where that is not reached."""
    steps = found.number("steps")
    return steps if isfinite(steps) else float(CELLS[cell].budget)


def _counts(found: list[Measured]) -> dict[str, int]:
    """Sums over cells, and in how many the median is not reached."""
    names = ("runs", "reached", "grokked", "fell", "not at the end")
    sums = {name: sum(int(one.number(name)) for one in found) for name in names}
    late = sum(not isfinite(one.number("steps")) for one in found)
    return sums | {"late": late}


def _late(own: int, other: int, cells: int) -> str:
    """In how many cells a budget stands for a median, in words; nothing if in none."""
    counts = [f"{count} of {cells} {words}" for count, words in ((own, "its own"), (other, "the baseline's")) if count]
    return f"; the budget stands for the median in {' and in '.join(counts)} cells" if counts else ""


def _seconds_per_step(speed: Speed, records: Records, arm: str, baseline: str) -> dict[str, tuple[float, float]]:
    """Of each cell the seconds of a step of the baseline and of the arm; of all λ of AdamW they are the same."""
    names = [{RECIPE: recipe_family() or "", BEST_DECAY: ADAMW}.get(name, name) for name in (baseline, arm)]
    found = {}
    for cell, arms in by_arm(records).items():
        if all(name in arms for name in names):
            of_baseline, of_arm = (speed.of(next(iter(arms[name].values())).spec) for name in names)
            if of_baseline is not None and of_arm is not None:
                found[cell] = (of_baseline, of_arm)
    return found


def geometric_mean_ratio(waits: Mapping[str, tuple[float, float]]) -> Measured:
    """The exponential of the mean of ln(baseline / arm) over cells; each task counts once, and is resampled.

    Percentiles of a bootstrap are too narrow for few tasks: `by t` is the interval of the mean of the logarithms.

    >>> found = geometric_mean_ratio({"a, base": (400.0, 100.0), "a, other": (400.0, 100.0), "b, base": (100.0, 100.0)})
    >>> round(found.number(), 3), found.parts["tasks"]
    (2.0, 2)
    """
    names = sorted(waits)
    by_task = [[*own] for _, own in groupby(names, key=lambda name: name.partition(", ")[0])]
    logs = [sum(log(waits[name][0] / waits[name][1]) for name in own) / len(own) for own in by_task]
    resampled, by_t = (
        Estimate(exp(one.value), exp(one.low), exp(one.high), len(logs))
        for one in (percentile_bootstrap(logs, seed=0, resamples=10_000), estimate_mean(logs))
    )
    interval = f" ({resampled.low:.2f} to {resampled.high:.2f})" if len(logs) > 1 else ""
    text = f"{resampled.value:.2f} times sooner{interval} over {len(logs)} tasks"
    # Without an interval nothing is shown to differ: the lower end is then 0, as a number that conditions can read.
    low = resampled.low if len(logs) > 1 else 0.0
    parts: dict[str, Part] = {"value": resampled, "low": low, "by t": by_t, "tasks": len(logs), "cells": len(names)}
    return Measured(parts, text, len(logs))
