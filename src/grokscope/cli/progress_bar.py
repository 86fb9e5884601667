"""The bar that training shows: steps taken, what the runs have reached, and the jobs of a cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from grokscope.errors import plural
from grokscope.runs import is_remote, run_name
from grokscope.runs.following import Follower
from grokscope.specs import Plan, ReadingSpec

__all__ = ["TrainingBar"]

REACHED = {
    "memorised": ("train_accuracy", ReadingSpec().memorized),
    "grokked": ("validation_accuracy", ReadingSpec().grokked),
}


class TrainingBar:
    """Shows what an executor reports of a plan; what is trained already counts as done."""

    def __init__(self, plan: Plan, beginning: str) -> None:
        self.console = Console(stderr=True)
        self.left = {run_name(spec): spec.training.steps - (spec.fork.step if spec.fork else 0) for spec in plan.runs}
        self.total = sum(self.left.values())
        if not is_remote(plan.out):
            stored = Follower(plan.out, only=self.left, sparing=True).update()
            self.left |= {run.name: run.steps_left for run in stored}
        self.reached: dict[str, set[str]] = {event: set() for event in REACHED}
        self.jobs = ""
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[facts]}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.console,
        )
        done = self.total - sum(self.left.values())
        label = plural(len(plan.runs), "run")
        self.task = self.bar.add_task(label, total=self.total, completed=done, facts=beginning)

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
        """Show that nothing is left: a run that ends early leaves steps, and the last job is not counted again."""
        self.jobs = ""
        self.bar.update(self.task, completed=self.total)
        self._show()

    def _show(self) -> None:
        counts = ", ".join(f"{len(names)} {event}" for event, names in self.reached.items())
        speed = self.bar.tasks[0].speed
        reached = counts + (f"  {speed:,.0f} run-steps/s" if speed else "")
        self.bar.update(self.task, facts="\n".join(filter(None, [reached, self.jobs])))

    def _take_evaluation(self, run: str, left: int, row: dict[str, float | None]) -> None:
        self.bar.advance(self.task, max(self.left[run] - left, 0))  # a run that continues repeats some steps
        self.left[run] = min(self.left[run], left)
        for event, (column, threshold) in REACHED.items():
            if (row[column] or 0) >= threshold:
                self.reached[event].add(run)
