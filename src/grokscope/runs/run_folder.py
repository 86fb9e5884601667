"""The folder of one run: what it is, what was measured, and where it can be continued.

DIR/add_mod97_s42-0123456789abcdef/
format               the version of all that follows
spec.json            what was run
made_for.jsonl       one line per study that the run was trained for, where there are any; append-only
log.jsonl            one line per evaluation, each with a checksum that is this run's alone; append-only
measures.jsonl       the same for what was measured at the checkpoints while training, where that was asked for
weights-00000500.safetensors, state-00001000.safetensors, manifest.json
passing.json         steps of the states that only serve to continue; gone once the run has ended
outcome.json         how it ended and where it was made, once it has, with the digests of its logs and its manifest
lock                 who is writing

The folder's name ends in the content hash of the spec. Nothing is believed of a folder whose spec has another, and of
what lies in it nothing that is no regular file.

Listing runs must not wait for torch, so what handles tensors is imported where it is used.
"""

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from grokscope.errors import InputError
from grokscope.files import DamagedError, discard, disk_error, named, open_file, read_file, read_json, write_atomically
from grokscope.runs.locks import hold_lock, lock_owner
from grokscope.runs.logs import Row, columns_from, decode_memberships, decode_rows, encode_row
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.outcome_file import LARGEST_LOG, OUTCOME, SealedOutcome, encode_outcome, read_outcome
from grokscope.runs.records import RunRecord, unite
from grokscope.runs.spec_file import UNBOUND, format_of
from grokscope.specs import Membership, RunSpec

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["CHECKPOINT", "LOGS", "MADE_FOR", "Keep", "RunFolder", "run_name"]

Keep = Literal["weights", "state", "forks", "none"]
Log = Literal["log", "measures"]
LOGS: tuple[Log, ...] = ("log", "measures")
MADE_FOR = "made_for.jsonl"
PASSING = "passing.json"
GENERATIONS = 2
CHECKPOINT = re.compile(r"(weights|state)-([0-9]{8})\.safetensors")
FILES = (
    "format",
    "spec.json",
    MADE_FOR,
    *(f"{which}.jsonl" for which in LOGS),
    "manifest.json",
    PASSING,
    OUTCOME,
    "lock",
)


def run_name(spec: RunSpec) -> str:
    """The run's folder: a word for people, and its content hash.

    >>> run_name(RunSpec().with_seed(42)).rpartition("-")[0]
    'add_mod97_s42'
    """
    seeds = [spec.seeds.split, spec.seeds.initialization, spec.seeds.data_order]
    numbers = ".".join(map(str, seeds[:1] if len(set(seeds)) == 1 else seeds))
    word = re.sub(r"[^A-Za-z0-9_+-]+", "-", spec.task.rpartition("/")[2].partition("#")[0])[:40]
    return f"{word}_s{numbers}-{spec.content_hash}"


@dataclass(frozen=True)
class RunFolder:
    """One run on the disk."""

    path: Path
    """Its folder."""
    spec: RunSpec
    """What it is."""

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.name

    @property
    def outcome(self) -> RunOutcome:
        """How it ended, and its provenance; `unfinished` while it has not."""
        return self.sealed_outcome().outcome

    def sealed_outcome(self) -> SealedOutcome:
        """How it ended, and with which logs and manifest."""
        return read_outcome(self.path, self.spec.identity, lambda: format_of(self.path) == UNBOUND)

    def finish(self, outcome: RunOutcome) -> None:
        """Record how it ended, once all that says so is on the disk in its last form."""
        self._drop_passing()
        self._flush_log()
        write_atomically(self.path / OUTCOME, encode_outcome(outcome, self.path, self.spec.identity))

    def reopen(self) -> None:
        """Let it go on after its end: its outcome is of what it was then."""
        discard(self.path / OUTCOME)

    @property
    def made_for(self) -> tuple[Membership, ...]:
        """The studies that it was trained for."""
        return unite(decode_memberships(self._bytes_of(MADE_FOR), self.spec.identity)[0])

    def add_memberships(self, made_for: Iterable[Membership]) -> None:
        """Note the studies that it is trained for, each once; no lock is needed, for lines are only appended."""
        new = sorted({*made_for} - {*self.made_for})
        if new:
            begins = b"" if self._bytes_of(MADE_FOR)[-1:] in (b"", b"\n") else b"\n"  # after a torn line, on its own
            lines = (encode_row(one.to_dict(), self.spec.identity) for one in new)
            self._append(MADE_FOR, begins + b"".join(lines))

    def record(self, with_logs: bool = True) -> RunRecord:
        """All that is known of it besides its weights, so far; without its logs nothing but small files is read."""
        # The outcome is read first: a run that had ended by then wrote its last evaluation before.
        sealed = self.sealed_outcome()
        known = RunRecord(self.spec, sealed.outcome, {}, {}, self.made_for)
        return self._add_logs(known, sealed) if with_logs else known

    def add_logs(self, record: RunRecord) -> RunRecord:
        """The same record with what the logs say now."""
        return self._add_logs(record, self.sealed_outcome())

    def _add_logs(self, record: RunRecord, sealed: SealedOutcome) -> RunRecord:
        evaluations, checkpoints = (columns_from(self.log_with(sealed, which)) for which in LOGS)
        return replace(record, evaluations=evaluations, checkpoints=checkpoints)

    def tidy(self) -> None:
        """Remove what an earlier version left when it was killed as its run had just ended."""
        if not self.sealed_outcome().is_bound:
            self._drop_passing()

    def _drop_passing(self) -> None:
        """Remove the states that only served to continue: what is left does not show where the run was interrupted."""
        if (self.path / PASSING).exists():
            from grokscope.training.checkpoint import drop_tensors

            drop_tensors(self.path, [_state_name(step) for step in self._passing()])
            (self.path / PASSING).unlink()

    def log(self, which: Log = "log") -> list[Row]:
        """Every whole row, by step; of repeated steps the last counts. An ended run's log has to be that of its end."""
        return self.log_with(self.sealed_outcome(), which)

    def log_with(self, sealed: SealedOutcome, which: Log = "log") -> list[Row]:
        """Every whole row of a log, which has to be the one that this outcome names."""
        path = self.path / f"{which}.jsonl"
        content = self._bytes_of(path.name)
        sealed.check(path, content)
        return self._by_step(content)

    def check_log(self, sealed: SealedOutcome, which: Log = "log") -> None:
        """Reject a log that is not the one with which the run ended."""
        path = self.path / f"{which}.jsonl"
        sealed.check(path, self._bytes_of(path.name))

    def whole_rows(self, which: Log = "log") -> tuple[list[Row], int]:
        """The rows of a log that are whole, by step, whatever its run ended with, and how many lines are not."""
        content = self._bytes_of(f"{which}.jsonl")
        return self._by_step(content), self._decoded(content)[1]

    def _by_step(self, content: bytes) -> list[Row]:
        rows = {row["step"]: row for row in self._decoded(content)[0]}
        return [rows[step] for step in sorted(rows)]

    def _decoded(self, content: bytes) -> tuple[list[Row], int]:
        return decode_rows(content, self.spec.identity)

    def append(self, row: Mapping[str, Any], which: Log = "log") -> None:
        """Add one row."""
        self._append(f"{which}.jsonl", encode_row(row, self.spec.identity))

    def rewind(self, step: int) -> None:
        """Drop rows after a step (and a torn one), so that continuing from there writes the same bytes again."""
        for which in LOGS:
            path = self.path / f"{which}.jsonl"
            if which == "log" or path.exists():
                kept = [row for row in self._decoded(self._bytes_of(path.name))[0] if row["step"] <= step]
                write_atomically(path, b"".join(encode_row(row, self.spec.identity) for row in kept))

    def checkpoints(self, kind: Literal["weights", "state"]) -> dict[int, Path]:
        """Stored checkpoints of a kind, by step. A full state holds weights too."""
        matches = filter(None, (CHECKPOINT.fullmatch(path.name) for path in sorted(self.path.iterdir())))
        # Weights come after states, and take their place.
        found = {int(match[2]): self.path / match[0] for match in matches if kind in (match[1], "weights")}
        return dict(sorted(found.items()))

    def would_save(self, step: int, keep: Keep, is_stop: bool = False) -> bool:
        """Whether anything of this step is stored; else its tensors need not be read from the device."""
        return keep != "none" and (keep != "forks" or is_stop or step in self.spec.checkpoints.at)

    def save(
        self, step: int, tensors: "dict[str, Tensor]", keep: Keep, is_fork_point: bool, is_stop: bool = False
    ) -> None:
        """Store a full state; of those that only serve to continue, two generations stay until the run has ended.

        `weights` (the default) keeps weights at the checkpoints' cadence and full states where a fork may begin;
        `state` keeps full states at the cadence; `forks` keeps them at the steps that the cadence lists, and to
        continue after a stop; `none` stores nothing.
        """
        if not self.would_save(step, keep, is_stop):
            return
        is_listed = step in self.spec.checkpoints.at
        from grokscope.training.checkpoint import save_tensors

        self._flush_log()
        scheduled = is_fork_point or step in self.spec.checkpoints.steps(self.spec.training.steps)
        if keep == "weights" and scheduled:
            only = {n: t for n, t in tensors.items() if not n.startswith(("first.", "second.", "slow.", "recent"))}
            save_tensors(self.path / f"weights-{step:08d}.safetensors", only, self.spec.identity)
        stays = is_listed or (keep != "forks" and is_fork_point) or (keep == "state" and scheduled)
        passing = sorted({*self._passing()} - {step} if stays else {*self._passing(), step})
        if not stays:  # noted first: a state that is killed before it is noted would stay for ever
            write_atomically(self.path / PASSING, json.dumps(passing).encode())
        save_tensors(self.path / _state_name(step), tensors, self.spec.identity)
        if stays and passing != self._passing():
            write_atomically(self.path / PASSING, json.dumps(passing).encode())
        for old in [s for s in passing if s <= step][:-GENERATIONS]:
            (self.path / _state_name(old)).unlink(missing_ok=True)

    def _passing(self) -> list[int]:
        """Steps whose full state serves only to continue, oldest first."""
        try:
            steps = read_json(self.path / PASSING, list)
        except (FileNotFoundError, DamagedError):  # then they stay, which harms nothing
            return []
        return [step for step in steps if type(step) is int and (self.path / _state_name(step)).exists()]

    def _flush_log(self) -> None:
        """The logs reach the disk before a state that follows them: continuing from there never misses a row."""
        for which in LOGS:
            path = self.path / f"{which}.jsonl"
            try:
                with suppress(FileNotFoundError), os.fdopen(open_file(path)) as file:
                    os.fsync(file.fileno())
            except OSError as error:
                raise disk_error(path, error) from error

    def latest_state(
        self, at_most: int | None = None, report: Callable[[str], None] = lambda sentence: None
    ) -> "tuple[int, dict[str, Tensor]] | None":
        """The newest full state that is whole, not after a step if one is given; a damaged one is reported."""
        from grokscope.training.checkpoint import load_tensors

        self.check_manifest(self.sealed_outcome())
        for step, path in reversed(self.checkpoints("state").items()):
            if at_most is None or step <= at_most:
                try:
                    return step, load_tensors(path, self.spec.identity)
                except DamagedError as error:
                    report(f"{error}; an earlier state serves")
        return None

    def weights_at(self, step: int) -> "dict[str, Tensor]":
        """The weights stored at a step."""
        from grokscope.training.checkpoint import load_tensors

        stored = self.checkpoints("weights")
        if step not in stored:
            steps = ", ".join(map(str, stored)) or "none"
            raise InputError(f"{self.name} has no weights at step {step}; stored steps: {steps}")
        self.check_manifest(self.sealed_outcome())
        return load_tensors(stored[step], self.spec.identity)

    def check_manifest(self, sealed: SealedOutcome) -> None:
        """Reject a manifest that is not the one with which the run ended."""
        sealed.check(self.path / "manifest.json", self._bytes_of("manifest.json"))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only writer. The system frees the lock of a process that dies, so none is ever stale."""
        with hold_lock(self.path / "lock", self.name):
            for half in self.path.glob(".*.partial"):  # of a writer that was killed
                half.unlink(missing_ok=True)
            yield

    @property
    def owner(self) -> str | None:
        """Who writes it, as the lock says; the lock of a process that died may still lie there."""
        return lock_owner(self.path / "lock")

    def is_held(self) -> bool:
        """Whether a living process writes this run."""
        try:
            descriptor = open_file(self.path / "lock")
        except (OSError, DamagedError):
            return False
        with os.fdopen(descriptor):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    def misplaced(self) -> dict[Path, str]:
        """What lies in the place of one of its files and is none, each with a sentence."""
        found = {}
        for entry in sorted(os.scandir(self.path), key=lambda entry: entry.name):
            is_ours = entry.name in FILES or CHECKPOINT.fullmatch(entry.name)
            if is_ours and not entry.is_file(follow_symlinks=False):
                kind = "a link" if entry.is_symlink() else "a folder" if entry.is_dir() else "a pipe or a device"
                path = self.path / entry.name
                found[path] = f"{named(path)} is {kind}, not a file"
        return found

    def stored_checkpoints(self) -> list[Path]:
        """Every checkpoint that lies here, whole or not, in the order of their names."""
        return [path for path in sorted(self.path.iterdir()) if CHECKPOINT.fullmatch(path.name)]

    def _bytes_of(self, name: str) -> bytes:
        try:
            return read_file(self.path / name, LARGEST_LOG)
        except FileNotFoundError:
            return b""

    def _append(self, name: str, content: bytes) -> None:
        path = self.path / name
        try:
            with os.fdopen(open_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab") as file:
                file.write(content)
        except OSError as error:
            raise disk_error(path, error) from error


def _state_name(step: int) -> str:
    return f"state-{step:08d}.safetensors"
