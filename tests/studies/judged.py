"""Claims judged on planted runs that follow the paper, contradict it, or are changed in a few places."""

from paper_runs import evidence

from grokscope.runs.records import RunRecord
from grokscope.studies import Evidence
from grokscope.studies.synchronization import STUDY
from grokscope.studies.synchronization.experiments import EXPERIMENTS

CLAIMS = {claim.name: claim for claim in STUDY.claims}


def with_runs(experiment: str, **runs: RunRecord) -> Evidence:
    """The runs that follow the paper, of which some are others."""
    found = evidence(True).records
    return Evidence(found | {experiment: found[experiment] | runs})


def only(experiment: str, **runs: RunRecord) -> Evidence:
    """These runs alone."""
    return Evidence({name: {} for name in EXPERIMENTS} | {experiment: runs})
