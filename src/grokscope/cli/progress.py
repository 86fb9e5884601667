"""Training with a progress bar: how far, how many memorised and grokked, how fast, how long still."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from grokscope.executors import run_locally
from grokscope.experiments import Store, refuse_impossible
from grokscope.specs import Plan, ReadingSpec
from grokscope.trackers import Word, mirrored

__all__ = ["run_with_progress"]

MEMORIZED, GROKKED = ReadingSpec().memorized, ReadingSpec().grokked


def run_with_progress(plan: Plan, track: Sequence[Word] = ()) -> bool:
    """Train a plan's unfinished runs, mirrored by these trackers; whether all of them came to their end."""
    refuse_impossible(plan.runs, Store(plan.out), plan.device)
    # All at once, so that whoever watches sees what is to come, and `resume` knows of runs that had not begun.
    waiting_runs = [folder.name for folder in map(Store(plan.out).add, plan.runs) if folder.outcome is None]
    console = Console(stderr=True)
    total = sum(spec.training.steps - (spec.fork.step if spec.fork else 0) for spec in plan.runs)
    seen: dict[str, int] = {}
    memorized: set[str] = set()
    grokked: set[str] = set()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[facts]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        waiting = bar.add_task(f"{len(plan.runs)} runs", total=total, facts="starting (compiling takes a while)")

        def report(line: dict[str, Any]) -> None:
            name, row = line["run"], line["row"]
            bar.advance(waiting, line["step"] - seen.get(name, line["step"]))
            seen[name] = line["step"]
            if (row["train_accuracy"] or 0) >= MEMORIZED:
                memorized.add(name)
            if (row["validation_accuracy"] or 0) >= GROKKED:
                grokked.add(name)
            speed = bar.tasks[0].speed
            rate = f"{speed:,.0f} run-steps/s" if speed else ""
            bar.update(waiting, facts=f"{len(memorized)} memorised, {len(grokked)} grokked  {rate}")

        def warn(sentence: str) -> None:
            console.print(f"warning: {escape(sentence)}", soft_wrap=True)

        with mirrored(track, plan.out, waiting_runs, warn):
            return run_locally(plan, report)
