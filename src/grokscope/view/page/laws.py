"""Forks on a page: families of branches, and the timing law fitted to them."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from grokscope.errors import InputError
from grokscope.law import ForkedRun, LawFit, fit_law, forked_run, outcomes_by_decay
from grokscope.law.forms import FormName
from grokscope.runs.records import begins_in
from grokscope.stats import Estimate
from grokscope.view.page.rows import events_of
from grokscope.view.page.sources import ShownRun, identity

__all__ = ["forks_of"]

FORMS: tuple[FormName, ...] = ("mean", "inverse", "power", "offset")
RESAMPLES = 2_000
SEED = 0


def forks_of(runs: Sequence[ShownRun]) -> dict[str, Any]:
    """Families of branches, the wait of each plain fork, fits for each task, and what they leave out.

    Plain is a fork that changes λ alone: its norm is free, its weights and moments are the parent's.
    """
    places = {identity(run.record.spec): place for place, run in enumerate(runs)}
    families: dict[tuple[str, int], list[int]] = {}
    waits: dict[int, ForkedRun] = {}
    for place, run in enumerate(runs):
        fork = run.record.spec.fork
        if fork is None:
            continue
        families.setdefault((fork.parent, fork.step), []).append(place)
        if (found := _plain(run)) is not None:
            waits[place] = found
    return {
        "families": [
            {
                "parent": places.get(parent),
                "hash": parent,
                "step": step,
                "runs": members,
                "remade": _remade(runs, places.get(parent), members),
            }
            for (parent, step), members in sorted(families.items(), key=lambda item: (-len(item[1]), item[0]))
        ],
        "waits": [_wait(place, run) for place, run in waits.items()],
        "fits": [fit for task in sorted({run.task for run in waits.values()}) for fit in _fits(task, waits)],
        "outcomes": _outcomes(list(waits.values())),
    }


def _remade(runs: Sequence[ShownRun], parent: int | None, members: Sequence[int]) -> int:
    """How many branches begin elsewhere than this parent was at that step: it was made again since."""
    if parent is None:
        return 0
    return sum(not begins_in(runs[place].record, runs[parent].record) for place in members)


def _plain(run: ShownRun) -> ForkedRun | None:
    spec, events = run.record.spec, events_of(run)
    if spec.fork is None or events is None or not run.is_finished or spec.trigger is not None:
        return None
    is_plain = spec.fork.norm == "free" and spec.fork.scale == 1 and spec.fork.moments == "kept"
    if not is_plain or spec.training.weight_decay_schedule:
        return None
    try:
        return forked_run(spec, events)
    except InputError:  # without decay there is no law
        return None


def _wait(place: int, run: ForkedRun) -> dict[str, Any]:
    return {
        "run": place,
        "task": run.task,
        "weight_decay": run.weight_decay,
        "wait": run.steps_to_grok,
        "watched": run.watched,
        "cadence": run.cadence,
        "ending": str(run.ending),
    }


def _fits(task: str, waits: dict[int, ForkedRun]) -> list[dict[str, Any]]:
    runs = [run for run in waits.values() if run.task == task]
    found = []
    for form in FORMS:
        try:
            found.append(_fit(task, fit_law(runs, form, seed=SEED, resamples=RESAMPLES)))
        except InputError:  # too few λ at which any run grokked
            continue
    return found


def _fit(task: str, fit: LawFit) -> dict[str, Any]:
    return {
        "task": task,
        "form": fit.form,
        "parameters": {name: _ends(estimate) for name, estimate in fit.parameters.items()},
        "draws": next(iter(fit.parameters.values())).items,
        "r_squared": _finite(fit.r_squared),
        "aic": _finite(fit.aic),
        "left_out_error": _finite(fit.left_out_error),
        "weight_decay": fit.weight_decay.tolist(),
        "observed": fit.observed.tolist(),
    }


def _ends(estimate: Estimate) -> list[float | None]:
    return [_finite(estimate.value), _finite(estimate.low), _finite(estimate.high)]


def _finite(value: float | int) -> float | int | None:
    return value if isfinite(value) else None


def _outcomes(runs: list[ForkedRun]) -> list[dict[str, Any]]:
    return [
        {
            "task": one.task,
            "weight_decay": one.weight_decay,
            "endings": {str(ending): count for ending, count in one.endings.items()},
            "unstable_after": one.unstable_after,
            "failure": _ends(one.failure),
        }
        for one in outcomes_by_decay(runs)
    ]
