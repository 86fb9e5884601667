"""A folder of runs while others write it: each look reads what was appended since the last one.

A log that was rewound, replaced or shortened is read anew; a line that is still being written waits for its end. The
follower holds no lock and writes nothing but the index that lists of many runs use, so it cannot disturb who does.
"""

import json
import os
import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Any

from grokscope.errors import InputError
from grokscope.runs.index import PAYS_FROM, Stamp, indexed, stamp
from grokscope.runs.runs import SUMMARIZED, Run
from grokscope.runs.store import Store
from grokscope.specs import ReadingSpec, RunSpec
from grokscope.tasks import named_task
from grokscope.timeline import Timeline, timeline_of

__all__ = ["Followed", "Follower", "sync_threshold"]

Rows = dict[int, dict[str, Any]]


@dataclass
class Followed:
    """One run as it stood at the last look."""

    name: str
    """Its folder's name."""
    spec: RunSpec
    """What it is."""
    began: float
    """When its folder was made, in seconds since 1970."""
    rows: Rows = field(default_factory=dict)
    """Whole records by step; of a step written twice, the last."""
    written: float | None = None
    """When its log was last written, in seconds since 1970; None before its first record."""
    outcome: dict[str, Any] | None = None
    """How it ended; None while it has not."""
    offset: int = 0
    """How many bytes of the log have been read."""
    tail: bytes = b""
    """The last line of those: where another stands in its place, the log is another one."""
    stamp: Stamp | None = None
    """What its outcome's file looked like, once it had ended."""
    is_read: bool = True
    """Whether its log was read; a sparing follower reads that of a run that has ended only when it is asked to."""

    @property
    def first(self) -> int:
        """The step it begins at: 0, or that of its fork."""
        return self.spec.fork.step if self.spec.fork else 0

    @property
    def step(self) -> int:
        """Where it is."""
        return max(self.rows, default=self.first)

    @property
    def steps_left(self) -> int:
        """Steps until it ends, if it does not end early."""
        return 0 if self.outcome is not None else self.spec.training.steps - self.step

    def series(self, column: str) -> list[tuple[int, float]]:
        """(step, value) in order; what is undefined is NaN."""
        return [(step, _number(self.rows[step].get(column))) for step in sorted(self.rows)]

    def timeline(self) -> Timeline | None:
        """Its events so far; None before its first record."""
        if not self.rows:
            return None
        names = ("train_accuracy", "validation_accuracy", "fsd", "norm")
        columns: dict[str, Any] = {"step": sorted(self.rows)}
        columns |= {name: [value for _, value in self.series(name)] for name in names}
        failed = (self.outcome or {}).get("failed_at")
        return timeline_of(columns, failed_at=failed, sync_at=sync_threshold(self.spec))


class Follower:
    """Looks at a folder again and again, at all its runs or only at those with some names.

    A sparing one, where many new runs are found at once, takes those that have ended from the index that lists use, and
    leaves their logs unread until `read` is called.
    """

    def __init__(self, path: Path | str, only: Collection[str] | None = None, sparing: bool = False) -> None:
        self.store, self.only = Store(path), None if only is None else frozenset(only)
        self.sparing = sparing
        self.runs: dict[str, Followed] = {}

    def look(self) -> Sequence[Followed]:
        """Every run as it stands now, in the order of their names."""
        everyone = self.store.names()
        names = [name for name in everyone if self.only is None or name in self.only]
        for gone in self.runs.keys() - set(names):
            del self.runs[gone]
        new = set(names) - self.runs.keys()
        if self.sparing and len(new) >= PAYS_FROM:
            self.runs |= {run.name: run for run in self._ended(everyone) if run.name in new}
        for name in names:
            if name not in self.runs and (found := self._found(name)):
                self.runs[name] = found
            if name in self.runs:
                self._refresh(self.runs[name])
        return [self.runs[name] for name in names if name in self.runs]

    def read(self, runs: Iterable[Followed]) -> None:
        """Read the logs of runs whose logs were spared."""
        for run in runs:
            run.stamp = None
            self._refresh(run)

    def _ended(self, names: Sequence[str]) -> Iterable[Followed]:
        """The runs that have ended, by the index; nothing of them is read that the index knows."""
        folder = self.store.path
        stamps = [stamp(f"{folder}/{name}", ("spec.json", "outcome.json", "log.jsonl")) for name in names]
        for name, (made, ended, log), facts in zip(
            names, stamps, indexed(folder, names, SUMMARIZED, self._facts), strict=True
        ):
            if facts is not None and facts["outcome"] != "unfinished" and made is not None:
                spec, written = RunSpec.from_dict(facts["spec"]), None if log is None else log[2] / 1e9
                yield Followed(name, spec, made[2] / 1e9, written=written, outcome=facts, stamp=[ended], is_read=False)

    def _facts(self, name: str) -> dict[str, Any] | None:
        """What an index keeps of a run; None if that cannot be read, which may pass."""
        try:
            return Run(self.store.folder(name)).facts()
        except (OSError, InputError):
            return None

    def _found(self, name: str) -> Followed | None:
        """A run seen for the first time; None if its spec cannot be read, which may pass."""
        try:
            began = (self.store.path / name / "spec.json").stat().st_mtime
            return Followed(name, self.store.folder(name).spec, began)
        except (OSError, InputError):
            return None

    def _refresh(self, run: Followed) -> None:
        folder = self.store.path / run.name
        now = stamp(str(folder), ("outcome.json",))
        if run.outcome is not None and run.stamp == now:  # it has ended, and still has
            return
        # The outcome is read first: a run that had ended by then wrote its last record before.
        run.outcome, run.stamp, run.is_read = _outcome(folder / "outcome.json"), now, True
        try:
            with (folder / "log.jsonl").open("rb") as file:
                file.seek(run.offset - len(run.tail))
                content = file.read()
                if not content.startswith(run.tail):
                    run.rows, run.offset, run.tail = {}, 0, b""
                    file.seek(0)
                    content = file.read()
                _read(run, content[len(run.tail) :])
                run.written = os.fstat(file.fileno()).st_mtime if run.rows else None
        except OSError:  # it has no log yet, or was removed while we looked
            run.rows, run.offset, run.tail, run.written = {}, 0, b"", None


def sync_threshold(spec: RunSpec) -> float:
    """The FSD that counts as synchronised: 0.80, or 0.50 of a group's FSD_gen.

    >>> sync_threshold(RunSpec(task="S5"))
    0.5
    """
    try:
        is_group = named_task(spec.task).sums is None
    except InputError:  # a user's table that has moved: only groups have tables
        is_group = True
    return ReadingSpec().sync_at(is_group)


def _read(run: Followed, content: bytes) -> None:
    """Add the whole records of what was appended; a last line without an end waits for it."""
    whole = content[: content.rfind(b"\n") + 1]
    lines = whole.splitlines(keepends=True)
    for line in lines:
        text, _, checksum = line.rstrip(b"\n").rpartition(b"\t")
        if text and checksum == f"{zlib.crc32(text):08x}".encode():
            row = json.loads(text)
            run.rows[row["step"]] = row
    if lines:
        run.offset, run.tail = run.offset + len(whole), lines[-1]


def _outcome(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "outcome" in found else None


def _number(value: Any) -> float:
    return nan if value is None else float(value)
