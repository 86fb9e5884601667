"""The bake-off: every way of making a run grok sooner, on the same tasks, seeds, budget and tuning."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from grokscope.studies import Study, gather
from grokscope.studies.bakeoff import figures, tables
from grokscope.studies.bakeoff.configurations import (
    AFTER_GROKKING,
    BUDGET,
    TASKS,
    bakeoff_runs,
    quick_runs,
    tuning_runs,
)

__all__ = ["STUDY", "bakeoff_study"]

STUDY = Study(
    name="bakeoff",
    title="Bake-off: methods that accelerate grokking, with equal seeds, budget and tuning",
    experiments={"bakeoff": bakeoff_runs, "tuning": tuning_runs},
    quick=quick_runs,
    plan_options={"stop_after_grokking": AFTER_GROKKING},
    **gather((tables, figures)),
)


def bakeoff_study(tasks: Iterable[str] = TASKS, budget: int = BUDGET) -> Study:
    """The bake-off on these tasks, with this budget in steps.

    >>> bakeoff_study(["add_mod23"], budget=2000).name
    'bakeoff'
    """
    return replace(
        STUDY, experiments={**STUDY.experiments, "bakeoff": partial(bakeoff_runs, tasks=tuple(tasks), budget=budget)}
    )
