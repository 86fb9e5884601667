"""Training with a progress bar: how far, how many memorised and grokked, how fast, how long still."""

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from grokscope.errors import InputError
from grokscope.jobs import refuse_impossible
from grokscope.jobs.checks import refuse_unmeasurable
from grokscope.jobs.executors import run_locally
from grokscope.jobs.trackers import Word, mirrored
from grokscope.runs import is_remote, open_store, remember, run_name
from grokscope.specs import Plan, ReadingSpec
from grokscope.training.devices import is_available

__all__ = ["Execute", "run_with_progress"]

Execute = Callable[[Plan, Callable[[dict[str, Any]], None]], bool]
MEMORIZED, GROKKED = ReadingSpec().memorized, ReadingSpec().grokked
MOST_FOLDERS = 1000  # made before training begins; two files each, flushed, and a plan may name a hundred thousand


def run_with_progress(plan: Plan, track: Sequence[Word] = (), execute: Execute | None = None) -> bool:
    """Train a plan's unfinished runs, mirrored by these trackers; whether all of them came to their end.

    They are trained on this machine, or by the executor given. What cannot be is refused before anything is written;
    then the plan is remembered beside its runs, for `resume`.
    """
    waiting_runs = _prepared(plan, track, is_here=execute is None)
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
            return (execute or run_locally)(plan, report)


def _prepared(plan: Plan, track: Sequence[Word], is_here: bool) -> list[str]:
    """The names of the runs to train, once nothing speaks against the plan and it is remembered."""
    if track and is_remote(plan.out):
        raise InputError(f"trackers follow a folder, and {plan.out} is none; leave out --track")
    device = plan.device if is_here or is_available(plan.device) else "cpu"  # what a cluster has, it knows itself
    with open_store(plan.out) as store:
        refuse_impossible(plan.runs, store, device)
        refuse_unmeasurable(plan.runs, (*plan.measures, *plan.milestones), device)
        remember(plan, store)
        store.reopen()
        if is_remote(plan.out):
            return []
        waiting = [spec for spec in plan.runs if not store.is_finished(spec)]
        for spec in waiting if len(waiting) <= MOST_FOLDERS else ():  # whoever watches sees what is to come
            store.add(spec)
    return [run_name(spec) for spec in waiting]
