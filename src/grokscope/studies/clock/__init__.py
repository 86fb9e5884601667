"""The clock: does the norm, the scale of the logits, λ·t or ηλ·t set when a run groks, and in which model?

Judged: arXiv 2606.13753, 2606.18465, 2605.18845 and 2603.13331.
"""

from grokscope.studies import Study, gather
from grokscope.studies.clock import doses, figures, mediation, passage, tables
from grokscope.studies.clock.experiments import EXPERIMENTS, quick_runs
from grokscope.studies.clock.message import MESSAGE

__all__ = ["STUDY"]

STUDY = Study(
    name="clock",
    title="The clock: norm, logits or decay, and what the final LayerNorm does",
    experiments=EXPERIMENTS,
    quick=quick_runs,
    message=MESSAGE,
    source="Khanh et al. 2026, arXiv 2606.13753, 2606.18465, 2605.18845 and 2603.13331",
    milestones=("logit_scale",),
    plan_options={"stop_after_grokking": 500, "keep": "forks"},
    **gather((doses, mediation, passage, tables, figures)),
)
