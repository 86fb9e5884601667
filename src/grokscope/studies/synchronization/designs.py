"""How the paper drew its runs: which configurations, how many seeds of each; and what is read of most of them."""

from collections.abc import Mapping
from math import inf, nan

from grokscope.runs.records import RunRecord
from grokscope.studies import Estimand, Selection, Stratum
from grokscope.studies.reduction import Reduction, mean, mean_low, strata_low, strata_mean, total
from grokscope.studies.synchronization.experiments import TABLE_1
from grokscope.studies.synchronization.readings import CADENCE, all_seeds
from grokscope.timeline import LeadStatus, first_step

__all__ = [
    "EVERY_ADDITION",
    "NINE",
    "ONE_97",
    "as_flag",
    "every_run",
    "known_step",
    "lead_estimand",
    "one_run_of",
    "read_lead",
    "reported_of",
    "step_or_inf",
]


def reported_of(task: str) -> Stratum:
    """A task of Table 1, of which the paper has so many seeds."""
    seeds = TABLE_1[task]
    return Stratum(task, all_seeds(task), len(seeds), tuple(f"{task}_s{seed}" for seed in seeds))


def one_run_of(task: str, experiment: str = "base", configuration: str = "") -> tuple[Stratum, ...]:
    """One run, seed 42 in the paper, drawn from all seeds."""
    name = configuration or task
    runs = Selection((experiment,), configuration=name) if configuration else all_seeds(task, experiment)
    return (Stratum(name, runs, 1, (f"{name}_s42",)),)


def every_run(*configurations: str, experiment: str) -> tuple[Stratum, ...]:
    """All runs of these configurations, for what is claimed of many seeds."""
    return tuple(Stratum(name, Selection((experiment,), configuration=name)) for name in configurations)


NINE = tuple(reported_of(task) for task in TABLE_1 if task.startswith("add"))
EVERY_ADDITION = tuple(Stratum(one.name, one.runs) for one in NINE)
ONE_97 = one_run_of("add_mod97")


def step_or_inf(step: int | None) -> float:
    """A step, infinite where it was not reached: later than all others."""
    return inf if step is None else float(step)


def known_step(step: int | None) -> float:
    """A step, NaN where there is none."""
    return nan if step is None else float(step)


def as_flag(holds: object) -> float:
    """Yes or no as a number."""
    return float(bool(holds))


def read_lead(
    record: RunRecord, event: str = "sync", column: str = "", low: float | int = 500, high: float | int = 3000
) -> Mapping[str, float]:
    """The lead of an event of a run over its grokking, and its sign; nothing where the event was not measured.

    A run that grokked without it counts as not preceded, with the highest lead that it can have; one that did not grok
    has no lead, and is not preceded either.
    """
    read = record.with_fsd(column) if column else record
    if read is None:
        return {}
    crossing = getattr(read.timeline, event)
    lead, grokked = crossing.lead, read.timeline.grokked
    if lead.status is LeadStatus.UNMEASURED:
        return {}
    does_grok = lead.sign is not None
    return {
        "lead": lead.bound,
        "positive": as_flag(lead.sign == 1),
        "negative": as_flag(lead.sign == -1),
        "first": as_flag(lead.is_precursor) if does_grok else nan,
        "inside": as_flag(low <= lead.bound <= high),
        "groks": as_flag(does_grok),
        "grok": step_or_inf(grokked),
        "grok step": known_step(grokked),
        "crossing": float(read.timeline.last if crossing.step is None else crossing.step) if does_grok else nan,
        "crossed": as_flag(crossing.step is not None),
        "does not grok, but crosses": nan if does_grok else as_flag(crossing.step is not None),
    }


def lead_estimand(
    name: str, strata: tuple[Stratum, ...], text: str, effect: tuple[str | tuple[str, ...], str], **options: object
) -> Estimand:
    """Leads of FSD over grokking, at the paper's cadence if no other is given."""
    parts: dict[str, Reduction] = {
        "positive": total("positive"),
        "negative": total("negative"),
        "inside": total("inside"),
        "groks": total("groks"),
        "share first": mean("first"),
        "share inside": mean("inside"),
        "mean lead": mean("lead"),
        "mean lead, low": mean_low("lead"),
        "mean over primes": strata_mean("lead"),
        "mean over primes, low": strata_low("lead"),
    }
    cadence = options.pop("cadence", CADENCE)
    assert cadence is None or isinstance(cadence, int)
    return Estimand(name, strata, read_lead, parts, text, effect, cadence=cadence, options=options)


def first_reached(record: RunRecord, column: str, at_least: float) -> int | None:
    """The first evaluation at which a column reaches a threshold."""
    steps = [int(step) for step in record.evaluations["step"]]
    return first_step(steps, record.evaluations.get(column, [nan] * len(steps)), at_least)
