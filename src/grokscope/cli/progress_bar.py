"""The bar that training shows: steps taken, what the runs have reached, time left, and the jobs of a cluster.

A run that ended early has taken all of its steps: it counts in full, and what is left is that of the others.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from grokscope.cli.frames import duration
from grokscope.errors import plural
from grokscope.runs import is_remote, run_name
from grokscope.runs.following import Follower
from grokscope.specs import Plan, ReadingSpec
from grokscope.timeline import judged_row

__all__ = ["TrainingBar"]

REACHED = {
    "memorised": ("train_accuracy", ReadingSpec().memorized),
    "grokked": ("validation_accuracy", ReadingSpec().grokked),
}
WINDOW = 60.0  # seconds over which speed is taken


class TrainingBar:
    """Shows what an executor reports of a plan; what is trained already counts as done."""

    def __init__(self, plan: Plan, beginning: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.console, self.clock, self.began = Console(stderr=True), clock, clock()
        self.left = {run_name(spec): spec.training.steps - (spec.fork.step if spec.fork else 0) for spec in plan.runs}
        self.total = sum(self.left.values())
        self.folder = None if is_remote(plan.out) else Path(plan.out)
        if self.folder is not None:
            stored = Follower(self.folder, only=self.left, sparing=True).update()
            self.left |= {run.name: run.steps_left for run in stored}
        self.was_complete = not any(self.left.values())
        self.open: set[str] = set()
        self.trained: deque[tuple[float, int]] = deque()  # empty while models are compiled, before any step
        self.reached: dict[str, set[str]] = {event: set() for event in REACHED}
        self.jobs = ""
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[facts]}", markup=False),
            TimeElapsedColumn(),
            console=self.console,
        )
        label = plural(len(plan.runs), "run")
        self.task = self.bar.add_task(label, total=self.total, completed=self._done, facts=beginning)

    @property
    def _done(self) -> int:
        return self.total - sum(self.left.values())

    @property
    def speed(self) -> float | None:
        """Steps of all runs together per second, over the last minute; None until it is known."""
        if not self.trained:
            return None
        (start, first), (end, last) = self.trained[0], self.trained[-1]
        return (last - first) / (end - start) if end > start and last > first else None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show it while the block is executed."""
        with self.bar:
            yield

    def report(self, line: dict[str, Any]) -> None:
        """Take a notice, the state of a cluster's jobs, or an evaluation."""
        if "notice" in line:
            return self.warn(line["notice"], "note")
        if "jobs" in line:
            self.jobs = line["jobs"]
        else:
            self._take_evaluation(line["run"], line["last"] - line["step"], line["row"])
        self._show()

    def warn(self, sentence: str, kind: str = "warning") -> None:
        """Print a sentence above the bar."""
        self.console.print(f"{kind}: {escape(sentence)}", soft_wrap=True)

    def fill(self) -> None:
        """Show that nothing is left, and that the last job is not counted again."""
        self.jobs, self.left = "", dict.fromkeys(self.left, 0)
        self._show()

    def conclude(self) -> None:
        """Say below the bar how many runs are finished, and how long that took."""
        runs, finished = len(self.left), sum(not left for left in self.left.values())
        if self.was_complete:
            sentence = (
                f"{'the run was' if runs == 1 else f'all {runs:,} runs were'} finished before; nothing was trained"
            )
        else:
            minutes, seconds = divmod(round(self.clock() - self.began), 60)
            sentence = f"{finished:,} of {plural(runs, 'run')} finished in {minutes}:{seconds:02d}"
        self.console.print(sentence, highlight=False, soft_wrap=True)

    def _show(self) -> None:
        counts = ", ".join(f"{len(names)} {event}" for event, names in self.reached.items() if not self.was_complete)
        if (speed := self.speed) and (left := sum(self.left.values())):
            counts += f"  {speed:,.0f} run-steps/s, {duration(left / speed)} left"
        facts = "\n".join(filter(None, [counts, self.jobs]))
        self.bar.update(self.task, completed=self._done, facts=facts)

    def _take_evaluation(self, run: str, left: int, row: dict[str, float | None]) -> None:
        new = max(self.left[run] - left, 0)  # a run that continues repeats some steps
        self.left[run] -= new
        if self.trained or new:
            self.trained.append((self.clock(), new + (self.trained[-1][1] if self.trained else 0)))
        while len(self.trained) > 2 and self.trained[-1][0] - self.trained[0][0] > WINDOW:
            self.trained.popleft()
        for event, (column, threshold) in REACHED.items():
            if (judged_row(row)[column] or 0) >= threshold:
                self.reached[event].add(run)
        self.open.add(run)
        self._close_finished()

    def _close_finished(self) -> None:
        """Count the steps that runs which have ended early did not need."""
        if self.folder is not None:
            for run in [run for run in self.open if (self.folder / run / "outcome.json").exists()]:
                self.open.remove(run)
                self.left[run] = 0
