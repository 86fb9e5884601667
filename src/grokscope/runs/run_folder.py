"""The folder of one run: what it is, what was measured, and where it can be continued.

DIR/add_mod97_s42-0123456789abcdef/
format               the version of all that follows
spec.json            what was run
made_for.jsonl       one line per study that the run was trained for, where there are any; append-only
log.jsonl            one line per evaluation, each with its checksum; append-only
measures.jsonl       the same for what was measured at the checkpoints while training, where that was asked for
weights-00000500.safetensors, state-00001000.safetensors, manifest.json
passing.json         steps of the states that only serve to continue; gone once the run has ended
outcome.json         how it ended and where it was made, once it has
lock                 who is writing

Listing runs must not wait for torch, so what handles tensors is imported where it is used.
"""

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from grokscope.errors import InputError, shown
from grokscope.files import DamagedError, disk_error, named, write_atomically
from grokscope.runs.locks import hold_lock, lock_owner
from grokscope.runs.logs import Row, columns_from, decode_rows, encode_row
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord, unite
from grokscope.specs import Membership, RunSpec

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "CHECKPOINT",
    "FORMAT",
    "LOGS",
    "MADE_FOR",
    "Keep",
    "RunFolder",
    "reject_other_formats",
    "run_name",
    "spec_bytes",
]

Keep = Literal["weights", "state", "forks", "none"]
Log = Literal["log", "measures"]
LOGS: tuple[Log, ...] = ("log", "measures")
MADE_FOR = "made_for.jsonl"
GENERATIONS = 2
FORMAT = 1  # of logs, checkpoints and outcomes; folders from before it was written down are of the first
CHECKPOINT = re.compile(r"(weights|state)-([0-9]{8})\.safetensors")


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
        path = self.path / "outcome.json"
        try:
            content = path.read_bytes()
        except (FileNotFoundError, ValueError):  # no file has a name with a NUL
            return RunOutcome()
        try:
            found = json.loads(content)
        except ValueError:
            raise DamagedError(f"{named(path)} is not valid JSON") from None
        if not isinstance(found, dict) or "outcome" not in found:
            raise DamagedError(f"{named(path)} does not say how the run ended")
        digest = found.pop("sha256", None)  # those from before it was written have none
        if digest not in (None, _digest(found)):
            raise DamagedError(f"{named(path)} is damaged: it does not have the sha256 that it names")
        try:
            return RunOutcome.from_dict(found)
        except ValueError as error:
            raise DamagedError(f"{named(path)} is damaged: {error}") from None

    def finish(self, outcome: RunOutcome) -> None:
        """Record how it ended."""
        facts = json.loads(json.dumps(outcome.to_dict()))  # as it is read again: lists, and names that are texts
        facts["sha256"] = _digest(facts)
        write_atomically(self.path / "outcome.json", json.dumps(facts, indent=1).encode())
        self.tidy()

    @property
    def made_for(self) -> tuple[Membership, ...]:
        """The studies that it was trained for."""
        return unite(map(Membership.from_dict, decode_rows(self._bytes_of(MADE_FOR))[0]))

    def add_memberships(self, made_for: Iterable[Membership]) -> None:
        """Note the studies that it is trained for, each once; no lock is needed, for lines are only appended."""
        new = sorted({*made_for} - {*self.made_for})
        if new:
            begins = b"" if self._bytes_of(MADE_FOR)[-1:] in (b"", b"\n") else b"\n"  # after a torn line, on its own
            self._append(MADE_FOR, begins + b"".join(encode_row(one.to_dict()) for one in new))

    def record(self, with_logs: bool = True) -> RunRecord:
        """All that is known of it besides its weights, so far; without its logs nothing but small files is read."""
        # The outcome is read first: a run that had ended by then wrote its last evaluation before.
        known = RunRecord(self.spec, self.outcome, {}, {}, self.made_for)
        return self.add_logs(known) if with_logs else known

    def add_logs(self, record: RunRecord) -> RunRecord:
        """The same record with what the logs say now."""
        evaluations, checkpoints = (columns_from(self.log(which)) for which in LOGS)
        return replace(record, evaluations=evaluations, checkpoints=checkpoints)

    def tidy(self) -> None:
        """Remove the states that only served to continue: what is left does not show where the run was interrupted."""
        if (self.path / "passing.json").exists():
            from grokscope.training.checkpoint import drop_tensors

            drop_tensors(self.path, [_state_name(step) for step in self._passing()])
            (self.path / "passing.json").unlink()

    def log(self, which: Log = "log") -> list[Row]:
        """Every whole row, by step; of repeated steps the last counts."""
        rows = {row["step"]: row for row in decode_rows(self._bytes_of(f"{which}.jsonl"))[0]}
        return [rows[step] for step in sorted(rows)]

    def count_bad_rows(self, which: Log = "log") -> int:
        """How many lines of a log are torn or altered, and so not believed."""
        return decode_rows(self._bytes_of(f"{which}.jsonl"))[1]

    def append(self, row: Mapping[str, Any], which: Log = "log") -> None:
        """Add one row."""
        self._append(f"{which}.jsonl", encode_row(row))

    def rewind(self, step: int) -> None:
        """Drop rows after a step (and a torn one), so that continuing from there writes the same bytes again."""
        for which in LOGS:
            path = self.path / f"{which}.jsonl"
            if which == "log" or path.exists():
                kept = [row for row in decode_rows(self._bytes_of(path.name))[0] if row["step"] <= step]
                write_atomically(path, b"".join(encode_row(row) for row in kept))

    def checkpoints(self, kind: Literal["weights", "state"]) -> dict[int, Path]:
        """Stored checkpoints of a kind, by step. A full state holds weights too."""
        matches = filter(None, (CHECKPOINT.fullmatch(path.name) for path in sorted(self.path.iterdir())))
        # Weights come after states, and take their place.
        found = {int(match[2]): self.path / match[0] for match in matches if kind in (match[1], "weights")}
        return dict(sorted(found.items()))

    def save(
        self, step: int, tensors: "dict[str, Tensor]", keep: Keep, is_fork_point: bool, is_stop: bool = False
    ) -> None:
        """Store a full state; of those that only serve to continue, two generations stay until the run has ended.

        `weights` (the default) keeps weights at the checkpoints' cadence and full states where a fork may begin;
        `state` keeps full states at the cadence; `forks` keeps them at the steps that the cadence lists, and to
        continue after a stop; `none` stores nothing.
        """
        is_listed = step in self.spec.checkpoints.at
        if keep == "none" or (keep == "forks" and not (is_listed or is_stop)):
            return
        from grokscope.training.checkpoint import save_tensors

        self._flush_log()
        scheduled = is_fork_point or step in self.spec.checkpoints.steps(self.spec.training.steps)
        if keep == "weights" and scheduled:
            only = {n: t for n, t in tensors.items() if not n.startswith(("first.", "second.", "slow."))}
            save_tensors(self.path / f"weights-{step:08d}.safetensors", only)
        stays = is_listed or (keep != "forks" and is_fork_point) or (keep == "state" and scheduled)
        passing = sorted({*self._passing()} - {step} if stays else {*self._passing(), step})
        if not stays:  # noted first: a state that is killed before it is noted would stay for ever
            write_atomically(self.path / "passing.json", json.dumps(passing).encode())
        save_tensors(self.path / _state_name(step), tensors)
        if stays and passing != self._passing():
            write_atomically(self.path / "passing.json", json.dumps(passing).encode())
        for old in [s for s in passing if s <= step][:-GENERATIONS]:
            (self.path / _state_name(old)).unlink(missing_ok=True)

    def _passing(self) -> list[int]:
        """Steps whose full state serves only to continue, oldest first."""
        try:
            steps = [int(step) for step in json.loads((self.path / "passing.json").read_bytes())]
        except (FileNotFoundError, ValueError, TypeError):
            return []
        return [step for step in steps if (self.path / _state_name(step)).exists()]

    def _flush_log(self) -> None:
        """The logs reach the disk before a state that follows them: continuing from there never misses a row."""
        for which in LOGS:
            path = self.path / f"{which}.jsonl"
            try:
                with suppress(FileNotFoundError), path.open("rb") as file:
                    os.fsync(file.fileno())
            except OSError as error:
                raise disk_error(path, error) from error

    def latest_state(
        self, at_most: int | None = None, report: Callable[[str], None] = lambda sentence: None
    ) -> "tuple[int, dict[str, Tensor]] | None":
        """The newest full state that is whole, not after a step if one is given; a damaged one is reported."""
        from grokscope.training.checkpoint import load_tensors

        for step, path in reversed(self.checkpoints("state").items()):
            if at_most is None or step <= at_most:
                try:
                    return step, load_tensors(path)
                except DamagedError as error:
                    report(f"{error}; an earlier state serves")
        return None

    def weights_at(self, step: int) -> "dict[str, Tensor]":
        """The weights stored at a step."""
        from grokscope.training.checkpoint import load_tensors

        stored = self.checkpoints("weights")
        if step not in stored:
            steps = ", ".join(map(str, stored)) or "none"
            raise InputError(f"{self.name} has no weights at step {step}; stored steps: {shown(steps)}")
        return load_tensors(stored[step])

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
            descriptor = os.open(self.path / "lock", os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return False
        with os.fdopen(descriptor):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    def _bytes_of(self, name: str) -> bytes:
        try:
            return (self.path / name).read_bytes()
        except (FileNotFoundError, ValueError):
            return b""

    def _append(self, name: str, content: bytes) -> None:
        path = self.path / name
        try:
            with path.open("ab") as file:
                file.write(content)
        except OSError as error:
            raise disk_error(path, error) from error


def spec_bytes(spec: RunSpec) -> bytes:
    """What spec.json holds."""
    return (json.dumps(spec.to_dict(), indent=1, sort_keys=True) + "\n").encode()


def reject_other_formats(folder: Path) -> None:
    """Reject a run of another format, in a sentence that names both; there was none before this one, so it is newer."""
    try:
        words = (folder / "format").read_bytes()[:80].split()
    except FileNotFoundError:
        return
    except OSError as error:
        raise DamagedError(f"{named(folder / 'format')} cannot be read: {error.strerror}") from None
    if words != [b"grokscope", b"run", str(FORMAT).encode()]:
        found = shown(b" ".join(words).decode(errors="replace"))
        writer = ", which a newer grokscope wrote" if words[:2] == [b"grokscope", b"run"] else ""
        raise InputError(f"{named(folder)} is of format {found}{writer}; this version reads 'grokscope run {FORMAT}'")


def _digest(outcome: dict[str, Any]) -> str:
    """The checksum of all that is stored about a run's end."""
    return sha256(json.dumps(outcome, sort_keys=True).encode()).hexdigest()


def _state_name(step: int) -> str:
    return f"state-{step:08d}.safetensors"
