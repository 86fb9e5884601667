"""A folder of runs while others write it: each call reads what was appended since the last one.

A log that was rewound, replaced or shortened is read anew; a line that is still being written waits for its end. The
follower holds no lock and writes nothing but the index that lists of many runs use, so it cannot disturb a writer.
"""

import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import DamagedError, named, open_file
from grokscope.runs.index import PAYS_FROM, Stamp, stamp_files
from grokscope.runs.logs import Row, columns_from, decode_rows
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.outcome_file import LARGEST_LOG
from grokscope.runs.records import RunRecord
from grokscope.runs.run_folder import RunFolder
from grokscope.runs.runs import Runs
from grokscope.runs.store import Store
from grokscope.specs import RunSpec
from grokscope.timeline import Timeline

__all__ = ["FollowedRun", "Follower"]


@dataclass
class FollowedRun:
    """One run as it stood when it was last read."""

    name: str
    """Its folder's name."""
    record: RunRecord
    """All that is known of it."""
    began: float
    """When its folder was made, in seconds since 1970."""
    written: float | None = None
    """When its log was last written, in seconds since 1970; None before its first evaluation."""
    rows: dict[int, Row] = field(default_factory=dict)
    """Evaluations by step; of a step written twice, the last."""
    offset: int = 0
    """How many bytes of the log have been read."""
    tail: bytes = b""
    """The last line of those: where another stands in its place, the log is another one."""
    stamp: Stamp | None = None
    """What its outcome's file looked like, once it had ended."""
    is_read: bool = True
    """Whether its log was read; a sparing follower reads that of a run that has ended only when it is asked to."""

    @property
    def spec(self) -> RunSpec:
        """What it is."""
        return self.record.spec

    @property
    def is_finished(self) -> bool:
        """Whether it has ended."""
        return self.record.outcome.is_finished

    @property
    def first(self) -> int:
        """The step it begins at: 0, or that of its fork."""
        return self.spec.fork.step if self.spec.fork else 0

    @property
    def step(self) -> int:
        """The step of its last evaluation."""
        return int(max(self.record.evaluations.get("step", ()), default=self.first))

    @property
    def steps_left(self) -> int:
        """Steps until it ends, if it does not end early."""
        return 0 if self.is_finished else self.spec.training.steps - self.step

    @property
    def timeline(self) -> Timeline | None:
        """Its events so far; None before its first evaluation."""
        return self.record.timeline if self.record.evaluations else None

    def series(self, column: str) -> list[tuple[int, float]]:
        """(step, value) in order; what is undefined is NaN."""
        steps = [int(step) for step in self.record.evaluations.get("step", ())]
        return list(zip(steps, self.record.evaluations.get(column, [nan] * len(steps)), strict=True))


class Follower:
    """Reads a folder again and again, all its runs or only those with some names.

    A sparing one, where many new runs are found at once, takes those that have ended from the index that lists use, and
    leaves their logs unread until `read` is called.
    """

    def __init__(self, path: Path | str, only: Collection[str] | None = None, sparing: bool = False) -> None:
        self.store, self.only = Store(path), None if only is None else frozenset(only)
        self.sparing = sparing
        self.runs: dict[str, FollowedRun] = {}
        self.damaged: dict[str, str] = {}
        """The runs that were left out of the last update, with what is wrong."""

    def update(self) -> Sequence[FollowedRun]:
        """Every run that is not damaged as it stands now, in the order of their names."""
        everyone = self.store.names()
        names = [name for name in everyone if self.only is None or name in self.only]
        for gone in self.runs.keys() - set(names):
            del self.runs[gone]
        new = set(names) - self.runs.keys()
        if self.sparing and len(new) >= PAYS_FROM:
            self.runs |= {run.name: run for run in self._finished(everyone) if run.name in new}
        self.damaged = {}
        for name in names:
            try:
                if name not in self.runs:
                    self.runs[name] = self._find(name)
                self._refresh(self.runs[name])
            except (InputError, OSError) as error:
                self.damaged[name] = str(error)
        return [self.runs[name] for name in names if name not in self.damaged]

    def read(self, runs: Iterable[FollowedRun]) -> None:
        """Read the logs of runs whose logs were spared."""
        for run in runs:
            run.stamp = None
            with suppress(InputError):  # the next update names it
                self._refresh(run)

    def _finished(self, names: Sequence[str]) -> Iterable[FollowedRun]:
        """The runs that have ended, by the index; nothing of them is read that the index knows."""
        folder = self.store.path
        stamps = [stamp_files(f"{folder}/{name}", ("spec.json", "outcome.json", "log.jsonl")) for name in names]
        rows = Runs(folder).facts(complete=False, names=names)
        for name, (made, ended, log), facts in zip(names, stamps, rows, strict=True):
            if facts["problem"] is None and facts["outcome"] != "unfinished" and made is not None:
                written = None if log is None else log[2] / 1e9
                record = RunRecord.from_summary(facts)
                yield FollowedRun(name, record, made[2] / 1e9, written, stamp=[ended], is_read=False)

    def _find(self, name: str) -> FollowedRun:
        """A run seen for the first time."""
        folder = self.store.folder(name)
        began = (folder.path / "spec.json").stat().st_mtime
        return FollowedRun(name, RunRecord(folder.spec, RunOutcome(), {}, {}, folder.made_for), began)

    def _refresh(self, run: FollowedRun) -> None:
        folder = RunFolder(self.store.path / run.name, run.spec)
        now = stamp_files(str(folder.path), ("outcome.json",))
        if run.is_finished and run.stamp == now:  # it has ended, and still has
            return
        # The outcome is read first: a run that had ended by then wrote its last evaluation before.
        sealed = folder.sealed_outcome()
        path = folder.path / "log.jsonl"
        if has_ended := sealed.outcome.is_finished:  # its log is read anew, and has to be the one that it ended with
            run.rows, run.offset, run.tail = {row["step"]: row for row in folder.log_with(sealed)}, 0, b""
            run.written = path.stat().st_mtime if run.rows else None
        run.stamp, run.is_read = now, True
        if has_ended or _read(run, path) or sealed.outcome != run.record.outcome:
            evaluations = columns_from(run.rows[step] for step in sorted(run.rows))
            run.record = replace(run.record, outcome=sealed.outcome, evaluations=evaluations)


def _read(run: FollowedRun, path: Path) -> bool:
    """Add the evaluations that were appended to a log; whether anything changed."""
    before = len(run.rows)
    try:
        with os.fdopen(open_file(path), "rb") as file:
            if (size := os.fstat(file.fileno()).st_size) > LARGEST_LOG:
                raise DamagedError(f"{named(path)} has {size:,} bytes, and at most {LARGEST_LOG:,} are read")
            file.seek(run.offset - len(run.tail))
            content = file.read()
            if not content.startswith(run.tail):
                run.rows, run.offset, run.tail = {}, 0, b""
                file.seek(0)
                content = file.read()
            content = content[len(run.tail) :]
            whole = content[: content.rfind(b"\n") + 1]  # a last line without an end waits for it
            rows, _ = decode_rows(whole, run.spec.identity)
            run.rows |= {row["step"]: row for row in rows}
            if whole:
                run.offset, run.tail = run.offset + len(whole), whole.splitlines(keepends=True)[-1]
            run.written = os.fstat(file.fileno()).st_mtime if run.rows else None
            return bool(rows) or len(run.rows) != before
    except OSError:  # it has no log yet, or was removed meanwhile
        run.rows, run.offset, run.tail, run.written = {}, 0, b"", None
        return before > 0
