"""The safe closed loop: λ as a pure function of what was seen, so that it survives every restart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from grokscope.specs import ClosedLoop, ReadingSpec
from grokscope.timeline import judged_row

__all__ = ["Change", "Control", "Phase", "controlled"]

Evaluation = Mapping[str, int | float]


class Phase(StrEnum):
    """What a closed loop is doing; each value is the reason a person reads."""

    WAITING = "the training set is not learnt yet"
    """λ is where it began."""
    RAISING = "the training set stays learnt"
    """λ was raised, and may be again."""
    HOLDING = "λ is as high as it may be"
    """At the limit, or one step below a λ that was too much."""
    BACKING_OFF = "train accuracy or loss left its bound"
    """λ was lowered, and waits for calm evaluations."""
    RESTORED = "the run has grokked"
    """λ is back where it began, for good."""


@dataclass(frozen=True)
class Change:
    """One change of λ."""

    step: int
    """The evaluation at which it was made."""
    weight_decay: float
    """λ from there on."""
    phase: StrEnum
    """Why."""


@dataclass(frozen=True)
class Control:
    """What a closed loop or a release says after everything seen so far."""

    weight_decay: float
    """λ from now on."""
    phase: StrEnum
    """What it is doing, and why."""
    changes: tuple[Change, ...]
    """Every change of λ until now."""

    def to_dict(self) -> dict[str, object]:
        """The control as plain JSON values, for a run's outcome."""
        changes = [
            {"step": c.step, "weight_decay": c.weight_decay, "reason": c.phase.name.lower()} for c in self.changes
        ]
        return {"phase": self.phase.name.lower(), "weight_decay": self.weight_decay, "changes": changes}


def controlled(
    settings: ClosedLoop, weight_decay: float, evaluations: Sequence[Evaluation], reading: ReadingSpec | None = None
) -> Control:
    """λ after the evaluations so far, each with step, train_accuracy, train_loss and, if known, validation_accuracy.

    `weight_decay` is the λ to begin with and to return to; where the first evaluation has a `weight_decay` of its own
    (a fork of a run whose λ was changed), the loop begins there. After `patience` calm evaluations in a row λ is
    multiplied by `factor`, up to `highest`. At an evaluation that is not calm it is multiplied by `back_off`, and from
    then on goes no higher than one factor below the λ that was too much. Nothing happens before the first calm
    evaluation. A value that is not a number is not calm.

    >>> calm = [{"step": step, "train_accuracy": 1.0, "train_loss": 0.01} for step in (0, 100)]
    >>> controlled(ClosedLoop(factor=2.0), 1.0, calm).weight_decay
    4.0
    >>> spike = {"step": 200, "train_accuracy": 0.97, "train_loss": 0.3}
    >>> controlled(ClosedLoop(factor=2.0), 1.0, [*calm, spike]).changes[-1]
    Change(step=200, weight_decay=2.0, phase=<Phase.BACKING_OFF: 'train accuracy or loss left its bound'>)
    """
    current = float(evaluations[0].get("weight_decay", weight_decay)) if evaluations else weight_decay
    ceiling, calm, has_learnt, is_spike = max(settings.highest, weight_decay), 0, False, False
    phase, changes, grokked = Phase.WAITING, list[Change](), (reading or ReadingSpec()).grokked
    for evaluation in map(judged_row, evaluations):
        is_calm = (
            evaluation["train_accuracy"] >= settings.train_accuracy and evaluation["train_loss"] <= settings.train_loss
        )
        has_learnt, calm = has_learnt or is_calm, calm + 1 if is_calm else 0
        wanted = current
        has_grokked = evaluation.get("validation_accuracy", 0.0) >= grokked
        if has_grokked and settings.restore_after_grokking and (has_learnt or changes):
            phase, wanted = Phase.RESTORED, weight_decay
        elif has_learnt and not is_calm:
            # A spike at the first λ is not the loop's doing; later evaluations of it say nothing of a lower λ.
            if current > weight_decay and not is_spike:
                ceiling = max(weight_decay, min(ceiling, current / settings.factor))
            phase, wanted = Phase.BACKING_OFF, max(min(weight_decay, current), current * settings.back_off)
        elif is_calm and calm >= settings.patience:
            calm, wanted = 0, max(current, min(ceiling, current * settings.factor))
            phase = Phase.HOLDING if wanted == current else Phase.RAISING
        is_spike = has_learnt and not is_calm
        if wanted != current:
            current = wanted
            changes.append(Change(int(evaluation["step"]), current, phase))
        if phase is Phase.RESTORED:
            break
    return Control(current, phase, tuple(changes))
