"""What the logs of a bake-off show beside its medians: whether rules acted in time, and why an arm does not grok."""

from collections.abc import Iterable, Mapping, Sequence

from grokscope.runs.records import RunRecord
from grokscope.studies.bakeoff.configurations import arm_of, task_order

__all__ = ["what_logs_show"]

FLOAT32_SEES = 2.0**-24  # the least loss that a probability just below 1 can have
FIRED = ("before memorisation", "between that and grokking", "at grokking or later", "never")
Runs = Mapping[str, Sequence[RunRecord]]
"""One arm's runs by task."""


def what_logs_show(records: Iterable[RunRecord]) -> tuple[str, ...]:
    """One sentence for each thing that a median hides; what no record has is not spoken of."""
    arms = _by_arm(records)
    every = [record for runs in arms.values() for own in runs.values() for record in own]
    said = (
        _unlearnt(every),
        _triggered(arms.get("FSD trigger", {})),
        _raised(arms.get("closed loop", {})),
        _sideways(arms.get("orthogonal gradient", {}), every),
    )
    return tuple(sentence for sentence in said if sentence)


def _by_arm(records: Iterable[RunRecord]) -> dict[str, dict[str, list[RunRecord]]]:
    found: dict[str, dict[str, list[RunRecord]]] = {}
    for record in sorted(records, key=lambda one: task_order(one.spec.task)):
        name = arm_of(record.spec)
        if name is not None:
            found.setdefault(name, {}).setdefault(record.spec.task, []).append(record)
    return found


def _unlearnt(records: Sequence[RunRecord]) -> str:
    """Grokking asks for 0.95 of the validation pairs, memorising for 0.99 of the training pairs."""
    never = [record for record in records if record.outcome.memorized is None]
    if not never:
        return ""
    anyway = sum(record.outcome.grokked is not None for record in never)
    return (
        f"Never memorised: no look had train accuracy of 0.99 or more; {anyway:,} of these {len(never):,} runs grokked "
        "all the same, with 0.95 of the validation pairs."
    )


def _triggered(runs: Runs) -> str:
    """Whether the trigger saw grokking coming: later than memorisation, and sooner than grokking."""
    known = {task: [_when_fired(record) for record in own if record.outcome.trigger] for task, own in runs.items()}
    counts = [f"{task} {' / '.join(str(when.count(name)) for name in FIRED)}" for task, when in known.items() if when]
    return f"Runs in which the FSD trigger fired {' / '.join(FIRED)}: {'; '.join(counts)}." if counts else ""


def _when_fired(record: RunRecord) -> str:
    fired, memorized, grokked = (
        record.outcome.fired_at,
        record.outcome.memorized,
        record.outcome.grokked,
    )
    if fired is None:
        return "never"
    if memorized is None or fired < memorized:
        return "before memorisation"
    return "between that and grokking" if grokked is None or fired < grokked else "at grokking or later"


def _raised(runs: Runs) -> str:
    """How much of the time until grokking the closed loop had λ above where it began."""
    parts = []
    for task, own in runs.items():
        looks = [look for record in own for look in _decays_until_grokking(record)]
        if looks:
            share = sum(decay > start for decay, start in looks) / len(looks)
            highest = max(decay for decay, _ in looks)
            parts.append(f"{task} {100 * share:.0f} %, up to {highest:g}")
    return f"Looks until grokking at which the closed loop had raised λ: {'; '.join(parts)}." if parts else ""


def _decays_until_grokking(record: RunRecord) -> list[tuple[float, float]]:
    grokked, start = record.outcome.grokked, record.spec.training.weight_decay
    log = record.evaluations
    pairs = zip(log["step"], log.get("weight_decay", []), strict="weight_decay" in log)
    return [(decay, start) for step, decay in pairs if grokked is None or step <= grokked]


def _sideways(runs: Runs, every: Sequence[RunRecord]) -> str:
    """Orthogonal gradients cannot shrink the weights; every other way of grokking does."""
    own = [record for one in runs.values() for record in one if {"norm", "train_loss"} <= record.evaluations.keys()]
    others = [one for one in every if one.spec.training.gradient != "orthogonal" and "norm" in one.evaluations]
    kept = [norm / record.evaluations["norm"][0] for record in own for norm in record.evaluations["norm"]]
    shrunk = [
        record.at(record.outcome.grokked, "norm") / record.evaluations["norm"][0]
        for record in others
        if record.outcome.grokked is not None
    ]
    if not kept or not shrunk:
        return ""
    learnt, grokked = (
        sum(getattr(record.outcome, event) is not None for record in own) for event in ("memorized", "grokked")
    )
    lowest = min(loss for record in own for loss in record.evaluations["train_loss"])
    collapse = "not what holds them" if lowest > FLOAT32_SEES else "not ruled out"
    return (
        f"Of {len(own)} runs with orthogonal gradients {learnt} memorise and {grokked} grok. ‖W‖ stays at "
        f"{min(kept):.2f} to {max(kept):.2f} of what it is at first, where runs of other arms have {min(shrunk):.2f} "
        f"to {max(shrunk):.2f} of it when they grok. Softmax collapse is {collapse}: mean train loss is "
        f"{lowest:.1g} nats at the lowest, and float32 tells a probability from 1 down to {FLOAT32_SEES:.0e}."
    )
