"""When strong decay is let go: λ as a pure function of a run's evaluations, so that it survives every restart."""

from collections import deque
from collections.abc import Mapping, Sequence
from enum import StrEnum
from math import inf, log, nan

from grokscope.specs import Release
from grokscope.steering.closed_loop import Change, Control
from grokscope.timeline import judged_row

__all__ = ["ReleasePhase", "released"]

Evaluation = Mapping[str, int | float]


class ReleasePhase(StrEnum):
    """What a release is doing; each value is the reason a person reads."""

    STRONG = "no sign to let go has been seen"
    """λ is where it began."""
    ANNEALING = "decay is annealed step by step"
    """λ is on its way down."""
    ANNEALED = "decay is annealed to its end"
    """λ is where it was to go."""
    GENERALIZATION = "validation accuracy says that it has generalised"
    """Let go."""
    NORM_SLOWS = "the norm hardly falls any more"
    """Let go."""
    NORM_TARGET = "the norm is down to its target"
    """Let go."""
    ACCURACY_BREAKS = "what is memorised breaks: train accuracy falls"
    """Let go."""
    LOSS_RISES = "what is memorised breaks: train loss rises"
    """Let go."""

    @property
    def is_sign(self) -> bool:
        """Whether strong decay was let go for this reason, and not only annealed or kept."""
        return self not in (ReleasePhase.STRONG, ReleasePhase.ANNEALING, ReleasePhase.ANNEALED)


def released(release: Release, weight_decay: float, evaluations: Sequence[Evaluation]) -> Control:
    """λ after the evaluations so far; `weight_decay` is the strong λ to begin with.

    λ(t) = λ_strong + (λ_end − λ_strong) · min(1, t / anneal_steps) until the first sign, λ_end from there on; without
    an anneal λ(t) = λ_strong. An evaluation has step and whatever a sign reads: validation_accuracy, norm,
    train_accuracy, train_loss. What is missing or not a number is no sign; so nothing is destroyed by NaN.

    >>> log = [{"step": 0, "validation_accuracy": 0.1}, {"step": 50, "validation_accuracy": 0.97}]
    >>> released(Release(), 5.0, log).changes
    (Change(step=50, weight_decay=1.0, phase=<ReleasePhase.GENERALIZATION: 'validation accuracy says that it has \
generalised'>),)
    """
    current, phase, changes = weight_decay, ReleasePhase.STRONG, list[Change]()
    seen = _Seen(release)
    for evaluation in map(judged_row, evaluations):
        step, signs = int(evaluation["step"]), seen.add(evaluation)
        sign = next((sign for sign in release.at if sign in signs), None)
        if sign is not None:
            phase, wanted = ReleasePhase[sign.upper()], release.weight_decay
        elif release.anneal_steps:
            share = min(1.0, step / release.anneal_steps)
            wanted = weight_decay + (release.weight_decay - weight_decay) * share
            phase = ReleasePhase.ANNEALED if share == 1 else ReleasePhase.ANNEALING
        else:
            wanted = current
        if wanted != current or phase.is_sign:
            changes.append(Change(step, wanted, phase))
            current = wanted
        if phase.is_sign:
            break
    return Control(current, phase, tuple(changes))


class _Seen:
    """What the signs need of all evaluations so far."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.is_learnt_by_accuracy, self.is_learnt_by_loss, self.fastest = False, False, 0.0
        self.norms: deque[tuple[float, float]] = deque()
        """(step, ln‖W‖) of the evaluations that are needed: one from before the window, and all in it."""

    def add(self, evaluation: Evaluation) -> set[str]:
        """The signs that an evaluation shows, after those before it."""
        release = self.release
        accuracy, loss = _number(evaluation, "train_accuracy"), _number(evaluation, "train_loss")
        norm = _number(evaluation, "norm")
        self.is_learnt_by_accuracy |= accuracy >= release.memorized
        self.is_learnt_by_loss |= loss <= release.memorized_loss
        is_learnt_now = accuracy >= release.memorized or loss <= release.memorized_loss
        now = self._fall(float(evaluation["step"]), norm)
        self.fastest = max(self.fastest, now) if now == now else self.fastest
        slowed = self.fastest >= release.least_fall and now <= release.slowdown * self.fastest
        found = {
            "generalization": _number(evaluation, "validation_accuracy") >= release.validation_accuracy,
            "norm_slows": is_learnt_now and slowed,
            "norm_target": norm <= release.norm_target,
            "accuracy_breaks": self.is_learnt_by_accuracy and accuracy < release.memorized - release.accuracy_drop,
            "loss_rises": self.is_learnt_by_loss and loss > release.loss_factor * release.memorized_loss,
        }
        return {sign for sign, is_seen in found.items() if is_seen}

    def _fall(self, step: float, norm: float) -> float:
        """f(t) = ln‖W(t − window)‖ − ln‖W(t)‖; NaN where the log does not reach back so far.

        Where no evaluation is at t − window, the last one before it is taken, and f is scaled to the window.
        """
        if not 0 < norm < inf:
            return nan
        self.norms.append((step, log(norm)))
        while len(self.norms) > 1 and step - self.norms[1][0] >= self.release.window:
            self.norms.popleft()
        begin, before = self.norms[0]
        if step - begin < self.release.window:
            return nan
        return (before - log(norm)) * self.release.window / (step - begin)


def _number(evaluation: Evaluation, column: str) -> float:
    value = evaluation.get(column)
    return nan if value is None else float(value)
