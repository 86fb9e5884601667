"""How fast runs are trained, and how long the rest will take, from when their logs were written."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from grokscope.runs.following import FollowedRun

__all__ = ["Pace", "Progress"]

WINDOW = 60.0  # seconds over which speed is taken
PATIENCE = 60.0  # seconds without a record after which a run counts as quiet


@dataclass(frozen=True)
class Progress:
    """How far some runs are, together."""

    share: float
    """Steps taken of all steps; a run that has ended, early or not, has taken all of its own."""
    rate: float | None
    """Steps of all runs together per second; None if nothing is being written, or not known yet."""
    seconds_left: float | None
    """Until the last run ends if none ends early; None without a rate."""


class Pace:
    """Remembers when runs were evaluated, as far back as speed is taken."""

    def __init__(self) -> None:
        self.arrivals: dict[str, deque[tuple[float, int]]] = {}

    def note(self, run: FollowedRun) -> None:
        """Remember a run's last evaluation."""
        seen = self.arrivals.setdefault(run.name, deque())
        if not run.is_read:  # its step is not known, so nothing has arrived
            return
        if seen and (run.written is None or run.step < seen[-1][1]):  # it was rewound, and repeats its steps
            seen.clear()
        if run.written is not None and (not seen or run.step > seen[-1][1]):
            seen.append((run.written, run.step))
        while len(seen) > 2 and seen[-1][0] - seen[0][0] > WINDOW:
            seen.popleft()

    def progress(self, runs: Sequence[FollowedRun], now: float) -> Progress:
        """How far these runs, at least one, are; `now` is in seconds since 1970."""
        rate = sum(self._rate(run, now) for run in runs) or None
        left = sum(run.steps_left for run in runs)
        total = sum(run.spec.training.steps - run.first for run in runs)
        return Progress((total - left) / total if total else 1.0, rate, left / rate if rate else None)

    def _rate(self, run: FollowedRun, now: float) -> float:
        """Steps per second: over the last minute, or since the run began if only one evaluation has arrived."""
        if run.is_finished or run.written is None or now - run.written > PATIENCE:
            return 0.0
        seen = self.arrivals[run.name]
        (start, first), (end, last) = (seen[0], seen[-1]) if len(seen) > 1 else ((run.began, run.first), seen[-1])
        return (last - first) / (end - start) if end > start else 0.0
