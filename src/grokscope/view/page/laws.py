"""Forks on a page: the branches of each run, and the law of each family of forks with its chart."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from grokscope.law import Ending, Family, Law, begins_in, fork_families, law_of, outcomes_by_decay
from grokscope.stats import Estimate
from grokscope.view.charts.figure import Panel, Series
from grokscope.view.families import FITTED, fitted_size, left_out
from grokscope.view.page.sources import ShownRun

__all__ = ["forks_of"]

GRID = 40  # places of λ at which a fitted law is drawn
MARGIN = 1.3  # how far beyond the data the axes go, as a factor


def forks_of(runs: Sequence[ShownRun]) -> dict[str, Any]:
    """The branches of every forked run, and the laws of the families of forks that change nothing but λ."""
    places = {run.record.spec.identity: place for place, run in enumerate(runs)}
    branches: dict[tuple[str, int], list[int]] = {}
    for place, run in enumerate(runs):
        if (fork := run.record.spec.fork) is not None:
            branches.setdefault((fork.parent, fork.step), []).append(place)
    return {
        "branches": [
            {
                "parent": places.get(parent),
                "hash": parent,
                "step": step,
                "runs": members,
                "retrained": _retrained(runs, places.get(parent), members),
            }
            for (parent, step), members in sorted(branches.items(), key=lambda item: (-len(item[1]), item[0]))
        ],
        "laws": [_law(family) for family in fork_families([run.record for run in runs])],
    }


def _retrained(runs: Sequence[ShownRun], parent: int | None, members: Sequence[int]) -> int:
    """How many branches do not begin where this parent was at that step: it was trained again since."""
    if parent is None:
        return 0
    return sum(not begins_in(runs[place].record, runs[parent].record) for place in members)


def _law(family: Family) -> dict[str, Any]:
    law = law_of(family.runs)
    constant, power = law.constant, law.power
    return {
        "title": family.title,
        "task": family.task,
        "size": fitted_size(family),
        "left_out": left_out(family),
        "constant": _ends(constant.parameters["constant"]) if constant else None,
        "seeds": constant.parameters["constant"].items if constant else None,
        "spread": constant.spread if constant else None,
        "exponent": _ends(power.parameters["exponent"]) if power else None,
        "aic_difference": _finite(law.aic_difference),
        "reason": law.reason,
        "runs": [branch.place for branch in family.branches],
        "chart": _chart(family, law).to_dict(),
        "outcomes": [
            {
                "weight_decay": one.weight_decay,
                "endings": {str(ending): count for ending, count in one.endings.items()},
                "unstable_after": one.unstable_after,
            }
            for one in outcomes_by_decay(family.runs)
        ],
    }


def _chart(family: Family, law: Law) -> Panel:
    """Δt against λ: forks that grokked, those of which Δt is known to be longer, and the fitted laws."""
    grokked = [run for run in family.runs if run.ending is Ending.GROKKED]
    times = [float(run.steps_to_grok or 0) for run in grokked]
    series = [
        Series("grokked", "points", "validation", "run", tuple(r.weight_decay for r in grokked), tuple(times)),
    ]
    for ending, text, role in (
        (Ending.CENSORED, "not grokked: Δt is longer", "null"),
        (Ending.FAILED, "unstable: not fitted", "grokked"),
    ):
        some = [run for run in family.runs if run.ending is ending]
        label = f"{text} (n = {len(some)})"
        at, until = tuple(r.weight_decay for r in some), tuple(r.watched for r in some)
        series += [Series(label, "points", role, "paper", at, until)] if some else []
    decays = sorted({run.weight_decay for run in family.runs})
    fitted = sorted({run.weight_decay for run in family.runs if run.ending in FITTED}) or decays
    grid = np.geomspace(fitted[0] / MARGIN, fitted[-1] * MARGIN, GRID)
    across = tuple(grid.tolist())
    if law.constant:
        found = law.constant.parameters["constant"]
        known = isfinite(found.low)
        low, high = (tuple((end / grid).tolist()) if known else () for end in (found.low, found.high))
        series.append(Series("C/λ", "line", "theory", "run", across, tuple((found.value / grid).tolist()), low, high))
    if law.power:
        curve = tuple(map(law.power.predict, across))
        series.append(Series("C λ^−α", "line", "fsd", "fit", across, curve))
    return Panel(
        "Time to grok against weight decay",
        "weight decay λ after the fork",
        "steps Δt from fork to grokking",
        tuple(series),
        x_ticks=tuple((decay, f"{decay:g}") for decay in decays),
        log_x=True,
        log_y=True,
        x_range=(decays[0] / MARGIN, decays[-1] * MARGIN),
    )


def _ends(estimate: Estimate) -> list[float | None]:
    return [_finite(estimate.value), _finite(estimate.low), _finite(estimate.high)]


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
