"""Tests and intervals: sign test, Holm, means over items or clusters, medians, shares, correlation, censored times.

Everything but `multinomial` needs scipy, which is loaded where it is used.
"""

from typing import TYPE_CHECKING

from grokscope.lazy import exports

if TYPE_CHECKING:
    from grokscope.stats.intervals import (
        Estimate,
        cluster_means,
        clustered_share,
        correlation,
        estimate_mean,
        jackknife,
        percentile_bootstrap,
        share,
        share_that,
    )
    from grokscope.stats.multinomial import critical_peak, peak_tail
    from grokscope.stats.numbers import known, mean_known
    from grokscope.stats.significance import SignTest, holm, sign_test
    from grokscope.stats.survival import LogRank, Survival, estimate_median, kaplan_meier, logrank, median_time
else:
    __getattr__, __dir__ = exports(
        __name__,
        {
            "intervals": [
                "Estimate",
                "cluster_means",
                "clustered_share",
                "correlation",
                "estimate_mean",
                "jackknife",
                "percentile_bootstrap",
                "share",
                "share_that",
            ],
            "multinomial": ["critical_peak", "peak_tail"],
            "numbers": ["known", "mean_known"],
            "significance": ["SignTest", "holm", "sign_test"],
            "survival": ["LogRank", "Survival", "estimate_median", "kaplan_meier", "logrank", "median_time"],
        },
    )

__all__ = [
    "Estimate",
    "LogRank",
    "SignTest",
    "Survival",
    "cluster_means",
    "clustered_share",
    "correlation",
    "critical_peak",
    "estimate_mean",
    "estimate_median",
    "holm",
    "jackknife",
    "kaplan_meier",
    "known",
    "logrank",
    "mean_known",
    "median_time",
    "peak_tail",
    "percentile_bootstrap",
    "share",
    "share_that",
    "sign_test",
]
