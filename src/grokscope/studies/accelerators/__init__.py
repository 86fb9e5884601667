"""Published accelerators of grokking: each in its authors' own setting, as far as it is known, and in ours.

What is not the authors' own is said in `reported`. The limits: one task or few for each paper, one value of each
hyperparameter that is not published, and runs that end 3,000 steps after grokking.
"""

from grokscope.studies import Study, gather
from grokscope.studies.accelerators import claims, figures, tables
from grokscope.studies.accelerators.experiments import EXPERIMENTS, OWN, quick_runs
from grokscope.studies.accelerators.message import MESSAGE
from grokscope.studies.accelerators.reported import PAPERS
from grokscope.studies.accelerators.settings import AFTER_GROKKING
from grokscope.studies.run_set import RunSet

__all__ = ["STUDY"]

OPTIONS = {"stop_after_grokking": AFTER_GROKKING, "keep": "none"}
STUDY = Study(
    name="accelerators",
    title="Accelerators of grokking in their authors' settings and in ours",
    papers=PAPERS,
    experiments=EXPERIMENTS,
    quick=quick_runs,
    message=MESSAGE,
    plan_options=OPTIONS,
    # A part for each, none of more than some minutes; those runs that it shares are a part of the steering study.
    run_sets=tuple(RunSet(name, {name: runs}, plan_options=OPTIONS) for name, runs in OWN.items()),
    **gather((claims, tables, figures)),
)
