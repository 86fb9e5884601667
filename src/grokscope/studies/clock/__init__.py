"""The clock: whether the norm, the scale of the logits, λ·t or ηλ·t sets when a run groks, and in which model.

Judged: arXiv 2606.13753, 2606.18465, 2605.18845 and 2603.13331.
"""

from grokscope.studies import Study, gather
from grokscope.studies.clock import doses, figures, mediation, passage, tables
from grokscope.studies.clock.experiments import EXPERIMENTS, quick_runs
from grokscope.studies.clock.message import MESSAGE
from grokscope.studies.run_set import RunSet

__all__ = ["STUDY"]

OPTIONS = {"stop_after_grokking": 500, "keep": "forks", "signals": True}
MEASURED = ("logit_scale",)
STUDY = Study(
    name="clock",
    title="The clock: norm, logits or decay, and what the final LayerNorm does",
    experiments=EXPERIMENTS,
    quick=quick_runs,
    message=MESSAGE,
    source="Khanh et al. 2026, arXiv 2606.13753, 2606.18465, 2605.18845 and 2603.13331",
    milestones=MEASURED,
    plan_options=OPTIONS,
    run_sets=(  # the parents first, and again with their forks, whose levels come from them
        RunSet("parents", {"parents": EXPERIMENTS["parents"]}, milestones=MEASURED, plan_options=OPTIONS),
        RunSet("parents with their forks", EXPERIMENTS, milestones=MEASURED, plan_options=OPTIONS),
    ),
    **gather((doses, mediation, passage, tables, figures)),
)
