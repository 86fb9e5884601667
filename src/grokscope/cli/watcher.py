"""What `grokscope watch` knows of a folder of runs: how far they are, how fast, and what has just happened."""

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from statistics import fmean
from typing import Literal

from grokscope.cli.ahead import Forecasts
from grokscope.cli.damage import describe_damage
from grokscope.cli.frames import Line, Watched
from grokscope.jobs import stack_key
from grokscope.runs.following import FollowedRun, Follower
from grokscope.runs.pace import Pace
from grokscope.specs import RunSpec, Seeds
from grokscope.timeline import Timeline

__all__ = ["Grouping", "Watcher"]

Grouping = Literal["stack", "task", "seeds"]
BINS = 24
MOST_LOGS = 400  # of runs that had ended before they were first seen: more would only take longer
COMMON: dict[Grouping, str] = {
    "stack": "runs that can be trained as one stack, with their number",
    "task": "runs of one task that can be trained as one stack, with their number",
    "seeds": "runs that differ in their seeds only, with their number",
}


class Watcher:
    """Reads a folder again and again, and remembers what it needs to know speeds and what is new."""

    def __init__(self, path: Path, by: Grouping = "stack", clock: Callable[[], float] = time.time) -> None:
        self.path, self.by, self.clock = path, by, clock
        self.follower = Follower(path, sparing=True)
        self.groups: dict[str, Hashable] = {}
        self.spared: set[str] = set()
        self.pace, self.forecasts = Pace(), Forecasts(_curve)
        self.timelines: dict[str, tuple[int, Timeline | None]] = {}
        self.announced: set[tuple[str, str]] = set()
        self.alerts: list[str] = []
        self.is_first = True

    def snapshot(self) -> Watched:
        """The folder as it is now."""
        runs, now = self.follower.update(), self.clock()
        groups: dict[Hashable, list[FollowedRun]] = {}
        for run in runs:
            if run.name not in self.groups:
                self.groups[run.name] = _key(run.spec, self.by)
            groups.setdefault(self.groups[run.name], []).append(run)
        self._read_some(list(groups.values()))
        for run in runs:
            self.pace.note(run)
            self._note_events(run, now)
        self.is_first = False
        lines = tuple(self._line(members, now) for members in groups.values())
        damaged = tuple(describe_damage(self.follower.damaged, self.path).splitlines())
        return Watched(str(self.path), COMMON[self.by], lines, tuple(self.alerts), damaged)

    def _read_some(self, groups: Sequence[Sequence[FollowedRun]]) -> None:
        """Read the logs of some newly found runs that have ended: equally many of each group, evenly chosen."""
        new = [[run for run in runs if not run.is_read and run.name not in self.spared] for runs in groups]
        new = [runs for runs in new if runs]
        self.spared |= {run.name for runs in new for run in runs}
        if sum(map(len, new)) > MOST_LOGS:
            new = [_evenly(runs, max(1, MOST_LOGS // len(new))) for runs in new][:MOST_LOGS]
        self.follower.read(run for runs in new for run in runs)

    def _note_events(self, run: FollowedRun, now: float) -> None:
        known = self.timelines.get(run.name)
        was_unread = known is None or known[1] is None
        is_old = self.is_first or (was_unread and run.name in self.spared)  # it had ended before
        if known is None or known[0] != len(run.rows):
            self.timelines[run.name] = (len(run.rows), run.timeline)
        for event, sentence in _events(run, self.timelines[run.name][1]):
            if (run.name, event) not in self.announced:  # once, even if the run is rewound and does it again
                self.announced.add((run.name, event))
                if not is_old:
                    self.alerts.append(f"{time.strftime('%H:%M:%S', time.localtime(now))}  {run.name} {sentence}")

    def _line(self, runs: Sequence[FollowedRun], now: float) -> Line:
        progress, written = self.pace.progress(runs, now), [run.written for run in runs if run.written]
        finished = sum(run.is_finished for run in runs)
        last = max(run.spec.training.steps for run in runs)
        return Line(
            label=_label([run.spec for run in runs], self.by),
            runs=len(runs),
            finished=finished,
            synchronized=self._synchronized(runs),
            grokked=sum(self._has_grokked(run) for run in runs),
            progress=progress.share,
            validation=_curve([run.series("validation_accuracy") for run in runs], last),
            fsd=_curve([run.series("fsd") for run in runs], last),
            rate=progress.rate,
            left=progress.seconds_left,
            quiet=None if finished == len(runs) or not written else max(now - max(written), 0.0),
            unread=sum(not run.is_read for run in runs),
            ahead=self.forecasts.of_group(runs),
        )

    def _has_grokked(self, run: FollowedRun) -> bool:
        known = self.timelines[run.name][1] or run.record.outcome  # or nothing was read of it but its outcome
        return known.grokked is not None

    def _synchronized(self, runs: Sequence[FollowedRun]) -> int | None:
        """How many have synchronised; unread runs count by the share of those that had ended and were read."""
        found = [(run, timeline.sync.step is not None) for run in runs if (timeline := self.timelines[run.name][1])]
        unread, ended = sum(not run.is_read for run in runs), [did for run, did in found if run.is_finished]
        if unread and not ended:
            return None
        return sum(did for _, did in found) + (round(unread * fmean(ended)) if unread else 0)


def _evenly(runs: Sequence[FollowedRun], count: int) -> list[FollowedRun]:
    """At most this many of them, evenly from the first to the last."""
    return [runs[i * len(runs) // count] for i in range(count)] if len(runs) > count else [*runs]


def _events(run: FollowedRun, timeline: Timeline | None) -> Iterable[tuple[str, str]]:
    """What is announced, each with a name by which it is announced once."""
    if timeline is None:
        return
    synced, grokked = timeline.sync.step, timeline.grokked
    if synced is not None and (grokked is None or synced < grokked):
        doubts = "".join(f", {flag}" for flag in timeline.sync.flags)
        fsd = dict(run.series("fsd"))[synced]
        yield "sync", f"synchronised at step {synced:,} (FSD {fsd:.2f}{doubts})"
    if grokked is not None:
        is_before = synced is not None and synced <= grokked
        after = f"{grokked - (synced or 0):,} steps after it synchronised" if is_before else "not synchronised before"
        yield "grok", f"grokked at step {grokked:,}, {after}"
    if run.record.outcome.outcome in ("diverged", "unstable", "unstable_after"):
        yield "fall", f"ended: {run.record.outcome.ending}"


def _key(spec: RunSpec, by: Grouping) -> Hashable:
    if by == "seeds":
        fork = spec.fork and replace(spec.fork, parent="0" * 16)  # of another seed, another parent
        return replace(spec, seeds=Seeds(), fork=fork)
    return stack_key(spec), spec.model, spec.task if by == "task" else None


def _label(specs: Sequence[RunSpec], by: Grouping) -> str:
    """The tasks, λ, the number of runs, where they were forked and the size of the model."""
    tasks = list(dict.fromkeys(spec.task.rpartition("/")[2].partition("#")[0] for spec in specs))
    decays = sorted({decay for spec in specs if (decay := spec.training.weight_decay) is not None})
    model = specs[0].architecture
    words = tasks[0] if len(tasks) == 1 else f"{tasks[0]} and {len(tasks) - 1} more"
    words += (
        f" λ={'–'.join(f'{decay:g}' for decay in dict.fromkeys((*decays[:1], *decays[-1:]))) or '?'} ({len(specs):,})"
    )
    forked = {spec.fork.step for spec in specs if spec.fork is not None}
    if forked and by == "seeds":
        words += f" from {min(forked):,}"
    return f"{words} {model.layers}×{model.mlp_width if model.kind == 'mlp' else model.width}"


def _curve(series: Sequence[Sequence[tuple[int, float]]], last: int) -> tuple[float, ...]:
    """The mean over runs in equal parts of the steps; a part without an evaluation repeats the one before."""
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
