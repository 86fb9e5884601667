"""Training with a progress bar, and what became of the runs."""

import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from grokscope.cli.options import ExecutorOptions
from grokscope.errors import InputError
from grokscope.jobs import prepare_plan
from grokscope.jobs.executors import executor_named
from grokscope.jobs.trackers import Word, mirror_logs
from grokscope.runs import BusyError, Run, Store, is_remote
from grokscope.specs import Plan, ReadingSpec
from grokscope.view.summary import summarize_run

__all__ = ["INTERRUPTED", "finish", "run_with_progress"]

INTERRUPTED = 75
LOCAL = ExecutorOptions()
MEMORIZED, GROKKED = ReadingSpec().memorized, ReadingSpec().grokked
MOST_SENTENCES = 100


def run_with_progress(plan: Plan, track: Sequence[Word] = (), executor: ExecutorOptions = LOCAL) -> bool:
    """Train a plan's unfinished runs by this executor; whether all of them have ended.

    What cannot be trained is rejected before anything is written; then the plan is stored with its runs, for `resume`.
    """
    if track and is_remote(plan.out):
        raise InputError(f"trackers follow a folder, and {plan.out} is none; leave out --track")
    waiting_runs = prepare_plan(plan, is_here=executor.executor == "local")
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
    execute = executor_named(
        executor.executor,
        plan,
        address=executor.cluster or "auto",
        partition=executor.partition,
        runs_per_shard=executor.runs_per_shard,
        memory=executor.memory,
        retries=executor.retries,
    )
    with Progress(*columns, console=console) as bar:
        waiting = bar.add_task(f"{len(plan.runs)} runs", total=total, facts="starting (compiling takes a while)")

        def report(line: dict[str, Any]) -> None:
            if "notice" in line:
                console.print(f"note: {escape(line['notice'])}", soft_wrap=True)
                return
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

        with mirror_logs(track, plan.out, waiting_runs, warn):
            return execute(plan, report)


def finish(plan: Plan, is_finished: bool) -> None:
    """Print what became of a plan's runs; exit with status 75 if it was interrupted."""
    if is_remote(plan.out) or len(plan.runs) > MOST_SENTENCES:
        print(f"{len(plan.runs):,} runs; see `grokscope status {plan.out}`")
    else:
        for spec in plan.runs:
            print(summarize_run(Run(Store(plan.out).locate(spec))))
    if not is_finished:
        print(f"stopped; everything is stored: continue with `grokscope resume {plan.out}`")
        sys.exit(INTERRUPTED)
    for spec in plan.runs if not is_remote(plan.out) else ():
        folder = Store(plan.out).locate(spec)
        if not folder.outcome.is_finished and folder.is_held():
            raise BusyError(f"{folder.name} is being written by {folder.owner}")
