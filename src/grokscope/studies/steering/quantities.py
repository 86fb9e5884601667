"""What became of the runs of an arm on a cell: when they generalise for good, and whether they stay; what is chosen."""

from math import exp, inf, isfinite, log

from grokscope.runs.records import RunRecord
from grokscope.specs import ReadingSpec
from grokscope.stats import kaplan_meier, share
from grokscope.studies import Evidence, Measured, Part, Quantity, Records, Selection, configuration
from grokscope.studies.steering.arms import FAMILIES
from grokscope.studies.steering.experiments import TUNING_TASKS
from grokscope.timeline import stability

__all__ = [
    "CHOICE",
    "FALLS",
    "arms_run",
    "by_arm",
    "choose_settings",
    "is_tuned",
    "outcome",
    "outcome_of",
    "stable_time",
]

FALLS = 0.5  # validation accuracy below which a run that has grokked has lost what it had


def stable_time(record: RunRecord) -> float:
    """The step from which on a run stays grokked for 2,000 steps; infinite if that was not seen within its budget."""
    steps = [int(step) for step in record.evaluations["step"]]
    validation = [float(value) for value in record.evaluations["validation_accuracy"]]
    found = stability(steps, validation, failed_at=record.outcome.failed_at)
    return inf if found.step is None else float(found.step)


def outcome(experiment: str, name: str) -> Quantity:
    """What became of the runs of one arm on one cell (`CELL/ARM`)."""
    return Quantity(
        "stable generalisation", Selection((experiment,), configuration=name), outcome_of, options={"falls": FALLS}
    )


def outcome_of(records: Records, falls: float = FALLS) -> Measured:
    """Not reached counts as the budget: medians by Kaplan–Meier, means restricted to the budget, the worst seed.

    >>> outcome_of({}).number("runs")
    0.0
    """
    if not records:
        return Measured({"runs": 0})
    times = [stable_time(record) for record in records.values()]
    budgets = [float(record.spec.training.steps) for record in records.values()]
    reached = [isfinite(time) for time in times]
    waits = [min(pair) for pair in zip(times, budgets, strict=True)]
    grokked = [record for record in records.values() if record.outcome.grokked is not None]
    parts: dict[str, Part] = {
        "runs": len(records),
        "reached": sum(reached),
        "stable": share(sum(reached), len(reached)),
        "steps": kaplan_meier(waits, reached).median,
        "mean": sum(waits) / len(waits),
        "worst": max(waits) if all(reached) else inf,
        "grokked": len(grokked),
        "fell": sum(_falls(record, falls) for record in grokked),
        "not at the end": sum(_is_lost(record) for record in grokked),
        "diverged": sum(record.outcome.failed_at is not None for record in records.values()),
    }
    return Measured(parts, n=len(records))


def _falls(record: RunRecord, falls: float) -> bool:
    """Whether a run that has grokked is below a half later on, or fails."""
    grokked = record.outcome.grokked or 0
    columns = zip(record.evaluations["step"], record.evaluations["validation_accuracy"], strict=True)
    return record.outcome.failed_at is not None or any(value < falls for step, value in columns if step > grokked)


def _is_lost(record: RunRecord) -> bool:
    """Whether a run that has grokked is not so at its last evaluation, or failed."""
    last = float(record.evaluations["validation_accuracy"][-1])
    return record.outcome.failed_at is not None or not last >= ReadingSpec().grokked


def by_arm(records: Records) -> dict[str, dict[str, dict[str, RunRecord]]]:
    """Runs by cell, and by arm in it, in the order in which they are.

    >>> by_arm({})
    {}
    """
    found: dict[str, dict[str, dict[str, RunRecord]]] = {}
    for name, record in records.items():
        cell, _, arm = configuration(name).partition("/")
        found.setdefault(cell, {}).setdefault(arm, {})[name] = record
    return found


def choose_settings(records: Records) -> dict[str, str]:
    """The setting of every family with the shortest waits over the tuning tasks, best family first.

    What is compared is the geometric mean over tasks of the mean steps to stable generalisation, where a run that does
    not get there counts as its budget. Settings that lack runs on a task are not chosen; of equal ones the first is.

    >>> choose_settings({})
    {}
    """
    cells = {cell: arms for cell, arms in by_arm(records).items() if any("/" in arm for arm in arms)}
    best: dict[str, tuple[float, str]] = {}
    for family, settings in FAMILIES.items():
        for setting in settings:
            own = [arms.get(f"{family}/{setting}") for arms in cells.values()]
            if own and all(own):
                means = [outcome_of(runs).number("mean") for runs in own if runs]
                score = exp(sum(map(log, means)) / len(means))
                best[family] = min(best.get(family, (inf, "")), (score, setting), key=lambda one: one[0])
    ranked = sorted(best.items(), key=lambda item: item[1][0])
    return {family: setting for family, (_, setting) in ranked}


def _choice(records: Records) -> Measured:
    chosen = choose_settings(records)
    return Measured(dict(chosen), "; ".join(f"{family}: {setting}" for family, setting in chosen.items()), len(records))


CHOICE = Quantity("chosen settings", Selection(("tuning",)), _choice)


def is_tuned(cell: str) -> bool:
    """Whether arms were tuned on a cell's task.

    >>> is_tuned("S5, base"), is_tuned("A5, base")
    (True, False)
    """
    return cell in {one.name for one in TUNING_TASKS.values()}


def arms_run(evidence: Evidence, experiment: str) -> list[str]:
    """The names `CELL/ARM` of which an experiment has runs, in order."""
    return list(dict.fromkeys(map(configuration, evidence.experiment(experiment))))
