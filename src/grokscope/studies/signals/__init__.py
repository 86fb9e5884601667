"""Which signal of grokking comes first: all that are published, on the same runs, with runs that cannot grok."""

from grokscope.studies import Study, gather
from grokscope.studies.run_set import RunSet
from grokscope.studies.signals import claims, figures, tables
from grokscope.studies.signals.catalogue import AFTERWARDS, CIRCUITS, MEASURES, ONE_LAYER, measured_in
from grokscope.studies.signals.experiments import CELLS, EXPERIMENTS, experiments_of, quick_runs
from grokscope.studies.signals.message import MESSAGE

__all__ = ["STUDY"]

PAPERS = {
    "2301.05217": "Nanda et al. 2023, progress measures",
    "2302.03025": "Chughtai et al. 2023, irreps of groups",
    "2604.13123": "Truong et al. 2026, spectral entropy",
    "2602.16746": "Xu 2026, commutators",
    "2603.28964": "Xu 2026, update spectra",
}

# Weights are measured while they are at hand, and so are not stored. Runs end 2,000 steps after they grok.
OPTIONS = {"stop_after_grokking": 2000, "keep": "none"}


def _run_set(name: str, cells: tuple[str, ...], seconds: float) -> RunSet:
    """Of some cells all that is measured of them; seconds at each checkpoint are a guess on the safe side."""
    own, (always, afterwards) = experiments_of(cells), measured_in(cells)
    return RunSet(
        name,
        own,
        always,
        measured=tuple(own),
        plan_options={**OPTIONS, "afterwards": afterwards},
        checkpoint_seconds=seconds / 2,  # once while it is trained, once when it has ended
    )


OTHERS = tuple(name for name in CELLS if name not in (*CIRCUITS, *ONE_LAYER))
STUDY = Study(
    name="signals",
    title="Which signal comes first: published signs of grokking on the same runs",
    papers=PAPERS,
    experiments=EXPERIMENTS,
    quick=quick_runs,
    message=MESSAGE,
    measures=MEASURES,
    measured=tuple(EXPERIMENTS),
    plan_options={**OPTIONS, "afterwards": AFTERWARDS},
    run_sets=(
        _run_set("one layer", ONE_LAYER, 0.04),
        _run_set("circuits", CIRCUITS, 0.04),
        _run_set("all others", OTHERS, 0.03),
    ),
    **gather((claims, tables, figures)),
)
