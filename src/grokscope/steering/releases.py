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
GENERALIZES = "generalization"  # the sign that counts under gentle decay, too
PROGRESS = 0.05  # share by which a loss or an error has to fall to count as progress


class ReleasePhase(StrEnum):
    """What a release is doing; each value is the reason a person reads."""

    STRONG = "no sign to let go has been seen"
    """λ is where it began."""
    GENTLE = "the training set is not learnt yet"
    """λ is gentle."""
    LEARNT = "the training set is learnt: strong decay begins"
    """λ is strong, and was gentle before."""
    ANNEALING = "decay is annealed step by step"
    """λ is on its way down."""
    ANNEALED = "decay is annealed to its end"
    """λ is where it was to go."""
    UNLEARNT = "the training set is not learnt and gets no better"
    """λ is eased, for good."""
    STALLED = "what is held out is not learnt and gets no better"
    """λ is eased, for good."""
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
        """Whether strong decay was let go for this reason, and not only begun, annealed, eased or kept."""
        others = (ReleasePhase.STRONG, ReleasePhase.GENTLE, ReleasePhase.LEARNT)
        return self not in (*others, ReleasePhase.ANNEALING, ReleasePhase.ANNEALED) and not self.is_ease

    @property
    def is_ease(self) -> bool:
        """Whether λ was eased for this reason, because it only hindered."""
        return self in (ReleasePhase.UNLEARNT, ReleasePhase.STALLED)


def released(
    release: Release, weight_decay: float, evaluations: Sequence[Evaluation], *, is_fork: bool = False
) -> Control:
    """λ after the evaluations so far; `weight_decay` is the strong λ.

    λ(t) = λ_strong + (λ_end − λ_strong) · min(1, t / anneal_steps) until the first sign, λ_end from there on; without
    an anneal λ(t) = λ_strong, times `ease` after every `patience` steps without progress. What was eased below λ_end
    stays there. With `gentle`, λ is at most that until the training set is learnt. An evaluation has step and whatever
    a sign reads: validation_accuracy, norm, train_accuracy, train_loss. What is missing or not a number is no sign; so
    nothing is destroyed by NaN. Where the first evaluation has a `weight_decay` of its own (a fork of a run whose λ was
    eased), λ begins there; a fork is gentle only if that λ is, and its training set is not learnt when it begins.

    >>> log = [{"step": 0, "validation_accuracy": 0.1}, {"step": 50, "validation_accuracy": 0.97}]
    >>> released(Release(), 5.0, log).changes
    (Change(step=50, weight_decay=1.0, phase=<ReleasePhase.GENERALIZATION: 'validation accuracy says that it has \
generalised'>),)
    >>> stuck = [{"step": step, "train_loss": 4.0} for step in (0, 50, 100)]
    >>> released(Release(patience=100), 5.0, stuck).weight_decay
    2.5
    >>> learns = [{"step": 0, "train_accuracy": 0.1}, {"step": 50, "train_accuracy": 1.0}]
    >>> [(change.step, change.weight_decay) for change in released(Release(gentle=1.0), 5.0, learns).changes]
    [(0, 1.0), (50, 5.0)]
    """
    current = float(evaluations[0].get("weight_decay", weight_decay)) if evaluations else weight_decay
    is_gentle = _begins_gently(release, evaluations, is_fork)
    phase, changes = ReleasePhase.GENTLE if is_gentle else ReleasePhase.STRONG, list[Change]()
    gentle, strong, end = release.gentle or 0.0, weight_decay, release.weight_decay
    seen, progress, is_eased = _Seen(release), _Progress(release), False
    for evaluation in map(judged_row, evaluations):
        step, signs, stuck = int(evaluation["step"]), seen.add(evaluation), progress.add(evaluation)
        sign = next((sign for sign in release.at if sign in signs and (sign == GENERALIZES or not is_gentle)), None)
        wanted = min(current, gentle) if is_gentle else current
        if sign is not None:
            phase = ReleasePhase[sign.upper()]
            wanted = min(current, end) if is_eased else end
        elif release.anneal_steps:
            share = min(1.0, step / release.anneal_steps)
            wanted = weight_decay + (end - weight_decay) * share
            phase = ReleasePhase.ANNEALED if share == 1 else ReleasePhase.ANNEALING
        elif is_gentle and progress.is_learnt:  # signs, and the wait for progress, begin with the strong decay
            is_gentle, phase, wanted = False, ReleasePhase.LEARNT, strong
            seen, progress.since = _Seen(release), float(step)
            seen.add(evaluation)
        elif stuck is not None:
            least = 0.0 if stuck is ReleasePhase.UNLEARNT else min(wanted, end)
            eased = max(least, wanted * release.ease)
            if eased < wanted:
                strong, end = (strong * release.ease, min(end, eased)) if is_gentle else (strong, end)
                wanted, phase, is_eased = eased, stuck, True
        if wanted != current or phase.is_sign:
            changes.append(Change(step, wanted, phase))
            current = wanted
        if phase.is_sign:
            break
    return Control(current, phase, tuple(changes))


def _begins_gently(release: Release, evaluations: Sequence[Evaluation], is_fork: bool) -> bool:
    """Whether strong decay is still to begin; in a fork the λ in force says that it has, or was let go since."""
    if release.gentle is None or not (is_fork and evaluations):
        return release.gentle is not None
    first, progress = judged_row(evaluations[0]), _Progress(release)
    progress.add(first)
    is_new = int(first["step"]) == 0 or _number(first, "weight_decay") <= release.gentle
    return is_new and not progress.is_learnt


class _Progress:
    """Whether a run still learns: its training set first, then what is held out."""

    def __init__(self, release: Release) -> None:
        self.release, self.since, self.is_learnt = release, nan, False
        self.lowest: dict[str, float] = {}

    def add(self, evaluation: Evaluation) -> ReleasePhase | None:
        """Why λ is to be eased at an evaluation, if it is: `patience` steps passed since it was, or since progress."""
        step = float(evaluation["step"])
        self.is_learnt |= _number(evaluation, "train_accuracy") >= self.release.memorized
        self.is_learnt |= _number(evaluation, "train_loss") <= self.release.memorized_loss
        found = [self._is_lower(name, evaluation) for name in ("validation_loss", "validation_accuracy")]
        if not self.is_learnt:
            found += [self._is_lower(name, evaluation) for name in ("train_loss", "train_accuracy")]
        has_generalised = _number(evaluation, "validation_accuracy") >= self.release.validation_accuracy
        if any(found) or has_generalised or not self.since <= step:  # the first evaluation, too
            self.since = step
        if not self.release.patience or step - self.since < self.release.patience:
            return None
        self.since = step
        if not self.is_learnt and any(name.startswith("train") for name in self.lowest):
            return ReleasePhase.UNLEARNT
        return ReleasePhase.STALLED if any(name.startswith("validation") for name in self.lowest) else None

    def _is_lower(self, name: str, evaluation: Evaluation) -> bool:
        """Whether a loss, or one minus an accuracy, is clearly below the lowest until then."""
        value = _number(evaluation, name)
        value = 1 - value if name.endswith("accuracy") else value
        if not value <= (1 - PROGRESS) * self.lowest.get(name, inf):
            return False
        self.lowest[name] = value
        return True


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
