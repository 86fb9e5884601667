"""Forecasts of runs on a page, for as many as can be made at once."""

from collections.abc import Iterable, Mapping
from typing import Any

from grokscope.forecast import forecast_fans, run_prefix
from grokscope.view.page.sources import ShownRun

__all__ = ["MOST_FANS", "fanned_names", "fans_of"]

MOST_FANS = 120  # of one page: half a second, and some 100 KB
UNKNOWN = 10_000  # steps ahead where a run's last step is not known


def fanned_names(runs: Iterable[ShownRun]) -> frozenset[str]:
    """The runs of a page that are forecast: those that have not ended come first."""
    evaluated = [run for run in runs if len(run.record.evaluations.get("step", ()))]
    return frozenset(run.name for run in sorted(evaluated, key=lambda run: run.is_finished)[:MOST_FANS])


def fans_of(runs: Iterable[ShownRun]) -> Mapping[str, dict[str, Any]]:
    """Name → what the page draws of a run's forecasts so far.

    >>> fans_of([])
    {}
    """
    evaluated = [run for run in runs if len(run.record.evaluations.get("step", ()))]
    prefixes = [run_prefix(run.record.spec, run.record.evaluations) for run in evaluated]
    lasts = [_last_step(run, seen.step) for run, seen in zip(evaluated, prefixes, strict=True)]
    fans = forecast_fans(prefixes, lasts)
    return {run.name: fan.to_dict() for run, fan in zip(evaluated, fans, strict=True)}


def _last_step(run: ShownRun, now: int) -> int:
    """Where the run ends; of a model that is not ours, whose spec does not know it, some steps from now."""
    spec = run.record.spec
    return now + UNKNOWN if spec.model else max(spec.training.steps, now)
