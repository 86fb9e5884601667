"""Training with a progress bar: how far, how many memorised and grokked, how fast, how long still."""

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from grokscope.executors import run_locally
from grokscope.experiments import Store, refuse_impossible
from grokscope.specs import Plan, ReadingSpec

__all__ = ["run_with_progress"]

MEMORIZED, GROKKED = ReadingSpec().memorized, ReadingSpec().grokked


def run_with_progress(plan: Plan) -> bool:
    """Train a plan's unfinished runs; whether all of them came to their end."""
    refuse_impossible(plan.runs, Store(plan.out), plan.device)
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
    with Progress(*columns, console=Console(stderr=True)) as bar:
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

        return run_locally(plan, report)
