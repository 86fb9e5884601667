"""The runs that claims name, and the numbers they read from one run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf, isnan, nan
from statistics import median

from grokscope.law import ForkedRun, forked_run
from grokscope.runs.records import RunRecord
from grokscope.specs import ReadingSpec
from grokscope.studies.synchronization.experiments import TABLE_1
from grokscope.studies.claims.claim import Finding, Verdict, of_runs
from grokscope.studies.evidence import Evidence
from grokscope.timeline import first_step

__all__ = [
    "ADDITION",
    "Score",
    "addition",
    "at_grok",
    "crossed",
    "forks",
    "grok_checkpoint",
    "grokked",
    "known",
    "lead_of",
    "mean",
    "middle",
    "named",
    "of_nine",
    "of_one",
    "on_checkpoints",
    "printed_addition",
    "tasks_of",
    "triggered_late",
]

ADDITION = tuple(f"{task}_s{seed}" for task, seeds in TABLE_1.items() if task.startswith("add") for seed in seeds)
PRINTED_CADENCE = 500  # "checkpoints saved every 500 steps" (§3)
Records = Mapping[str, RunRecord]
Score = Callable[[Sequence[RunRecord]], Finding]


def named(evidence: Evidence, study: str, names: Iterable[str]) -> dict[str, RunRecord]:
    """Those of the named runs of a study that are there."""
    records = evidence.study(study)
    return {name: records[name] for name in names if name in records}


def printed_addition(evidence: Evidence) -> dict[str, RunRecord]:
    """The nine addition configurations of Table 2."""
    return named(evidence, "base", ADDITION)


def addition(evidence: Evidence) -> dict[str, RunRecord]:
    """Every addition run of the base study."""
    return {name: record for name, record in evidence.study("base").items() if record.spec.task.startswith("add")}


def grokked(records: Iterable[RunRecord]) -> list[RunRecord]:
    """Those that grokked."""
    return [record for record in records if record.timeline.grokked is not None]


def tasks_of(records: Sequence[RunRecord]) -> list[str]:
    """The task of each, which is the cluster of a prime."""
    return [record.spec.task for record in records]


def lead_of(record: RunRecord) -> float:
    """Grok step − FSD crossing; its upper bound where a grokked run never crossed; NaN without grokking."""
    found = record.timeline.sync.lead
    bound = found.steps if found.steps is not None else found.less_than
    return nan if bound is None else float(bound)


def known(values: Iterable[float | int]) -> list[float]:
    """The values that are numbers."""
    return [float(value) for value in values if not isnan(value)]


def mean(values: Iterable[float | int]) -> float:
    """The mean of the values that are numbers; NaN without any."""
    found = known(values)
    return sum(found) / len(found) if found else nan


def middle(steps: Iterable[int | float | None]) -> float:
    """The median of steps, of which one that did not come is later than all others; NaN without any.

    >>> middle([300, None, 100]), middle([None])
    (300.0, inf)
    """
    found = [inf if step is None else float(step) for step in steps]
    return median(found) if found else nan


def crossed(record: RunRecord, column: str, at_least: float) -> tuple[bool, int | None]:
    """Whether a column was measured, and the first checkpoint at which it reached a threshold."""
    steps = [int(step) for step in record.checkpoints.get("step", [])]
    values = [record.at(step, column) for step in steps]
    return bool(known(values)), first_step(steps, values, at_least)


def grok_checkpoint(record: RunRecord) -> int | None:
    """The first checkpoint with validation accuracy ≥ 0.95: what a crossing seen at checkpoints is compared with."""
    return crossed(record, "validation_accuracy", ReadingSpec().grokked)[1]


def at_grok(record: RunRecord, column: str) -> float:
    """A measured column at the first checkpoint at or after grokking; NaN if there is none."""
    step = record.timeline.grokked
    if step is None or column not in record.checkpoints:
        return nan
    rows = zip(record.checkpoints["step"], record.checkpoints[column], strict=True)
    return next((value for at, value in rows if at >= step), nan)


def on_checkpoints(record: RunRecord, column: str) -> dict[int, float]:
    """A logged column at the printed cadence, every 500 steps from 500 on."""
    rows = zip(record.evaluations["step"], record.evaluations.get(column, []), strict=False)
    return {int(step): value for step, value in rows if step > 0 and step % PRINTED_CADENCE == 0}


def triggered_late(record: RunRecord) -> bool:
    """Whether a trigger changed nothing before grokking: it fired at or after it, or never. False if nobody tells."""
    told, grok = record.outcome.trigger, record.timeline.grokked
    if told is None:
        return False
    return told["fired_at"] is None or (grok is not None and told["fired_at"] >= grok)


def forks(records: Records, task: str, decays: Iterable[float] | None = None) -> list[ForkedRun]:
    """The forks of one task as the law sees them, at the given λ or all; the parents are left out."""
    wanted = None if decays is None else set(decays)
    return [
        forked_run(record.spec, record.timeline)
        for record in records.values()
        if record.spec.fork is not None
        and record.spec.task == task
        and (wanted is None or record.spec.training.weight_decay in wanted)
    ]


def of_nine(evidence: Evidence, score: Score) -> Finding:
    """A finding over the nine printed addition runs, with every addition run beside it."""
    return of_runs(printed_addition(evidence), addition(evidence), 9, "printed addition runs", score)


def of_one(evidence: Evidence, name: str, score: Score) -> Finding:
    """A finding over one printed run of the base study, with all seeds of its task beside it.

    Training is chaotic: another device's rounding makes another run of the same seed. So the quick version, which is
    for any machine, lets one run decide only what no other seed contradicts.
    """
    seeds = evidence.task(name.rpartition("_s")[0])
    found = of_runs(named(evidence, "base", [name]), seeds, 1, f"runs {name}", score)
    if evidence.is_quick and {Verdict.REPRODUCED, Verdict.NOT} <= {score([one]).verdict for one in seeds.values()}:
        return replace(found, verdict=Verdict.TOO_FEW, why="Its seeds contradict each other: one run does not decide.")
    return found
