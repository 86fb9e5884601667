"""The band in which FSD lies in untrained networks."""

from collections.abc import Collection, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np

from grokscope.view.page.rows import task_or_none
from grokscope.view.page.sources import ShownRun

__all__ = ["null_bands"]

ENOUGH = 20  # untrained networks of which a 5 % and a 95 % quantile say something
Kind = tuple[str, str]


def null_bands(runs: Sequence[ShownRun], detailed: Collection[int] = ()) -> dict[str, dict[str, Any]]:
    """The null band of each run's FSD, by the run's place: [low, high] of nine in ten, and what it is made of.

    The first evaluations of the page's own runs, which are untrained networks of one task and model, where there are
    enough. Else such networks are computed for the runs shown in detail, and other runs have no band: that of
    independent neurons is narrower than that of any network, so even an untrained one would seem significant.
    """
    untrained: dict[Kind, dict[int, float]] = {}
    for run in runs:
        if (value := _at_start(run)) is not None:
            untrained.setdefault(_kind(run), {})[run.record.spec.seeds.initialization] = value
    samples = {kind: [*values.values()] for kind, values in untrained.items() if len(values) >= ENOUGH}
    for run in (runs[place] for place in detailed):
        if _kind(run) not in samples:
            samples[_kind(run)] = _computed(run)
    bands = {kind: _band(values) for kind, values in samples.items()}
    return {str(place): band for place, run in enumerate(runs) if (band := bands.get(_kind(run))) is not None}


def _kind(run: ShownRun) -> Kind:
    spec = run.record.spec
    return spec.task, spec.architecture.to_json() + spec.initialization.to_json()


def _at_start(run: ShownRun) -> float | None:
    """FSD of the untrained network, if it was evaluated."""
    log: Mapping[str, Sequence[float]] = run.record.evaluations
    if run.record.spec.fork is not None or not log.get("step") or log["step"][0] != 0 or "fsd" not in log:
        return None
    return None if isnan(log["fsd"][0]) else log["fsd"][0]


def _computed(run: ShownRun) -> list[float]:
    """FSD of untrained networks of this run's task and model; none of somebody else's, which are not known."""
    from grokscope.measures.fsd_null import NULL_DRAWS
    from grokscope.measures.surrogates import untrained_null

    spec = run.record.spec
    task = task_or_none(spec.task)
    if spec.model or task is None or not task.bases:
        return []
    return [value for value in untrained_null(spec, draws=NULL_DRAWS).values.tolist() if not isnan(value)]


def _band(values: list[float]) -> dict[str, Any] | None:
    if len(values) < ENOUGH:
        return None
    low, high = np.quantile(values, [0.05, 0.95]).tolist()
    return {"low": low, "high": high, "of": f"{len(values)} untrained networks of this task and model"}
