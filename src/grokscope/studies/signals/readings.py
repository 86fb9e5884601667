"""What is read of one run: a signal's course, when it passed a threshold, and when the curves of a circuit turned."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import inf, isnan, log, nan
from statistics import median

from grokscope.runs.records import RunRecord, is_group
from grokscope.studies.signals.catalogue import FIRST_VALUES, Signal, signal_named
from grokscope.studies.synchronization.alarms import Trace
from grokscope.tasks import named_task
from grokscope.timeline import first_step, lead
from grokscope.timeline.crossings import first_step_below

__all__ = [
    "HALF",
    "course",
    "published_step",
    "published_threshold",
    "read_alarm",
    "read_circuit",
    "read_growth",
    "trace",
]

HALF = 0.5  # of ln(classes), the loss of a guess: where a loss counts as fallen, or as risen above its lowest value


def course(record: RunRecord, column: str) -> tuple[list[int], list[float]]:
    """The steps at which a column is known, and its values there.

    >>> from grokscope.runs.outcome import RunOutcome
    >>> from grokscope.specs import RunSpec
    >>> record = RunRecord(RunSpec(), RunOutcome(), {"step": [0, 100], "norm": [nan, 40.0]}, {})
    >>> course(record, "norm"), course(record, "fsd")
    (([100], [40.0]), ([], []))
    """
    columns = record.evaluations if column in record.evaluations else record.checkpoints
    rows = zip(columns.get("step", []), columns.get(column, []), strict=False)
    known = [(int(step), float(value)) for step, value in rows if not isnan(value)]
    return [step for step, _ in known], [value for _, value in known]


@lru_cache(maxsize=2**15)
def trace(record: RunRecord, signal: Signal) -> Trace | None:
    """A signal's course, signed so that it warns by rising; None where it was not measured."""
    steps, values = course(record, signal.column)
    if not steps:
        return None
    return Trace(record.spec.seeds.split, steps, list(_signed(values, signal)), record.timeline.grokked)


def _signed(values: list[float], signal: Signal) -> Iterator[float]:
    sign = 1.0 if signal.rises else -1.0
    if signal.how == "value":
        yield from (sign * value for value in values)
        return
    first, highest = median(values[:FIRST_VALUES]), -inf
    for value in values:
        highest = max(highest, value)
        over, under = (value, first) if signal.how == "growth" else (highest, value)
        yield sign * over / under if under > 0 else (inf if over > 0 else 1.0)


def published_step(record: RunRecord, signal: Signal) -> int | None:
    """The first step at which the source counts the signal as given; None if none, or if it has no threshold here."""
    found, rule = trace(record, signal), published_threshold(record, signal)
    if found is None or rule is None:
        return None
    values = course(record, signal.column)[1]
    least = 0.0 if signal.published is None else signal.published.least
    sign = 1.0 if signal.rises else -1.0
    reached = zip(found.steps, found.values, values, strict=True)
    return next((step for step, signed, value in reached if signed >= sign * rule and value >= least), None)


def published_threshold(record: RunRecord, signal: Signal) -> float | None:
    """The source's threshold for a run's task; None where it has none."""
    if signal.published is None:
        return None
    return signal.published.on_groups if is_group(record.spec.task) else signal.published.threshold


def read_alarm(record: RunRecord, signal: str, grokked: float = 0.95) -> Mapping[str, float]:
    """The lead of a signal's published event over the first validation accuracy this high; nothing if not measured.

    A run without the event does not lead, and has the highest lead that it can have.
    """
    one = signal_named(signal)
    found = trace(record, one)
    if found is None or published_threshold(record, one) is None:
        return {}
    step = published_step(record, one)
    steps, accuracy = course(record, "validation_accuracy")
    generalised = first_step(steps, accuracy, grokked)
    how = lead(generalised, step, found.steps[-1])
    return {
        "lead": how.bound,
        "leads": nan if generalised is None else float(how.is_precursor),
        "alarm": float(step is not None),
    }


def read_growth(record: RunRecord, signal: str) -> Mapping[str, float]:
    """The highest value of a signal, signed so that it warns by rising; nothing where it was not measured."""
    found = trace(record, signal_named(signal))
    return {} if found is None else {"highest": found.peak}


def read_circuit(record: RunRecord, restricted: str, excluded: str) -> Mapping[str, float]:
    """When the losses with the final model's keys turn, relative to validation loss and to grokking.

    A loss has fallen at the first checkpoint at which it is at most half of ln(classes). Excluded loss has risen at the
    first checkpoint, after its lowest value, that is at least as much above that. A lead of what did not happen is −∞,
    and over what did not happen there is none. Nothing is read where the losses were not measured.
    """
    (steps, kept), (_, without) = course(record, restricted), course(record, excluded)
    validation, grokked = course(record, "validation_loss"), record.timeline.grokked
    if not kept or not without:
        return {}
    amount = HALF * log(named_task(record.spec.task).classes)
    lowest = without.index(min(without))
    after = without[lowest:]
    fallen = first_step_below(steps, kept, amount)
    risen = first_step(steps[lowest:], after, after[0] + amount)
    highest = steps[lowest + after.index(max(after))]
    generalised = first_step_below(*validation, amount)
    return {
        "restricted falls": _or_inf(fallen),
        "excluded lowest": float(steps[lowest]),
        "excluded rises": _or_inf(risen),
        "excluded highest": float(highest),
        "validation falls": _or_inf(generalised),
        "groks": _or_inf(grokked),
        "restricted lead": _before(fallen, generalised),
        "excluded lead": _before(risen, generalised),
        "formed lead": _before(highest, grokked),
    }


def _or_inf(step: int | None) -> float:
    return inf if step is None else float(step)


def _before(step: int | None, other: int | None) -> float:
    if other is None:
        return nan
    return -inf if step is None else float(other - step)
