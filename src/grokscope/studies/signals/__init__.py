"""Which signal of grokking comes first: all that are published, on the same runs, with runs that cannot grok."""

from grokscope.studies import Study, gather
from grokscope.studies.signals import claims, figures, tables
from grokscope.studies.signals.catalogue import AFTERWARDS, MEASURES
from grokscope.studies.signals.experiments import EXPERIMENTS, quick_runs
from grokscope.studies.signals.message import MESSAGE

__all__ = ["STUDY"]

PAPERS = {
    "2301.05217": "Nanda et al. 2023, progress measures",
    "2302.03025": "Chughtai et al. 2023, irreps of groups",
    "2604.13123": "Khanh et al. 2026, spectral entropy",
    "2602.16746": "Xu 2026, commutators",
    "2603.28964": "Xu 2026, update spectra",
}

STUDY = Study(
    name="signals",
    title="Which signal comes first: published signs of grokking on the same runs",
    papers=PAPERS,
    experiments=EXPERIMENTS,
    quick=quick_runs,
    message=MESSAGE,
    measures=MEASURES,
    measured=tuple(EXPERIMENTS),
    # Weights are measured while they are at hand, and so are not stored. Runs end 2,000 steps after they grok.
    plan_options={"stop_after_grokking": 2000, "keep": "none", "afterwards": AFTERWARDS},
    **gather((claims, tables, figures)),
)
