"""Claims judged on planted runs that follow the paper, contradict it, or are changed in a few places."""

from functools import cache

from paper_runs import evidence

from grokscope.runs.records import RunRecord
from grokscope.studies import Evidence, Finding, Verdict, judge
from grokscope.studies.synchronization import STUDY
from grokscope.studies.synchronization.experiments import EXPERIMENTS

CLAIMS = {claim.name: claim for claim in STUDY.claims}


@cache
def finding(name: str, follows: bool = True) -> Finding:
    """A claim on runs that follow the paper, or contradict it."""
    return judge(CLAIMS[name], evidence(follows))


def with_runs(experiment: str, **runs: RunRecord) -> Evidence:
    """The runs that follow the paper, of which some are others."""
    found = evidence(True).records
    return Evidence(found | {experiment: found[experiment] | runs})


def only(experiment: str, **runs: RunRecord) -> Evidence:
    """These runs alone."""
    return Evidence({name: {} for name in EXPERIMENTS} | {experiment: runs})


def is_decisive(name: str) -> bool:
    """Whether runs that follow the paper reproduce the claim, and runs that contradict it do not."""
    followed, contradicted = finding(name), finding(name, False)
    assert followed.n > 0
    assert followed.why.endswith(".")
    return followed.verdict is Verdict.REPRODUCED and contradicted.verdict in (Verdict.NOT, Verdict.PARTLY)
