"""Quantities of configurations that are compared: how many runs grok, when, and whether two differ."""

from collections.abc import Mapping
from operator import itemgetter
from statistics import fmean

from grokscope.stats import logrank, share_that
from grokscope.studies import Measured, Quantity, Records, Selection, configuration
from grokscope.studies.synchronization import readings

__all__ = ["grokking", "holm_adjusted", "log_rank", "measure_grokking"]


def measure_grokking(records: Records) -> Measured:
    """How many runs grok, and when: the mean of those that do, and the median of all; how often λ rose too late."""
    runs = [record.timeline for record in records.values()]
    steps = [run.grokked for run in runs]
    grokked = [step for step in steps if step is not None]
    # A run that became unstable will not grok: it stays at risk as long as any.
    median = readings.median_steps(steps, [max((run.last for run in runs), default=0)] * len(runs))
    in_time = [record for record in records.values() if not readings.triggered_late(record)]
    text = f"{len(grokked)} of {len(runs)} grok"
    if 0 < len(in_time) < len(runs):
        text += (
            f"; of the {len(in_time)} in which λ was raised before grokking, {len(readings.grokked_runs(in_time))} grok"
        )
    return Measured(
        {
            "runs": len(runs),
            "grok": len(grokked),
            "share": share_that(step is not None for step in steps),
            "mean": fmean(grokked) if grokked else None,
            "median": median,
            "late": len(runs) - len(in_time),
        },
        text,
        len(runs),
    )


def grokking(runs: Selection) -> Quantity:
    """How many runs of a configuration grok, and when."""
    return Quantity("grokking", runs, measure_grokking)


def _log_rank(records: Records, against: str) -> Measured:
    """Log-rank p of the grok steps of two configurations; a run that did not grok is censored."""
    groups = sorted(
        ((configuration(name) == against, record.timeline) for name, record in records.items()), key=itemgetter(0)
    )
    found = len({is_other for is_other, _ in groups})
    if found < 2:
        return Measured.lacking(found, 2, "configurations")
    runs = [run for _, run in groups]
    # A run that became unstable will not grok: it stays at risk as long as any, and never leaves for its own reasons.
    longest = max(run.last for run in runs)
    times = [longest if run.grokked is None else run.grokked for run in runs]
    observed = [run.grokked is not None for run in runs]
    return Measured.of(logrank(times, observed, [is_other for is_other, _ in groups]).p_value, n=len(runs))


def log_rank(experiment: str, name: str, against: str) -> Quantity:
    """Whether two configurations of an experiment grok at different steps."""
    return Quantity(
        "log-rank p", Selection((experiment,), configuration=f"{name}|{against}"), _log_rank, None, {"against": against}
    )


def _holm(found: Mapping[str, Measured]) -> Measured:
    """p-values adjusted for their number by Holm's rule, by name; those that are not known are not counted."""
    known = {name: one.number() for name, one in found.items() if not one.missing}
    return Measured(readings.holm_parts(known), n=len(known))


def holm_adjusted(tests: Mapping[str, Quantity], *experiments: str) -> Quantity:
    """Tests of some experiments, adjusted together."""
    return Quantity("Holm-adjusted p", Selection(experiments), _holm, members=tests)
