"""Every kind of task, trained: what memorises, what groks, and what cannot."""

from grokscope.studies import Study, gather
from grokscope.studies.tasks import curves, outcomes
from grokscope.studies.tasks.experiments import EXPERIMENTS, quick_runs

__all__ = ["STUDY"]

STUDY = Study(
    name="tasks",
    title="Beyond pair tables: every kind of task, with controls that cannot be generalised",
    experiments=EXPERIMENTS,
    quick=quick_runs,
    plan_options={"stop_after_grokking": 2000},
    **gather((outcomes, curves)),
)
