"""The clock: whether the norm, the scale of the logits, λ·t or ηλ·t sets when a run groks, and in which model."""

from grokscope.studies import Study, gather
from grokscope.studies.clock import doses, figures, mediation, passage, tables
from grokscope.studies.clock.experiments import EXPERIMENTS, quick_runs
from grokscope.studies.clock.message import MESSAGE
from grokscope.studies.run_set import RunSet

__all__ = ["STUDY"]

PAPERS = {
    "2606.13753": "Truong et al. 2026, the weight norm sets the timescale",
    "2606.18465": "Truong 2026, what the weight norm controls",
    "2605.18845": "Truong et al. 2026, first-passage prediction",
    "2603.13331": "Truong et al. 2026, the norm-separation delay law",
}

OPTIONS = {"stop_after_grokking": 500, "keep": "forks", "signals": True}
MEASURED = ("logit_scale",)


def _run_set(name: str, *experiments: str) -> RunSet:
    """Of what is measured, a forward pass is all, at two checkpoints of a run."""
    own = {one: EXPERIMENTS[one] for one in experiments}
    return RunSet(name, own, milestones=MEASURED, plan_options=OPTIONS, milestone_seconds=0.05)


STUDY = Study(
    name="clock",
    title="The clock: norm, logits or decay, and what the final LayerNorm does",
    experiments=EXPERIMENTS,
    quick=quick_runs,
    message=MESSAGE,
    papers=PAPERS,
    milestones=MEASURED,
    plan_options=OPTIONS,
    run_sets=(  # the parents first, and again with their forks, whose levels come from them
        _run_set("parents", "parents"),
        _run_set("parents with their forks", *EXPERIMENTS),
    ),
    **gather((doses, mediation, passage, tables, figures)),
)
