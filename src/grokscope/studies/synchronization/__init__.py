"""The seed paper, "Circuit Synchronization Precedes Generalization": its runs, tables, figures and claims."""

from grokscope.studies import Study, gather
from grokscope.studies.synchronization import (
    ablation,
    accelerator,
    architecture,
    censored_law,
    clock,
    crossprime,
    false_alarms,
    formulas,
    fsd_values,
    group_alarms,
    group_curves,
    groups,
    intervention,
    lead_share,
    leads,
    norm_interventions,
    operations,
    over_time,
    phases,
    restricted_loss,
    sensitivity,
    specification_curve,
    stability,
    threshold,
    timing_law,
)
from grokscope.studies.synchronization.edition import MEASURES, MILESTONES, NEW, RUN_SETS
from grokscope.studies.synchronization.experiments import EXPERIMENTS, quick_runs
from grokscope.studies.synchronization.message import MESSAGE
from grokscope.studies.synchronization.models import save_models

__all__ = ["STUDY"]

# In the paper's order.
SECTIONS = (
    leads,
    fsd_values,
    lead_share,
    restricted_loss,
    false_alarms,
    phases,
    over_time,
    intervention,
    formulas,
    ablation,
    operations,
    architecture,
    timing_law,
    crossprime,
    censored_law,
    clock,
    threshold,
    norm_interventions,
    accelerator,
    groups,
    group_curves,
    group_alarms,
    sensitivity,
    specification_curve,
    stability,
)

STUDY = Study(
    name="synchronization",
    title="Circuit Synchronization Precedes Generalization",
    papers={"2606.12966": "Circuit Synchronization Precedes Generalization"},
    experiments=EXPERIMENTS | NEW,
    run_sets=RUN_SETS,
    quick=quick_runs,
    save_models=save_models,
    sparse_columns=(
        "norm_",
        "update_",
        "fingerprint",
    ),  # signals of weights: larger than all other curves
    message=MESSAGE,
    # At every checkpoint; readings that a task does not have are left out.
    measures=MEASURES,
    milestones=MILESTONES,
    # Of forks, triggered and sensitivity runs nothing is asked that their logs do not tell.
    measured=("base", "symmetric", "architecture", "multiplication", "open_questions", "negatives"),
    **gather(SECTIONS),
)
