"""`grokscope watch`: a folder of runs, seen while they train."""

import sys
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from statistics import fmean
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.live import Live

from grokscope.cli.frames import BLOCKS, Line, Watched, frame
from grokscope.errors import InputError
from grokscope.model import padded_size
from grokscope.runs import open_runs
from grokscope.runs.following import Followed, Follower
from grokscope.specs import RunSpec, Seeds
from grokscope.tasks import named_task
from grokscope.timeline import Timeline

__all__ = ["Watcher", "watch"]

By = Literal["cohort", "task", "seeds"]
WINDOW = 60.0  # seconds over which speed is taken
PATIENCE = 60.0  # seconds without a record after which a run counts as quiet
BINS = 24
MOST_LOGS = 400  # of runs that had ended before they were first seen: more would only take longer
COMMON: dict[By, str] = {
    "cohort": "runs that could share a stack (one model, batch and kind of task), with how many there are",
    "task": "runs of one task that could share a stack, with how many there are",
    "seeds": "runs that differ in their seeds only, with how many there are",
}


def watch(
    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")],
    by: By = "cohort",
    once: bool = False,
    every: float = 1.0,
) -> None:
    """Watch runs while they train: a line per cohort, and a word when a run synchronises or groks.

    It takes no lock and may be started, stopped and run twice at any time. Speed is that of the last minute; time left
    counts the runs that have a folder, each to its last step. Ctrl-C ends the watching, never the training. Where more
    than 400 runs had ended before, the logs of 400 stand for all of them, and the picture says so.

    Example: grokscope watch runs/first --once

    Args:
        out: A folder of runs, written by any process.
        by: What one line stands for: runs that could share a stack, the same of one task, or runs that differ in
            their seeds only.
        once: Print one picture and end; so it is, too, when the output is no terminal.
        every: Seconds between two looks.
    """
    if not 0.05 <= every <= 3600:
        raise InputError(f"every must lie between 0.05 and 3600 seconds, got {every}")
    open_runs(out)  # refuses what is no folder
    watcher, console = Watcher(out, by), Console(highlight=False)
    plain = not _can_show(BLOCKS)
    if once or not console.is_terminal:
        console.print(frame(watcher.look(), console.width, plain))
        return
    try:
        with Live(frame(watcher.look(), console.width, plain), console=console, auto_refresh=False) as live:
            while True:
                time.sleep(every)
                live.update(frame(watcher.look(), console.width, plain), refresh=True)
    except KeyboardInterrupt:
        return


class Watcher:
    """Looks again and again, and remembers what it needs to tell how fast things go and what is new."""

    def __init__(self, path: Path, by: By = "cohort", clock: Callable[[], float] = time.time) -> None:
        self.path, self.by, self.clock = path, by, clock
        self.follower = Follower(path, sparing=True)
        self.groups: dict[str, Hashable] = {}
        self.spared: set[str] = set()
        self.arrivals: dict[str, deque[tuple[float, int]]] = {}
        self.timelines: dict[str, tuple[int, Timeline | None]] = {}
        self.told: set[tuple[str, str]] = set()
        self.alerts: list[str] = []
        self.is_first = True

    def look(self) -> Watched:
        """The folder as it stands now."""
        runs, now = self.follower.look(), self.clock()
        cohorts: dict[Hashable, list[Followed]] = {}
        for run in runs:
            if run.name not in self.groups:
                self.groups[run.name] = _key(run.spec, self.by)
            cohorts.setdefault(self.groups[run.name], []).append(run)
        self._read_some(list(cohorts.values()))
        for run in runs:
            self._note_arrival(run)
            self._note_events(run, now)
        self.is_first = False
        lines = tuple(self._line(members, now) for members in cohorts.values())
        return Watched(str(self.path), COMMON[self.by], lines, tuple(self.alerts))

    def _read_some(self, cohorts: Sequence[Sequence[Followed]]) -> None:
        """Of newly found runs that have ended, read the logs of some: of each cohort as many, evenly chosen."""
        new = [[run for run in runs if not run.is_read and run.name not in self.spared] for runs in cohorts]
        new = [runs for runs in new if runs]
        self.spared |= {run.name for runs in new for run in runs}
        if sum(map(len, new)) > MOST_LOGS:
            new = [_evenly(runs, max(1, MOST_LOGS // len(new))) for runs in new][:MOST_LOGS]
        self.follower.read(run for runs in new for run in runs)

    def _note_arrival(self, run: Followed) -> None:
        seen = self.arrivals.setdefault(run.name, deque())
        if not run.is_read:  # its step is not known, so nothing has arrived
            return
        if seen and (run.written is None or run.step < seen[-1][1]):  # it was rewound, and goes the same way again
            seen.clear()
        if run.written is not None and (not seen or run.step > seen[-1][1]):
            seen.append((run.written, run.step))
        while len(seen) > 2 and seen[-1][0] - seen[0][0] > WINDOW:
            seen.popleft()

    def _note_events(self, run: Followed, now: float) -> None:
        known = self.timelines.get(run.name)
        was_unread = known is None or known[1] is None
        is_old = self.is_first or (was_unread and run.name in self.spared)  # it had ended before
        if known is None or known[0] != len(run.rows):
            self.timelines[run.name] = (len(run.rows), run.timeline())
        for event, sentence in _events(run, self.timelines[run.name][1]):
            if (run.name, event) not in self.told:  # once, even if the run is rewound and does it again
                self.told.add((run.name, event))
                if not is_old:
                    self.alerts.append(f"{time.strftime('%H:%M:%S', time.localtime(now))}  {run.name} {sentence}")

    def _rate(self, run: Followed, now: float) -> float:
        """Steps per second: of the last minute, or since it began if only one look has been taken."""
        if run.outcome is not None or run.written is None or now - run.written > PATIENCE:
            return 0.0
        seen = self.arrivals[run.name]
        (start, first), (end, last) = (seen[0], seen[-1]) if len(seen) > 1 else ((run.began, run.first), seen[-1])
        return (last - first) / (end - start) if end > start else 0.0

    def _line(self, runs: Sequence[Followed], now: float) -> Line:
        rate = sum(self._rate(run, now) for run in runs) or None
        left, written = sum(run.steps_left for run in runs), [run.written for run in runs if run.written]
        total = sum(run.spec.training.steps - run.first for run in runs)
        finished = sum(run.outcome is not None for run in runs)
        last = max(run.spec.training.steps for run in runs)
        return Line(
            label=_label([run.spec for run in runs], self.by),
            runs=len(runs),
            finished=finished,
            synchronized=self._synchronized(runs),
            grokked=sum(self._has_grokked(run) for run in runs),
            progress=1 - left / total,
            validation=_curve([run.series("validation_accuracy") for run in runs], last),
            fsd=_curve([run.series("fsd") for run in runs], last),
            rate=rate,
            left=left / rate if rate else None,
            quiet=None if finished == len(runs) or not written else max(now - max(written), 0.0),
            unread=sum(not run.is_read for run in runs),
        )

    def _has_grokked(self, run: Followed) -> bool:
        timeline = self.timelines[run.name][1]
        if timeline is None:  # nothing was read of it, and its outcome tells
            return (run.outcome or {}).get("grokked") is not None
        return timeline.grokked is not None

    def _synchronized(self, runs: Sequence[Followed]) -> int | None:
        """How many have; those that were not read count as the share of those that had ended and were."""
        found = [(run, timeline.sync.step is not None) for run in runs if (timeline := self.timelines[run.name][1])]
        unread, ended = sum(not run.is_read for run in runs), [did for run, did in found if run.outcome is not None]
        if unread and not ended:
            return None
        return sum(did for _, did in found) + (round(unread * fmean(ended)) if unread else 0)


def _evenly(runs: Sequence[Followed], count: int) -> list[Followed]:
    """So many of them, from the first to the last; all if there are no more."""
    if len(runs) <= count:
        return list(runs)
    return [runs[i * len(runs) // count] for i in range(count)]


def _events(run: Followed, timeline: Timeline | None) -> Iterable[tuple[str, str]]:
    """What is worth a word, each with the name by which it is told once."""
    if timeline is None:
        return
    synced, grokked = timeline.sync.step, timeline.grokked
    if synced is not None and (grokked is None or synced < grokked):
        doubts = "".join(f", {flag}" for flag in timeline.sync.flags)
        fsd = dict(run.series("fsd"))[synced]
        yield "sync", f"synchronised at step {synced:,} (FSD {fsd:.2f}{doubts})"
    if grokked is not None:
        if synced is None or synced > grokked:
            yield "grok", f"grokked at step {grokked:,}, not synchronised before"
        else:
            yield "grok", f"grokked at step {grokked:,}, {grokked - synced:,} steps after it synchronised"
    if run.outcome is not None and run.outcome["outcome"] in ("diverged", "unstable", "unstable_after"):
        yield "fall", f"ended: {run.outcome['outcome'].replace('_', ' ')}"


def _key(spec: RunSpec, by: By) -> Hashable:
    if by == "seeds":
        fork = spec.fork and replace(spec.fork, parent="0" * 16)  # of another seed, another parent
        return replace(spec, seeds=Seeds(), fork=fork)
    try:
        task = named_task(spec.task)
        kind: Hashable = (task.sums is None, padded_size(task.symbols))
    except InputError:  # a user's table that has moved
        kind = spec.task
    held = spec.fork is not None and spec.fork.norm != "free"
    dropout, clipping = spec.training.dropout > 0, spec.training.clip_norm is not None
    stack = (spec.architecture, kind, spec.training.batch_size, spec.precision, dropout, clipping, held)
    return (stack, spec.task) if by == "task" else stack


def _label(specs: Sequence[RunSpec], by: By) -> str:
    """The tasks, the size of the model, λ and whether they are forks: what a person tells cohorts apart by."""
    tasks = list(dict.fromkeys(spec.task.rpartition("/")[2] for spec in specs))
    decays = sorted({spec.training.weight_decay for spec in specs})
    model = specs[0].architecture
    words = tasks[0] if len(tasks) == 1 else f"{tasks[0]} and {len(tasks) - 1} more"
    words += f" λ={'–'.join(f'{decay:g}' for decay in dict.fromkeys((decays[0], decays[-1])))} ({len(specs):,})"
    forked = {spec.fork.step for spec in specs if spec.fork is not None}
    if forked and by == "seeds":
        words += f" from {min(forked):,}"
    return f"{words} {model.layers}×{model.width}"


def _curve(series: Sequence[Sequence[tuple[int, float]]], last: int) -> tuple[float, ...]:
    """The mean over runs in each of some equal parts of the way; a part without a look repeats the one before."""
    found: list[list[float]] = [[] for _ in range(BINS)]
    for run in series:
        for step, value in run:
            if not isnan(value):
                found[min(step * BINS // last, BINS - 1)].append(value)
    means = [fmean(values) if values else nan for values in found]
    reached = max((place for place, values in enumerate(found) if values), default=-1)
    for place in range(1, reached):
        means[place] = means[place - 1] if isnan(means[place]) else means[place]
    return tuple(means)


def _can_show(letters: str) -> bool:
    try:
        letters.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
