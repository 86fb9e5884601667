"""What became of an arm's runs: when they grokked, when they did so for good, and how many did."""

from collections.abc import Mapping
from math import inf, isfinite

from grokscope.runs.records import RunRecord
from grokscope.stats import Estimate, kaplan_meier, share
from grokscope.studies import Measured, Part, Quantity, Records, Selection
from grokscope.studies.steering.quantities import stable_time

__all__ = ["grok_time", "outcome", "pattern", "read_events"]


def pattern(setting: str, arm: str) -> str:
    """How an arm's runs are called, without their seeds.

    >>> pattern("Grokfast", "Adam")
    'Grokfast/Adam'
    """
    return f"{setting}/{arm}"


def grok_time(record: RunRecord) -> float:
    """The first evaluation with validation accuracy ≥ 0.95; infinite if there was none."""
    grokked = record.timeline.grokked
    return inf if grokked is None else float(grokked)


def read_events(record: RunRecord) -> Mapping[str, float]:
    """What claims read of one run: steps are infinite where an event did not come, waits are the budget then.

    Of a baseline that has not got there its wait is counted, of an accelerator infinity: what is not seen never speaks
    for the accelerator.
    """
    budget, memorised = float(record.spec.training.steps), record.timeline.memorized
    found = {"grok": grok_time(record), "stable": stable_time(record)}
    waits = {f"{name} wait": min(step, budget) for name, step in found.items()}
    reached = {f"{name} reached": float(isfinite(step)) for name, step in found.items()}
    return {**found, **waits, **reached, "memorised": inf if memorised is None else float(memorised)}


def outcome(experiment: str, name: str) -> Quantity:
    """What became of the runs of one arm (`SETTING/ARM`)."""
    return Quantity(
        "steps to grokking and to stable generalisation", Selection((experiment,), configuration=name), _outcome
    )


def _outcome(records: Records) -> Measured:
    """Medians by Kaplan–Meier: a run that has not got there is later than the last evaluation that was seen."""
    parts: dict[str, Part] = {"runs": len(records)}
    for name, time in (("grokked", grok_time), ("stable", stable_time)):
        times = [time(record) for record in records.values()]
        reached = [isfinite(one) for one in times]
        parts[name] = share(sum(reached), len(reached))
        parts[f"{name} steps"] = _median(records, times, reached)
    parts["diverged"] = sum(record.outcome.failed_at is not None for record in records.values())
    return Measured(parts, n=len(records))


def _median(records: Records, times: list[float], reached: list[bool]) -> Estimate:
    last = [float(record.timeline.last) for record in records.values()]
    return kaplan_meier([min(pair) for pair in zip(times, last, strict=True)], reached).median
