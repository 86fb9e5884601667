"""What is read of one seed: when each of its runs had grokked, at which norm, and with how large logits."""

from collections.abc import Mapping
from math import inf, nan
from typing import Any

import numpy as np

from grokscope.runs.records import RunRecord
from grokscope.studies import Estimand, Records, Selection, Stratum
from grokscope.studies.clock.cells import MODELS
from grokscope.studies.clock.experiments import EXPERIMENTS
from grokscope.studies.clock.norms import norm_at_grokking_of
from grokscope.studies.estimand import Derive
from grokscope.studies.reduction import Reduction

__all__ = ["ALL", "cells_of", "clamp_estimand", "held_level", "logits_at_grokking", "read_cells", "slope_and_fit"]

ALL = tuple(EXPERIMENTS)
Array = Any  # of numpy; behind the first axis are designs


def cells_of(model: str, *cells: str) -> Selection:
    """The runs of some cells of a model, of all seeds.

    >>> cells_of("mlp", "free").configuration
    'mlp-free'
    """
    return Selection(ALL, configuration="|".join(f"{model}-{cell}" for cell in cells))


def held_level(record: RunRecord) -> float:
    """The norm that a run is held at; NaN where none is, or where it is that of another run."""
    hold = record.spec.norm_hold
    return nan if hold is None or hold.level is None else hold.level


def logits_at_grokking(record: RunRecord) -> float:
    """The effective scale of the logits at the first checkpoint since grokking; NaN where it was not measured."""
    grokked, steps = record.timeline.grokked, record.checkpoints.get("step", [])
    values = record.checkpoints.get("logit_scale", [])
    known = [
        float(value)
        for step, value in zip(steps, values, strict=False)
        if grokked is not None and step >= grokked and value == value
    ]
    return known[0] if known else nan


def read_cells(runs: Records, cells: tuple[str, ...]) -> Mapping[str, float]:
    """When each cell of one seed grokked, and how it stood then; nothing where a cell, or the parent, is missing.

    `step` is the first evaluation at which it had, `delay` the same since its fork or its start, both infinite where it
    had not, and `seen step` and `seen delay` its last evaluation then; `groks`; `norm` and `logits` at that step; `ρ`,
    the held norm over that at which the parent groks.
    """
    own = {name.partition("-")[2]: record for name, record in runs.items()}
    if any(cell not in own for cell in ("free", *cells)):
        return {}
    parent = norm_at_grokking_of(own["free"])
    found: dict[str, float] = {}
    for cell in cells:
        record, events = own[cell], own[cell].timeline
        step = inf if events.grokked is None else float(events.grokked)
        seen = min(step, float(events.last))
        found |= {
            f"step {cell}": step,
            f"delay {cell}": step - events.first,
            f"seen step {cell}": seen,
            f"seen delay {cell}": seen - events.first,
            f"groks {cell}": float(events.grokked is not None),
            f"norm {cell}": norm_at_grokking_of(record),
            f"logits {cell}": logits_at_grokking(record),
            f"ρ {cell}": held_level(record) / parent,
        }
    return found


def clamp_estimand(
    name: str,
    model: str,
    cells: tuple[str, ...],
    parts: Mapping[str, Reduction],
    text: str,
    effect: tuple[str | tuple[str, ...], str],
    derive: Derive | None = None,
    drawn: int | None = None,
) -> Estimand:
    """What is made of some cells of one model; seeds are drawn, each with its parent and all its forks."""
    runs = cells_of(model, *dict.fromkeys(("free", *cells)))
    strata = (Stratum(MODELS[model].title, runs, drawn),)
    return Estimand(name, strata, read_cells, parts, text, effect, "seed", options={"cells": cells}, derive=derive)


def slope_and_fit(x: Array, y: Array) -> tuple[Array, Array]:
    """Slope and R² of y on x by least squares along the first axis; points that are not finite are left out.

    NaN with fewer than three points: a line through two fits whatever is true. Of a y that does not vary R² is 0.

    >>> [float(one) for one in slope_and_fit(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]))]
    [2.0, 1.0]
    """
    known = np.isfinite(x) & np.isfinite(y)
    n = np.where(known.sum(axis=0) > 2, known.sum(axis=0), np.nan)
    x, y = (np.where(known, one, 0.0) for one in (x, y))
    dx, dy = (np.where(known, one - one.sum(axis=0) / n, 0.0) for one in (x, y))
    xx, yy, xy = (dx * dx).sum(axis=0), (dy * dy).sum(axis=0), (dx * dy).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        explained = np.where(yy > 0, xy * xy / (xx * yy), 0.0)
        return np.where(n > 0, xy / xx, np.nan), np.where(n > 0, explained, np.nan)
