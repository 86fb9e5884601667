"""Which signal of grokking comes first: all that are published, on the same runs, with runs that cannot grok."""

from grokscope.studies import Study, gather
from grokscope.studies.signals import claims, figures, tables
from grokscope.studies.signals.catalogue import AFTERWARDS, MEASURES
from grokscope.studies.signals.experiments import EXPERIMENTS, quick_runs
from grokscope.studies.signals.message import MESSAGE

__all__ = ["STUDY"]

STUDY = Study(
    name="signals",
    title="Which signal comes first: published signs of grokking on the same runs",
    experiments=EXPERIMENTS,
    quick=quick_runs,
    message=MESSAGE,
    measures=MEASURES,
    measured=tuple(EXPERIMENTS),
    # Weights are measured while they are at hand, and so are not stored. Runs end 2,000 steps after they grok.
    plan_options={"stop_after_grokking": 2000, "keep": "none", "afterwards": AFTERWARDS},
    **gather((claims, tables, figures)),
)
