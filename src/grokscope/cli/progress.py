"""Training with a progress bar, and what became of the runs."""

import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from grokscope.cli.options import ExecutorOptions
from grokscope.errors import InputError
from grokscope.jobs import refuse_impossible
from grokscope.jobs.checks import refuse_unmeasurable
from grokscope.jobs.executors import executor_named
from grokscope.jobs.trackers import Word, mirrored
from grokscope.runs import Run, Store, is_remote, open_store, remember, run_name
from grokscope.specs import Plan, ReadingSpec
from grokscope.training.devices import is_available
from grokscope.view.summary import sentence

__all__ = ["INTERRUPTED", "finish", "run_with_progress"]

INTERRUPTED = 75
LOCAL = ExecutorOptions()
MEMORIZED, GROKKED = ReadingSpec().memorized, ReadingSpec().grokked
MOST_FOLDERS = 1000  # made before training begins; two files each, flushed, and a plan may name a hundred thousand
MOST_SENTENCES = 100


def run_with_progress(plan: Plan, track: Sequence[Word] = (), executor: ExecutorOptions = LOCAL) -> bool:
    """Train a plan's unfinished runs by this executor; whether all of them have ended.

    What cannot be trained is rejected before anything is written; then the plan is stored with its runs, for `resume`.
    """
    waiting_runs = _prepare(plan, track, is_here=executor.executor == "local")
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

        with mirrored(track, plan.out, waiting_runs, warn):
            return execute(plan, report)


def _prepare(plan: Plan, track: Sequence[Word], is_here: bool) -> list[str]:
    """Check a plan and store it; the names of the runs to train."""
    if track and is_remote(plan.out):
        raise InputError(f"trackers follow a folder, and {plan.out} is none; leave out --track")
    device = plan.device if is_here or is_available(plan.device) else "cpu"  # a cluster checks its own
    with open_store(plan.out) as store:
        refuse_impossible(plan.runs, store, device)
        refuse_unmeasurable(plan.runs, (*plan.measures, *plan.milestones), device)
        remember(plan, store)
        store.reopen()
        if is_remote(plan.out):
            return []
        waiting = [spec for spec in plan.runs if not store.is_finished(spec)]
        for spec in waiting if len(waiting) <= MOST_FOLDERS else ():  # so that `watch` shows what is to come
            store.add(spec)
    return [run_name(spec) for spec in waiting]


def finish(plan: Plan, is_finished: bool) -> None:
    """Print what became of a plan's runs; exit with status 75 if it was interrupted."""
    if is_remote(plan.out) or len(plan.runs) > MOST_SENTENCES:
        print(f"{len(plan.runs):,} runs; see `grokscope status {plan.out}`")
    else:
        for spec in plan.runs:
            print(sentence(Run(Store(plan.out).folder(run_name(spec)))))
    if not is_finished:
        print(f"stopped; everything is stored: continue with `grokscope resume {plan.out}`")
        sys.exit(INTERRUPTED)
    for spec in plan.runs if not is_remote(plan.out) else ():
        if not Store(plan.out).is_finished(spec):
            with Store(plan.out).folder(run_name(spec)).locked():  # rejects, and names the process that has it
                pass
