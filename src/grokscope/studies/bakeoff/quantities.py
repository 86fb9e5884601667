"""The bake-off's numbers: what became of each configuration's runs, and how it compares with the best fixed λ."""

from math import isnan

from grokscope.runs.records import RunRecord
from grokscope.specs import ReadingSpec
from grokscope.stats import Estimate, holm, kaplan_meier, logrank, share
from grokscope.studies import Evidence, Measured, Part, Quantity, Records, Selection, configuration
from grokscope.studies.bakeoff.configurations import CHOSEN, CONFIGURATIONS, FAMILIES, task_order
from grokscope.timeline import first_step

__all__ = ["CHOICE", "compare", "configurations_run", "outcome", "outcome_of_setting", "seconds", "tasks_run"]

FELL = 0.9  # validation accuracy below which a run that has grokked counts as collapsed
BASELINE = "fixed"


def tasks_run(evidence: Evidence) -> list[str]:
    """The tasks of which there is a run, in the bake-off's order."""
    return sorted({record.spec.task for record in evidence.experiment("bakeoff").values()}, key=task_order)


def configurations_run(evidence: Evidence, task: str) -> list[str]:
    """The configurations of which there is a run on a task, in the bake-off's order."""
    return [name for name in CONFIGURATIONS if outcome(task, name).runs.select(evidence.records)]


def outcome(task: str, name: str) -> Quantity:
    """What became of a configuration's runs on a task: parts `grokked`, `steps` and three counts."""
    return Quantity(
        "outcome", Selection(("bakeoff",), configuration=f"{task}/{name}"), _outcome, options={"fell": FELL}
    )


def seconds(task: str, name: str, seconds_per_step: float) -> Quantity:
    """The median time to grok in seconds of one run in a full stack."""
    return Quantity(
        "seconds to grok",
        Selection(("bakeoff",), configuration=f"{task}/{name}"),
        _seconds,
        options={"seconds_per_step": seconds_per_step},
    )


def compare(task: str) -> Quantity:
    """Log-rank p of each configuration of a task, `best fixed`, `first`, and `first if all grok`."""
    return Quantity("comparison", Selection(("bakeoff",), task=task), _compare, options={"fell": FELL})


def outcome_of_setting(family: str, setting: str) -> Quantity:
    """What became of the tuning runs of a setting."""
    return Quantity(
        "outcome", Selection(("tuning",), configuration=f"{family}/{setting}"), _outcome, options={"fell": FELL}
    )


def _times(records: Records) -> tuple[list[int], list[bool]]:
    """When each run grokked, and whether it did; one that failed never will, and counts to the end of its budget."""
    steps = [(record.outcome.grokked, record.spec.training.steps) for record in records.values()]
    return [budget if grokked is None else grokked for grokked, budget in steps], [one is not None for one, _ in steps]


def _outcome(records: Records, fell: float) -> Measured:
    """Share that grokked (Clopper–Pearson), median steps to grok (Kaplan–Meier), and how many runs went wrong how."""
    times, grokked = _times(records)
    runs = records.values()
    parts: dict[str, Part] = {
        "runs": len(records),
        "grokked": share(sum(grokked), len(grokked)),
        "steps": kaplan_meier(times, grokked).median,
        "never memorised": sum(record.outcome.memorized is None for record in runs),
        "not finite": sum(record.outcome.outcome == "diverged" for record in runs),
        "collapsed": sum(_has_collapsed(record, fell) for record in runs),
    }
    return Measured(parts, n=len(records))


def _has_collapsed(record: RunRecord, fell: float) -> bool:
    """Whether a run grokked, and then fell below this accuracy or stopped being finite."""
    steps, validation = [int(step) for step in record.evaluations["step"]], record.evaluations["validation_accuracy"]
    grokked = first_step(steps, validation, ReadingSpec().grokked)
    if grokked is None:
        return False
    later = [value for step, value in zip(steps, validation, strict=True) if step > grokked]
    has_failed = record.outcome.outcome == "diverged"  # which ends a log before its collapse is seen
    return has_failed or any(value < fell or isnan(value) for value in later)


def _seconds(records: Records, seconds_per_step: float) -> Measured:
    """Median steps to grok times the measured seconds of a step."""
    steps = kaplan_meier(*_times(records)).median
    value, low, high = (end * seconds_per_step for end in (steps.value, steps.low, steps.high))
    return Measured.of(Estimate(value, low, high, steps.items), n=len(records))


def _compare(records: Records, fell: float) -> Measured:
    """Log-rank p against the fixed λ with the shortest median, adjusted by Holm for the other configurations."""
    runs = {name: _one_configuration(records, name) for name in CONFIGURATIONS}
    found = {name: _outcome(own, fell) for name, own in runs.items() if own}
    by_rank = sorted(found, key=lambda name: _rank(found[name]))
    fixed = [name for name in by_rank if name.startswith(BASELINE)]
    others = [name for name in found if fixed and name != fixed[0]]
    p_values = holm([_p_value(runs[name], runs[fixed[0]]) for name in others]).tolist()
    always = [name for name in by_rank if found[name].number("grokked") == 1]
    parts: dict[str, Part] = {
        "first": by_rank[0],
        "best fixed": fixed[0] if fixed else None,
        "first if all grok": always[0] if always else None,
    }
    return Measured(parts | dict(zip(others, p_values, strict=True)), n=len(records))


def _one_configuration(records: Records, name: str) -> Records:
    return {run: record for run, record in records.items() if configuration(run).partition("/")[2] == name}


def _rank(found: Measured) -> tuple[float, float, float]:
    """Shorter medians come first; among equals the larger share that grokked, then fewer collapses."""
    return (found.number("steps"), -found.number("grokked"), found.number("collapsed"))


def _p_value(own: Records, other: Records) -> float:
    (times, grokked), (other_times, other_grokked) = _times(own), _times(other)
    groups = ["own"] * len(own) + ["other"] * len(other)
    return logrank([*times, *other_times], [*grokked, *other_grokked], groups).p_value


def _choose(records: Records, fell: float) -> Measured:
    """The setting of every family with the fewest runs that did not grok or collapsed, then the shortest median."""
    chosen: dict[str, Part] = {}
    for family in CHOSEN:
        ranks = {}
        for setting in FAMILIES[family]:
            own = {name: one for name, one in records.items() if configuration(name) == f"{family}/{setting}"}
            if own:
                found = _outcome(own, fell)
                missed = sum(not grokked for grokked in _times(own)[1])
                ranks[setting] = ((missed + found.number("collapsed")) / len(own), found.number("steps"))
        if ranks:
            chosen[family] = min(ranks, key=ranks.__getitem__)
    return Measured(chosen, "; ".join(f"{family}: {setting}" for family, setting in chosen.items()), len(records))


CHOICE = Quantity("chosen settings", Selection(("tuning",)), _choose, options={"fell": FELL})
