"""Every kind of task, trained: what memorises, what groks, and what cannot."""

from grokscope.studies import Study, gather
from grokscope.studies.run_set import RunSet
from grokscope.studies.tasks import curves, outcomes
from grokscope.studies.tasks.experiments import EXPERIMENTS, quick_runs

__all__ = ["STUDY"]

OPTIONS = {"stop_after_grokking": 2000}
LONGER = {"two-hop": EXPERIMENTS["two-hop"]}  # more than half of all run-steps, on sequences of four
STUDY = Study(
    name="tasks",
    title="Beyond pair tables: every kind of task, with controls that cannot be generalised",
    experiments=EXPERIMENTS,
    quick=quick_runs,
    plan_options=OPTIONS,
    run_sets=(
        RunSet("all but two hops", {k: v for k, v in EXPERIMENTS.items() if k not in LONGER}, plan_options=OPTIONS),
        RunSet("two hops", LONGER, plan_options=OPTIONS, speed=0.6),
    ),
    **gather((outcomes, curves)),
)
