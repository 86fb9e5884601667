"""The numbers: when runs of an arm generalise for good, whether they stay, and how arms compare over tasks."""

from collections.abc import Mapping
from itertools import groupby
from math import exp, inf, isfinite, log

from grokscope.runs.records import RunRecord
from grokscope.stats import Estimate, estimate_mean, kaplan_meier, percentile_bootstrap, share
from grokscope.studies import Evidence, Measured, Part, Quantity, Records, Selection, configuration
from grokscope.studies.steering.arms import ADAMW, FAMILIES, HINDSIGHT
from grokscope.studies.steering.experiments import CELLS, TUNING_TASKS
from grokscope.timeline import stability

__all__ = [
    "CHOICE",
    "accelerator",
    "choose_settings",
    "geometric_mean_ratio",
    "outcome",
    "reliability",
    "speed_up",
    "stable_time",
    "stays",
]

FALLS = 0.5  # validation accuracy below which a run that has grokked has lost what it had
REACHABLE = 0.5  # share of runs that any arm must get there for a cell to count


def stable_time(record: RunRecord) -> float:
    """The step from which on a run stays grokked for 2,000 steps; infinite if that was not seen within its budget."""
    steps = [int(step) for step in record.evaluations["step"]]
    validation = [float(value) for value in record.evaluations["validation_accuracy"]]
    found = stability(steps, validation, failed_at=record.outcome.failed_at)
    return inf if found.step is None else float(found.step)


def outcome(experiment: str, name: str) -> Quantity:
    """What became of the runs of one arm on one cell (`CELL/ARM`)."""
    return Quantity(
        "stable generalisation", Selection((experiment,), configuration=name), _outcome, options={"falls": FALLS}
    )


def _outcome(records: Records, falls: float) -> Measured:
    """Not reached counts as the budget: medians by Kaplan–Meier, means restricted to the budget, the worst seed."""
    times = [stable_time(record) for record in records.values()]
    budgets = [float(record.spec.training.steps) for record in records.values()]
    reached = [isfinite(time) for time in times]
    waits = [min(pair) for pair in zip(times, budgets, strict=True)]
    grokked = [record for record in records.values() if record.outcome.grokked is not None]
    parts: dict[str, Part] = {
        "runs": len(records),
        "stable": share(sum(reached), len(reached)),
        "steps": kaplan_meier(waits, reached).median,
        "mean": sum(waits) / len(waits),
        "worst": max(waits) if all(reached) else inf,
        "grokked": len(grokked),
        "fell": sum(_falls(record, falls) for record in grokked),
        "diverged": sum(record.outcome.failed_at is not None for record in records.values()),
    }
    return Measured(parts, n=len(records))


def _falls(record: RunRecord, falls: float) -> bool:
    """Whether a run that has grokked is below a half later on, or fails."""
    grokked = record.outcome.grokked or 0
    columns = zip(record.evaluations["step"], record.evaluations["validation_accuracy"], strict=True)
    return record.outcome.failed_at is not None or any(value < falls for step, value in columns if step > grokked)


def by_arm(records: Records) -> dict[str, dict[str, dict[str, RunRecord]]]:
    """Runs by cell, and by arm in it, in the order in which they are.

    >>> by_arm({})
    {}
    """
    found: dict[str, dict[str, dict[str, RunRecord]]] = {}
    for name, record in records.items():
        cell, _, arm = configuration(name).partition("/")
        found.setdefault(cell, {}).setdefault(arm, {})[name] = record
    return found


# Tuning.


def choose_settings(records: Records) -> dict[str, str]:
    """The setting of every family with the shortest waits over the tuning tasks, best family first.

    What is compared is the geometric mean over tasks of the mean steps to stable generalisation, where a run that does
    not get there counts as its budget. Settings that lack runs on a task are not chosen; of equal ones the first is.

    >>> choose_settings({})
    {}
    """
    cells = {cell: arms for cell, arms in by_arm(records).items() if any("/" in arm for arm in arms)}
    best: dict[str, tuple[float, str]] = {}
    for family, settings in FAMILIES.items():
        for setting in settings:
            own = [arms.get(f"{family}/{setting}") for arms in cells.values()]
            if own and all(own):
                means = [_outcome(runs, FALLS).number("mean") for runs in own if runs]
                score = exp(sum(map(log, means)) / len(means))
                best[family] = min(best.get(family, (inf, "")), (score, setting), key=lambda one: one[0])
    ranked = sorted(best.items(), key=lambda item: item[1][0])
    return {family: setting for family, (_, setting) in ranked}


def _choice(records: Records) -> Measured:
    chosen = choose_settings(records)
    return Measured(dict(chosen), "; ".join(f"{family}: {setting}" for family, setting in chosen.items()), len(records))


CHOICE = Quantity("chosen settings", Selection(("tuning",)), _choice)


# Comparisons over tasks. The recipe is what the tuning runs among the records choose: so no rule knows a result.


def recipe_of(records: Records) -> str:
    """The family of which the recipe is the chosen setting: the best one but AdamW; empty without tuning runs.

    >>> recipe_of({})
    ''
    """
    return next((family for family in choose_settings(records) if family != ADAMW), "")


def speed_up(baseline: str) -> Quantity:
    """How many times sooner the recipe is than a baseline on unseen tasks: `one λ`, or `hindsight`."""
    experiments = ("tuning", "final") if baseline == "one λ" else ("tuning", "final", "hindsight")
    return Quantity(
        f"speed-up of the recipe against AdamW at {'one λ' if baseline == 'one λ' else 'the best λ of each task'}",
        Selection(experiments),
        _speed_up,
        options={"baseline": baseline},
    )


def _speed_up(records: Records, baseline: str) -> Measured:
    waits, recipe = dict[str, tuple[float, float]](), recipe_of(records)
    for cell, arms in by_arm(records).items():
        if recipe not in arms or is_tuned(cell):
            continue
        found = {arm: _outcome(runs, FALLS) for arm, runs in arms.items()}
        if not _is_reachable(found):
            continue
        rival = found.get(ADAMW) if baseline == "one λ" else _best_in_hindsight(found, found[recipe])
        if rival is not None:
            waits[cell] = (_wait(rival, cell), _wait(found[recipe], cell))
    if not waits:
        return Measured.lacking(0, 1, "cells with the recipe and its baseline")
    return geometric_mean_ratio(waits)


def _is_reachable(found: Mapping[str, Measured]) -> bool:
    return any(one.number("stable") >= REACHABLE for one in found.values())


def _best_in_hindsight(found: Mapping[str, Measured], recipe: Measured) -> Measured | None:
    """Of AdamW's λ the fastest that is at least as reliable as the recipe; if none is, the most reliable.

    The λ of the final's AdamW is among them: where both experiments have a run, it counts there.
    """
    candidates = {ADAMW, *(f"AdamW at λ = {decay:g}" for decay in HINDSIGHT)}
    own = [one for arm, one in found.items() if arm in candidates]
    reliable = [one for one in own if one.number("stable") >= recipe.number("stable")]
    if reliable:
        return min(reliable, key=lambda one: one.number("steps"))
    return max(own, key=lambda one: one.number("stable"), default=None)


def _wait(found: Measured, cell: str) -> float:
    """The median steps; the budget where that is not reached."""
    steps = found.number("steps")
    return steps if isfinite(steps) else float(CELLS[cell].budget)


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
    parts: dict[str, Part] = {"value": resampled, "by t": by_t, "tasks": len(logs), "cells": len(names)}
    return Measured(parts, text, len(logs))


def reliability() -> Quantity:
    """The share of the recipe's runs on unseen tasks, where any arm gets half of its runs there, that are stable."""
    return Quantity("reliability of the recipe", Selection(("tuning", "final")), _reliability)


def _reliability(records: Records) -> Measured:
    reached, recipe = list[bool](), recipe_of(records)
    for cell, arms in by_arm(records).items():
        if recipe not in arms or is_tuned(cell):
            continue
        if _is_reachable({arm: _outcome(runs, FALLS) for arm, runs in arms.items()}):
            reached += [isfinite(stable_time(record)) for record in arms[recipe].values()]
    if not reached:
        return Measured.lacking(0, 1, "runs of the recipe on unseen tasks")
    found_share = share(sum(reached), len(reached))
    return Measured.of(found_share, f"{sum(reached):,} of {len(reached):,} runs", n=len(reached))


def stays() -> Quantity:
    """The share of the recipe's grokked runs that are below a half of the validation pairs later on."""
    return Quantity("share of the recipe's runs that fall", Selection(("tuning", "final")), _stays)


def _stays(records: Records) -> Measured:
    recipe = recipe_of(records)
    unseen = [arms for cell, arms in by_arm(records).items() if not is_tuned(cell)]
    own = [one for arms in unseen for one in arms.get(recipe, {}).values()]
    grokked = [record for record in own if record.outcome.grokked is not None]
    if not grokked:
        return Measured.lacking(0, 1, "grokked runs of the recipe")
    fell = sum(_falls(record, FALLS) for record in grokked)
    return Measured.of(share(fell, len(grokked)), f"{fell:,} of {len(grokked):,} grokked runs", n=len(grokked))


def accelerator(family: str) -> Quantity:
    """How many times sooner a published accelerator is than AdamW, both tuned alike, on the bases of unseen tasks."""
    return Quantity(
        f"speed-up of {family}", Selection(("published",)), _accelerator, options={"family": family, "baseline": ADAMW}
    )


def _accelerator(records: Records, family: str, baseline: str) -> Measured:
    waits, reached, others = dict[str, tuple[float, float]](), list[bool](), list[bool]()
    for cell, arms in by_arm(records).items():
        found = {arm: _outcome(runs, FALLS) for arm, runs in arms.items()}
        if family in found and baseline in found and _is_reachable(found):
            waits[cell] = (_wait(found[baseline], cell), _wait(found[family], cell))
            reached += [isfinite(stable_time(record)) for record in arms[family].values()]
            others += [isfinite(stable_time(record)) for record in arms[baseline].values()]
    if not waits:
        return Measured.lacking(0, 1, f"cells with {family} and {baseline}")
    ratio = geometric_mean_ratio(waits)
    lost = sum(others) / len(others) - sum(reached) / len(reached)
    parts = {**ratio.parts, "lost": lost}
    return Measured(parts, f"{ratio.text}; {sum(reached)} of {len(reached)} runs stable", n=len(reached))


def is_tuned(cell: str) -> bool:
    """Whether arms were tuned on a cell's task.

    >>> is_tuned("S5, base"), is_tuned("A5, base")
    (True, False)
    """
    return cell in {one.name for one in TUNING_TASKS.values()}


def arms_run(evidence: Evidence, experiment: str) -> list[str]:
    """The names `CELL/ARM` of which an experiment has runs, in order."""
    return list(dict.fromkeys(map(configuration, evidence.experiment(experiment))))
