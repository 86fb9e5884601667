"""What the sections read from one run, and how they pool many."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite, nan
from typing import Any

from grokscope.law import Ending, ForkedRun, forked_run
from grokscope.runs.records import RunRecord
from grokscope.stats import Estimate, SignTest, estimate_mean, estimate_median, holm, kaplan_meier, known, share_that
from grokscope.studies import Bound, Part, Records, Selection
from grokscope.studies.synchronization.experiments import TABLE_1
from grokscope.timeline import Crossing, Lead, LeadStatus

__all__ = [
    "ADDITIONS",
    "CADENCE",
    "REPORTED_ADDITIONS",
    "after_grokking",
    "all_seeds",
    "counted",
    "crossing_part",
    "forked_runs",
    "format_signs",
    "grokked_runs",
    "holm_parts",
    "later_values",
    "lead_part",
    "mean_lead",
    "median_lead",
    "median_steps",
    "median_value",
    "of_independent",
    "one_run",
    "precursor_part",
    "precursor_share",
    "seeds_of",
    "step_part",
    "time_to_grok",
    "trained_part",
    "triggered_late",
    "widened_tasks",
]

CADENCE = 500  # steps between the paper's checkpoints, where no other number is reported (§3)

REPORTED_ADDITIONS = Selection(
    ("base",),
    tuple(f"{task}_s{seed}" for task, seeds in TABLE_1.items() if task.startswith("add") for seed in seeds),
)
ADDITIONS = Selection(("base",), task="add_*")


def one_run(name: str, experiment: str = "base") -> Selection:
    """One reported run."""
    return Selection((experiment,), (name,))


def all_seeds(task: str, experiment: str = "base") -> Selection:
    """Every seed of a task."""
    return Selection((experiment,), task=task)


def grokked_runs(records: Iterable[RunRecord]) -> list[RunRecord]:
    """Those that grokked."""
    return [record for record in records if record.timeline.grokked is not None]


def later_values(record: RunRecord, column: str) -> list[float]:
    """A column at the evaluations after grokking, where it is known."""
    rows = zip(record.evaluations["step"], record.evaluations.get(column, []), strict=False)
    grokked = inf if record.timeline.grokked is None else record.timeline.grokked
    return known(value for step, value in rows if step > grokked)


def triggered_late(record: RunRecord) -> bool:
    """Whether a trigger changed nothing before grokking: it fired at or after it, or never; False without a trigger."""
    fired, grokked = record.outcome.fired_at, record.timeline.grokked
    if record.outcome.trigger is None:
        return False
    return fired is None or (grokked is not None and fired >= grokked)


def forked_runs(records: Records) -> list[ForkedRun]:
    """The forks among these runs as the law reads them."""
    return [forked_run(record.spec, record.timeline) for record in records.values() if record.spec.fork is not None]


def step_part(step: int | None) -> Part:
    """A step as a part: "never" where it was not reached."""
    return "never" if step is None else step


def crossing_part(found: Crossing) -> Part:
    """When a measure crossed; None where it was not measured."""
    return None if found.lead.status is LeadStatus.UNMEASURED else step_part(found.step)


def lead_part(lead: Lead) -> Part:
    """A lead; "never" where the run grokked without the crossing, "n/a" where there is nothing to lead."""
    words = {LeadStatus.NEVER: "never", LeadStatus.NO_GROKKING: "n/a"}
    return words.get(lead.status) if lead.steps is None else lead.steps


def precursor_part(lead: Lead) -> Part:
    """Whether the crossing came first, in a word."""
    if lead.sign is None:
        return "n/a" if lead.status is LeadStatus.NO_GROKKING else None
    return "tie" if lead.status is LeadStatus.TIES else "yes" if lead.is_precursor else "no"


def time_to_grok(run: ForkedRun | None) -> Part:
    """Δt from the fork; in words where there is none."""
    if run is None:
        return None
    words = {Ending.CENSORED: "never", Ending.FAILED: "never", Ending.BEFORE: "before the fork"}
    return words.get(run.ending, run.steps_to_grok)


def median_value(values: Iterable[float | int]) -> Estimate | None:
    """The median of many seeds, with its interval; unknown values are not counted."""
    found = [float(value) for value in values if isfinite(value)]
    return estimate_median(found) if found else None


def median_steps(steps: Sequence[int | None], watched: Sequence[int]) -> Estimate | None:
    """The median step of many seeds; of those that were not reached it is known only that they come later."""
    reached = [step for step in steps if step is not None]
    if len(reached) == len(steps):
        return median_value(reached)
    times = [last if step is None else step for step, last in zip(steps, watched, strict=True)]
    return kaplan_meier(times, [step is not None for step in steps]).median


def median_lead(leads: Iterable[Lead]) -> Estimate | None:
    """The median lead of many seeds; grokking without a crossing is a lead known only to be lower."""
    lags = [lead.lag for lead in leads if lead.lag is not None]
    if all(observed for _, observed in lags):
        return median_value(-lag for lag, _ in lags)
    found = kaplan_meier([lag for lag, _ in lags], [observed for _, observed in lags]).median
    return Estimate(-found.value, -found.high, -found.low, found.items)


def mean_lead(leads: Sequence[Lead], clusters: Sequence[Any] | None = None) -> Estimate | Bound | None:
    """The mean lead of the runs that grokked, over runs or over clusters of them, with its t interval.

    Where a run never crossed, its lead enters as the highest it can be, and so the mean is a bound.
    """
    kept = [(lead, cluster) for lead, cluster in zip(leads, clusters or leads, strict=True) if lead.sign is not None]
    if not kept:
        return None
    values = [lead.bound for lead, _ in kept]
    found = estimate_mean(values, [cluster for _, cluster in kept] if clusters else None)
    return found if all(lead.steps is not None for lead, _ in kept) else Bound(found.value, found.items)


def precursor_share(leads: Iterable[Lead]) -> Estimate | None:
    """The share of grokked runs in which the crossing came first, with its Clopper–Pearson interval."""
    return share_that(lead.is_precursor for lead in leads if lead.sign is not None)


def seeds_of(records: Iterable[RunRecord]) -> list[Hashable]:
    """Task and seed of each run: runs that have both in common may share their fate, however else they differ."""
    return [(record.spec.task, record.spec.seeds.split) for record in records]


def of_independent(found: Estimate | None, clusters: Sequence[Hashable]) -> Estimate | None:
    """A median or mean, without its interval where several runs are of one cluster: they share their fate."""
    is_independent = len(set(clusters)) == len(clusters)
    return found if found is None or is_independent else counted(found.value, found.items)


def format_signs(test: SignTest, runs: int) -> str:
    """How many leads of so many runs have which sign; runs that never grok have none, and no part in p."""
    left_out = runs - test.positive - test.negative - test.zero
    never = f", {left_out} never grok" if left_out else ""
    signs = f"{test.positive} positive, {test.negative} negative, {test.zero} tied of {runs} runs{never}"
    return f"{signs}; sign test p = {test.p_value:.2g}"


def counted(value: float | int, items: int) -> Estimate:
    """A number without an interval, with how many runs it rests on."""
    return Estimate(float(value), nan, nan, items)


def holm_parts(p_values: Mapping[str, float | None]) -> dict[str, Part]:
    """The p-values that are known, adjusted for their number by Holm's rule."""
    found = {name: value for name, value in p_values.items() if value is not None}
    return dict(zip(found, holm(list(found.values())).tolist(), strict=True))


def widened_tasks(base: Records, reported: Iterable[str]) -> list[str]:
    """The tasks of which more runs were trained than are reported, in the order of the runs."""
    return list(dict.fromkeys(record.spec.task for name, record in base.items() if name not in {*reported}))


def trained_part(runs: Selection, base: Records) -> Selection:
    """The named runs of a selection that were trained, for a table that shows what there is; all where none was."""
    return replace(runs, names=tuple(name for name in runs.names if name in base) or runs.names)


def after_grokking(record: RunRecord, column: str) -> float | int:
    """A column at the first of the paper's checkpoints at or after grokking, where fits and ablations are made."""
    grokked = record.timeline.grokked
    steps = (int(step) for step in record.evaluations["step"] if step % CADENCE == 0)
    step = None if grokked is None else next((step for step in steps if step >= grokked), None)
    return nan if step is None else record.at(step, column)
