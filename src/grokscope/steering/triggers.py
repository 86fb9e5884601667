"""The rule that raises λ when a signal is seen, and may restore it after grokking: a pure function of what was seen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from grokscope.randomness import uniform
from grokscope.specs import ReadingSpec, Trigger
from grokscope.timeline import judged_row

__all__ = ["Decision", "decision", "drawn_step"]


@dataclass(frozen=True)
class Decision:
    """What a trigger says after everything seen so far."""

    weight_decay: float
    """λ from now on."""
    fired_at: int | None
    """The evaluation at which it fired; None if it has not."""
    restored_at: int | None
    """The evaluation at which λ was put back; None if it was not."""


def decision(
    trigger: Trigger,
    weight_decay: float,
    evaluations: Sequence[Mapping[str, int | float]],
    at_random: int | None = None,
    reading: ReadingSpec | None = None,
) -> Decision:
    """λ after the evaluations so far, each with step, fsd, train_accuracy and validation_accuracy; λ before is given.

    The paper's accelerator (§6): λ becomes λ_high at the first evaluation at which the signal reaches its threshold.
    With `restore_after_grokking`, the refinement the paper proposes, it returns at the first evaluation from there on
    that has grokked. A value that is not a number reaches nothing. `at_random` is the step drawn for the signal
    `random`.

    >>> seen = [{"step": 0, "fsd": 0.1}, {"step": 100, "fsd": 0.85}]
    >>> decision(Trigger(weight_decay=5.0), 1.0, seen)
    Decision(weight_decay=5.0, fired_at=100, restored_at=None)
    """
    evaluations = [judged_row(one) for one in evaluations]
    threshold = at_random if trigger.signal == "random" else trigger.threshold
    signal = "step" if trigger.signal in ("step", "random") else trigger.signal
    fired = None if threshold is None else _first(evaluations, signal, threshold)
    if fired is None:
        return Decision(weight_decay, None, None)
    later = [one for one in evaluations if one["step"] >= fired] if trigger.restore_after_grokking else []
    restored = _first(later, "validation_accuracy", (reading or ReadingSpec()).grokked)
    return Decision(trigger.weight_decay if restored is None else weight_decay, fired, restored)


def drawn_step(seed: int, last: int) -> int:
    """The step of a random trigger: uniform in 1 … last, from the run's data-order seed.

    >>> all(1 <= drawn_step(seed, last=10) <= 10 for seed in range(100))
    True
    """
    return 1 + int(float(uniform(torch.tensor(seed), "trigger", torch.tensor(0), 1)) * last)


def _first(evaluations: Sequence[Mapping[str, int | float]], column: str, at_least: int | float) -> int | None:
    return next((int(one["step"]) for one in evaluations if one[column] >= at_least), None)
