"""Steering: which way of training generalises soonest and stays, with equal tuning, on tasks that nobody tuned on."""

from grokscope.studies import Study, gather
from grokscope.studies.steering import figures, tables, verdicts
from grokscope.studies.steering.experiments import EXPERIMENTS, quick_runs
from grokscope.studies.steering.verdicts import MESSAGE

__all__ = ["STUDY"]

STUDY = Study(
    name="steering",
    title="Steering: which way of training generalises soonest and stays",
    papers={"2210.01117": "Liu et al. 2022, Omnigrok"},
    experiments=EXPERIMENTS,
    quick=quick_runs,
    message=MESSAGE,
    **gather((verdicts, tables, figures)),
)
