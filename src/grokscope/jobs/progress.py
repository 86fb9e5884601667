"""How far runs are that are trained elsewhere: read from their logs, since a job reports nothing before its end."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from grokscope.runs import is_remote, run_name
from grokscope.runs.following import Follower
from grokscope.specs import Plan

__all__ = ["StoredProgress"]

EVERY = 2.0  # seconds between two readings of the folder
SHARE = 0.1  # of the time that may be spent on reading it


class StoredProgress:
    """Reports each evaluation of a plan's runs once, as it appears in their folder.

    A remote store has no log that grows, so of its runs only what the jobs return is reported.
    """

    def __init__(self, plan: Plan, report: Callable[[dict[str, Any]], None]) -> None:
        names = [*map(run_name, plan.runs)]
        self.follower = None if is_remote(plan.out) else Follower(plan.out, only=names, sparing=True)
        self.steps = dict[str, int]()
        self.due = float("-inf")
        self._report = report

    def update(self) -> None:
        """Report what was logged since the last reading, unless that was a moment ago."""
        began = time.monotonic()
        if self.follower is None or began < self.due:
            return
        with suppress(OSError):  # a network disk may be away for a while
            for run in self.follower.update():
                for step in sorted(step for step in run.rows if step > self.steps.get(run.name, -1)):
                    row, last = run.rows[step], run.spec.training.steps
                    self.report({"run": run.name, "step": step, "last": last, "row": row})
        now = time.monotonic()
        self.due = now + max(EVERY, (now - began) / SHARE)

    def report(self, line: dict[str, Any]) -> None:
        """Report a line, unless it is an evaluation that a job repeats because it continues from a checkpoint."""
        if "step" in line:
            if line["step"] <= self.steps.get(line["run"], -1):
                return
            self.steps[line["run"]] = line["step"]
        self._report(line)
