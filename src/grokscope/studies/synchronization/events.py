"""The events of runs and their leads, as Tables 1 to 3 and their figures show them: each number once."""

from collections.abc import Mapping
from dataclasses import replace

from grokscope.stats import Estimate, clustered_share, sign_test
from grokscope.studies import Evidence, Measured, Quantity, Records, Selection
from grokscope.studies.synchronization import readings
from grokscope.studies.synchronization.readings import CADENCE, one_run
from grokscope.timeline import Crossing, Flag, LeadStatus
from grokscope.view.numbers import format_estimate

__all__ = [
    "EVERY_EVENT",
    "POOLED",
    "doubt_notes",
    "fsd_wins",
    "lead_signs",
    "mean_lead",
    "median_events",
    "run_events",
    "unmeasured_runs",
]

EVERY_EVENT = (
    f"An event is dated to the first evaluation that shows it; evaluations are every {CADENCE} steps, as in the paper."
)
POOLED = (
    "Rows of all seeds: medians with 95 % intervals by order statistics, or Kaplan–Meier medians where a step was not "
    "reached by every run; shares of the grokked runs with Clopper–Pearson intervals."
)


def _run_events(records: Records, column: str) -> Measured:
    """When one run grokked, and when its FSD and its restricted loss crossed; FSD may be read by another column."""
    (record,) = records.values()
    if column:
        unread = {name: values for name, values in record.evaluations.items() if name != "fsd"}
        record = record.with_fsd(column) or replace(record, evaluations=unread, checkpoints={})
    found = record.timeline
    wins = fsd_wins(found.sync, found.restricted)
    parts = {
        "grok": readings.step_part(found.grokked),
        "sync": readings.crossing_part(found.sync),
        "lead": readings.lead_part(found.sync.lead),
        "precursor": readings.precursor_part(found.sync.lead),
        "restricted sync": readings.crossing_part(found.restricted),
        "restricted lead": readings.lead_part(found.restricted.lead),
        "wins": None if wins is None else "yes" if wins else "no",
        "outcome": str(found.outcome),
        "last": found.last,
    }
    return Measured(parts | {flag: flag in found.sync.flags for flag in Flag}, n=1)


def fsd_wins(fsd: Crossing, loss: Crossing) -> bool | None:
    """Whether FSD crossed at an earlier evaluation; None where one was not measured, or the run did not grok."""
    if fsd.lead.sign is None or loss.lead.sign is None:
        return None
    return fsd.step is not None and (loss.step is None or fsd.step < loss.step)


def run_events(name: str, column: str = "", experiment: str = "base") -> Quantity:
    """The events of one run as Tables 1 to 3 show them."""
    return Quantity("events", one_run(name, experiment), _run_events, CADENCE, {"column": column})


def _median_events(records: Records) -> Measured:
    """Median grok step, crossing and leads of many seeds."""
    runs = [record.timeline for record in records.values()]
    last = [run.last for run in runs]
    return Measured(
        {
            "grok": readings.median_steps([run.grokked for run in runs], last),
            "sync": readings.median_steps([run.sync.step for run in runs], last),
            "lead": readings.median_lead(run.sync.lead for run in runs),
            "restricted lead": readings.median_lead(run.restricted.lead for run in runs),
        },
        n=len(runs),
    )


def median_events(runs: Selection, cadence: int | None = CADENCE) -> Quantity:
    """Medians over seeds of what `run_events` has of one."""
    return Quantity("median events", runs, _median_events, cadence)


def _mean_lead(records: Records, by_prime: bool) -> Measured:
    """Mean lead of the grokked runs with its t interval, over runs or over primes."""
    runs = list(records.values())
    leads = [record.timeline.sync.lead for record in runs]
    over_primes = readings.mean_lead(leads, [record.spec.task for record in runs])
    found = over_primes if by_prime else readings.mean_lead(leads)
    if found is None:
        return Measured({}, "none grokked", len(runs), "No run grokked.")
    return Measured.of(
        found,
        text=format_estimate(found) if isinstance(found, Estimate) else str(found),
        n=sum(lead.lag is not None for lead in leads),
        note=f"Mean {'over' if by_prime else 'of'} {found.items} {'primes' if by_prime else 'leads'}.",
        **{"mean over primes": over_primes},
    )


def mean_lead(runs: Selection, by_prime: bool = False, cadence: int | None = CADENCE) -> Quantity:
    """The mean lead over runs, or over primes."""
    return Quantity(
        "mean lead over primes" if by_prime else "mean lead", runs, _mean_lead, cadence, {"by_prime": by_prime}
    )


def _lead_signs(records: Records) -> Measured:
    """How many leads are positive; a run that grokked without crossing counts as negative."""
    leads = [record.timeline.sync.lead for record in records.values()]
    grokked = [record for record in records.values() if record.timeline.sync.lead.sign is not None]
    known = [record.timeline.sync.lead for record in grokked]
    if not known:
        return Measured({}, "none grokked", len(leads), "No run grokked.")
    test, n = sign_test([lead.sign for lead in leads if lead.sign is not None]), len(known)
    never = sum(lead.status is LeadStatus.NEVER for lead in known)
    return Measured(
        {
            "share": clustered_share((lead.is_precursor for lead in known), readings.seeds_of(grokked)),
            "p": readings.counted(test.p_value, n),
            "positive": test.positive,
            "negative": test.negative,
            "ties": readings.counted(test.zero, n),
            "never": readings.counted(never, n),
        },
        readings.format_signs(test, len(leads)),
        len(leads),
        f"{n} grokked, {test.zero} tied.",
    )


def lead_signs(runs: Selection, cadence: int | None = CADENCE) -> Quantity:
    """The share of positive leads, and the sign test."""
    return Quantity("signs of the leads", runs, _lead_signs, cadence)


def doubt_notes(evidence: Evidence, runs: Mapping[str, Quantity]) -> tuple[str, ...]:
    """A note for each reason why a crossing may mean nothing, with the runs it is true of."""
    found = {flag: [name for name, events in runs.items() if evidence.measure(events).parts.get(flag)] for flag in Flag}
    return tuple(f"Synchronised {flag}: {', '.join(names)}." for flag, names in sorted(found.items()) if names)


def unmeasured_runs(evidence: Evidence, runs: Mapping[str, Quantity], part: str) -> list[str]:
    """The runs that were trained and have no such part."""
    found = {name: evidence.measure(events) for name, events in runs.items()}
    return [name for name, events in found.items() if not events.missing and events.parts[part] is None]
