"""The band in which FSD lies in untrained networks."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import isnan
from typing import Any

import numpy as np

from grokscope.measures.nulls import strongest_mode_chances
from grokscope.stats.multinomial import peak_tail
from grokscope.view.page.rows import task_or_none
from grokscope.view.page.sources import ShownRun

__all__ = ["null_bands"]

ENOUGH = 20  # untrained networks of which a 5 % and a 95 % quantile say something
Kind = tuple[str, str]


def null_bands(runs: Sequence[ShownRun]) -> dict[str, dict[str, Any]]:
    """The null band of each run's FSD, by the run's place: [low, high] of nine in ten, and what it is made of.

    The first evaluations of the page's own runs, which are untrained networks of one task and model, where there are
    enough; else the exact distribution for independent neurons, which is narrower than that of any network.
    """
    untrained: dict[Kind, dict[int, float]] = {}
    for run in runs:
        if (value := _at_start(run)) is not None:
            untrained.setdefault(_kind(run), {})[run.record.spec.seeds.initialization] = value
    examples = {_kind(run): run for run in runs}
    bands = {kind: _band(run, [*untrained.get(kind, {}).values()]) for kind, run in examples.items()}
    return {str(place): band for place, run in enumerate(runs) if (band := bands[_kind(run)]) is not None}


def _kind(run: ShownRun) -> Kind:
    spec = run.record.spec
    return spec.task, spec.architecture.to_json() + spec.initialization.to_json()


def _at_start(run: ShownRun) -> float | None:
    """FSD of the untrained network, if it was evaluated."""
    log: Mapping[str, Sequence[float]] = run.record.evaluations
    if run.record.spec.fork is not None or not log.get("step") or log["step"][0] != 0 or "fsd" not in log:
        return None
    return None if isnan(log["fsd"][0]) else log["fsd"][0]


def _band(run: ShownRun, values: list[float]) -> dict[str, Any] | None:
    if len(values) >= ENOUGH:
        low, high = np.quantile(values, [0.05, 0.95]).tolist()
        return {"low": low, "high": high, "of": f"{len(values)} untrained networks of this task and model"}
    task, shape = task_or_none(run.record.spec.task), run.record.spec.architecture
    dimensions = () if task is None else tuple(task.basis().modes.dimensions.tolist())
    if len(dimensions) < 2:
        return None
    low, high = _independent(dimensions, shape.mlp_width if shape.mlp == "on" else shape.width)
    return {"low": low, "high": high, "of": "independent neurons (exact); those of a network agree more"}


@lru_cache(maxsize=256)
def _independent(dimensions: tuple[int, ...], neurons: int) -> tuple[float, float]:
    """The 5 % and 95 % quantiles of FSD where each neuron's strongest mode is noise."""
    chances, modes = strongest_mode_chances(dimensions), len(dimensions)
    peaks = [_largest(neurons, chances, tail) for tail in (0.95, 0.05)]
    low, high = ((peak / neurons - 1 / modes) / (1 - 1 / modes) for peak in peaks)
    return low, high


def _largest(neurons: int, chances: tuple[float, ...], tail: float) -> int:
    """The largest peak that is reached with at least this chance."""
    low, high = 0, neurons + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if peak_tail(middle, neurons, chances) >= tail else (low, middle)
    return low
