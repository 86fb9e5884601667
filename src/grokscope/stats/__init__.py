"""Tests and intervals: sign test, Holm, bootstrap over items or clusters, shares, correlation, censored times."""

from grokscope.stats.intervals import Estimate, bootstrap, cluster_means, clustered_bootstrap, correlation, share
from grokscope.stats.significance import SignTest, holm, sign_test
from grokscope.stats.survival import LogRank, Survival, kaplan_meier, logrank

__all__ = [
    "Estimate",
    "LogRank",
    "SignTest",
    "Survival",
    "bootstrap",
    "cluster_means",
    "clustered_bootstrap",
    "correlation",
    "holm",
    "kaplan_meier",
    "logrank",
    "share",
    "sign_test",
]
