"""A folder of runs: what each is, what was measured, and where it can be continued.

DIR/add_mod97_s42-0123456789abcdef/
format               the version of all that follows
spec.json            what was run
log.jsonl            one record per measurement, each with its checksum; append-only
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
import zlib
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from grokscope.errors import InputError, did_you_mean, shown
from grokscope.experiments.locks import held, owner_of
from grokscope.files import DamagedError, disk_error, named, write_atomically
from grokscope.specs import RunSpec

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Keep", "RunFolder", "Store", "refuse_other_formats", "run_name"]

Keep = Literal["weights", "state", "forks", "none"]
Log = Literal["log", "measures"]
LOGS: tuple[Log, ...] = ("log", "measures")
GENERATIONS = 2
CANCELLED = "cancelled"
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
    def outcome(self) -> dict[str, Any] | None:
        """How it ended, and its provenance; None while it has not."""
        path = self.path / "outcome.json"
        try:
            content = path.read_bytes()
        except (FileNotFoundError, ValueError):  # no file has a name with a NUL
            return None
        try:
            found = json.loads(content)
        except ValueError:
            raise DamagedError(f"{named(path)} is not valid JSON") from None
        if not isinstance(found, dict) or "outcome" not in found:
            raise DamagedError(f"{named(path)} does not say how the run ended")
        digest = found.pop("sha256", None)  # those from before it was written have none
        if digest not in (None, _digest(found)):
            raise DamagedError(f"{named(path)} is damaged: it does not have the sha256 that it names")
        return found

    def finish(self, outcome: dict[str, Any]) -> None:
        """Record how it ended."""
        facts = json.loads(json.dumps(outcome))  # as it is read again: lists, and names that are texts
        facts["sha256"] = _digest(facts)
        write_atomically(self.path / "outcome.json", json.dumps(facts, indent=1).encode())
        self.tidy()

    def tidy(self) -> None:
        """Remove the states that only served to continue: what is left does not tell where the run was interrupted."""
        if (self.path / "passing.json").exists():
            from grokscope.training.checkpoint import drop_tensors

            drop_tensors(self.path, [_state_name(step) for step in self._passing()])
            (self.path / "passing.json").unlink()

    def log(self, which: Log = "log") -> list[dict[str, Any]]:
        """Every whole record, by step; of repeated steps the last counts."""
        rows = {row["step"]: row for row in _records(self._log_bytes(which))[0]}
        return [rows[step] for step in sorted(rows)]

    def bad_records(self, which: Log = "log") -> int:
        """How many records are torn or altered, and so not believed."""
        return _records(self._log_bytes(which))[1]

    def append(self, row: dict[str, Any], which: Log = "log") -> None:
        """Add one record."""
        path = self.path / f"{which}.jsonl"
        try:
            with path.open("ab") as file:
                file.write(_record(row))
        except OSError as error:
            raise disk_error(path, error) from error

    def rewind(self, step: int) -> None:
        """Drop records after a step (and a torn one), so that continuing from there writes the same bytes again."""
        for which in LOGS:
            path = self.path / f"{which}.jsonl"
            if which == "log" or path.exists():
                kept = [row for row in _records(self._log_bytes(which))[0] if row["step"] <= step]
                write_atomically(path, b"".join(_record(row) for row in kept))

    def checkpoints(self, kind: Literal["weights", "state"]) -> dict[int, Path]:
        """Stored checkpoints of a kind, by step. A full state holds weights too."""
        found = {}
        for path in sorted(self.path.iterdir()):  # weights after states, so that they come first
            match = CHECKPOINT.fullmatch(path.name)
            if match and (match[1] == kind or kind == "weights"):
                found[int(match[2])] = path
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
        """The logs reach the disk before a state that follows them: continuing from there never misses a record."""
        for which in LOGS:
            path = self.path / f"{which}.jsonl"
            try:
                with path.open("rb") as file:
                    os.fsync(file.fileno())
            except FileNotFoundError:
                pass
            except OSError as error:
                raise disk_error(path, error) from error

    def latest_state(
        self, at_most: int | None = None, tell: Callable[[str], None] = lambda sentence: None
    ) -> "tuple[int, dict[str, Tensor]] | None":
        """The newest full state that is whole, not after a step if one is given; what is damaged is told and passed."""
        from grokscope.training.checkpoint import load_tensors

        for step, path in reversed(self.checkpoints("state").items()):
            if at_most is None or step <= at_most:
                try:
                    return step, load_tensors(path)
                except DamagedError as error:
                    tell(f"{error}; an earlier state serves")
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
    def locked(self) -> Iterator[None]:
        """Be the only writer. The system frees the lock of a process that dies, so none is ever stale."""
        lock = self.path / "lock"
        with os.fdopen(held(lock, self.name)):
            try:
                for half in self.path.glob(".*.partial"):  # of a writer that was killed
                    half.unlink(missing_ok=True)
                yield
            finally:
                lock.unlink(missing_ok=True)

    @property
    def owner(self) -> str | None:
        """Who writes it, as the lock tells; the lock of a process that died may still lie there."""
        return owner_of(self.path / "lock")

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

    def _log_bytes(self, which: Log = "log") -> bytes:
        try:
            return (self.path / f"{which}.jsonl").read_bytes()
        except FileNotFoundError:
            return b""


class Store:
    """A folder of runs."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is left to do: what was written is on the disk."""

    def __iter__(self) -> Iterator[RunFolder]:
        return map(self.folder, self.paths())

    @property
    def address(self) -> str:
        """Where it lies, as a plan names it."""
        return str(self.path)

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody asked every worker to stop."""
        return (self.path / CANCELLED).exists()

    def cancel(self) -> None:
        """Ask every worker, wherever it runs, to store everything and stop."""
        self.put(CANCELLED, b"")

    def reopen(self) -> None:
        """Take back what `cancel` asked."""
        (self.path / CANCELLED).unlink(missing_ok=True)

    def put(self, name: str, content: bytes) -> None:
        """Keep a file beside the runs."""
        path = self.path / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise InputError(f"the folder {named(path.parent)} could not be made: {why}") from None
        write_atomically(path, content)

    def kept(self, folder: str) -> dict[str, bytes]:
        """The files kept in a folder beside the runs, by name."""
        files = sorted((self.path / folder).glob("[!.]*"))
        return {path.name: path.read_bytes() for path in files if path.is_file()}

    def names(self) -> list[str]:
        """The runs' folders, in order; none of them is read."""
        entries = sorted(os.listdir(self.path)) if self.path.is_dir() else []  # noqa: PTH208
        # Ten thousand Paths take a fifth of a second, and their names a tenth of that.
        return [
            name
            for name in entries
            if name.isprintable() and not name.startswith(".") and isfile(f"{self.path}/{name}/spec.json")  # noqa: PTH113
        ]

    def paths(self) -> Iterator[Path]:
        """The same as paths."""
        return (self.path / name for name in self.names())

    def add(self, spec: RunSpec) -> RunFolder:
        """The run's folder, made if it is new; a folder with another spec inside is never touched."""
        path = self.path / run_name(spec)
        if path.is_symlink():
            raise InputError(f"{named(path)} leads out of its store; nothing was changed")
        try:
            path.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise InputError(f"the folder {named(path)} could not be made: {why}") from None
        if (path / "spec.json").exists():
            if self.folder(path).spec.content_hash != spec.content_hash:
                raise InputError(f"{named(path)} holds another run than the one asked for; nothing was changed")
            return RunFolder(path, spec)  # equal but for the place of a table, which may have moved
        content = (json.dumps(spec.to_dict(), indent=1, sort_keys=True) + "\n").encode()
        try:
            write_atomically(path / "format", f"grokscope run {FORMAT}\n".encode())
            write_atomically(path / "spec.json", content)
        except InputError:
            if not (path / "spec.json").exists():  # else another worker was quicker, and has tidied up already
                raise
        return RunFolder(path, spec)

    def having(self, hashes: Container[str]) -> dict[str, RunFolder]:
        """The stored runs among these, by content hash; no other spec is read."""
        names = (name for name in self.names() if name.rpartition("-")[2] in hashes)
        return {folder.spec.content_hash: folder for folder in map(self.folder, names)}

    def is_finished(self, spec: RunSpec) -> bool:
        """Whether a run has ended; an outcome that is damaged is named."""
        return RunFolder(self.path / run_name(spec), spec).outcome is not None

    def has_begun(self, spec: RunSpec) -> bool:
        """Whether anything of a run was measured yet."""
        return (self.path / run_name(spec) / "log.jsonl").exists()

    @contextmanager
    def claimed(self, specs: Sequence[RunSpec]) -> Iterator[None]:
        """Be the only process that trains these runs as one stack."""
        digest = sha256("".join(spec.content_hash for spec in specs).encode()).hexdigest()[:16]
        lock = self.path / f".stack-{digest}.lock"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise InputError(f"the folder {named(self.path)} could not be made: {why}") from None
        with os.fdopen(held(lock, f"a stack of {len(specs)} runs")):
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)

    def find(self, name: str) -> RunFolder:
        """The run with this name, hash, or unambiguous beginning of either."""
        if re.fullmatch(r"[0-9a-f]{16}", name):  # the usual case, and quick among thousands
            for entry in sorted(os.listdir(self.path)) if self.path.is_dir() else ():  # noqa: PTH208
                if entry.endswith(f"-{name}") and entry[0] != "." and isfile(f"{self.path}/{entry}/spec.json"):  # noqa: PTH113
                    return self.folder(entry)
        parts = {path: path.name.rpartition("-") for path in self.paths()}
        exact = [path for path, (word, _, end) in parts.items() if name in (path.name, word, end)]
        matches = exact or [path for path in parts if path.name.startswith(name) or parts[path][2].startswith(name)]
        if len(exact) > 1:  # a run and its forks share a word, which then means the run
            roots = [path for path in exact if self.folder(path).spec.fork is None]
            matches = roots if len(roots) == 1 else exact
        if len(matches) == 1:
            return self.folder(matches[0])
        if matches:
            raise InputError(
                f"{shown(name)} names {len(matches)} runs, such as {matches[0].name} and {matches[1].name}"
            )
        known = [known for path, (word, _, _) in parts.items() for known in (path.name, word)]
        raise InputError(f"there is no run {shown(name)} in {named(self.path)}{did_you_mean(name, known)}")

    def folder(self, name: str | Path) -> RunFolder:
        """The run in the folder of exactly this name, as `names` and `paths` list them."""
        path = self.path / Path(name).name
        refuse_other_formats(path)
        try:
            return RunFolder(path, RunSpec.from_json((path / "spec.json").read_text()))
        except (OSError, UnicodeDecodeError, InputError) as error:
            raise DamagedError(f"{named(path / 'spec.json')} cannot be read: {error}") from None


def refuse_other_formats(folder: Path) -> None:
    """A run that another version of the format wrote is named with both versions, and left as it is."""
    try:
        words = (folder / "format").read_bytes()[:80].split()
    except FileNotFoundError:
        return
    except OSError as error:
        raise DamagedError(f"{named(folder / 'format')} cannot be read: {error.strerror}") from None
    if words != [b"grokscope", b"run", str(FORMAT).encode()]:
        found = shown(b" ".join(words).decode(errors="replace"))
        raise InputError(f"{named(folder)} is of format {found}, and this is a reader of 'grokscope run {FORMAT}'")


def _digest(outcome: dict[str, Any]) -> str:
    """The checksum of all that is said about a run's end."""
    return sha256(json.dumps(outcome, sort_keys=True).encode()).hexdigest()


def _record(row: dict[str, Any]) -> bytes:
    """One line: JSON (NaN as null) and its CRC-32."""
    clean = {key: None if isinstance(value, float) and not isfinite(value) else value for key, value in row.items()}
    text = json.dumps(clean, separators=(",", ":"))
    return f"{text}\t{zlib.crc32(text.encode()):08x}\n".encode()


def _records(content: bytes) -> tuple[list[dict[str, Any]], int]:
    """Whole records, and how many lines were torn or altered."""
    rows, bad = [], 0
    for line in content.split(b"\n"):
        text, _, checksum = line.rpartition(b"\t")
        if text and checksum == f"{zlib.crc32(text):08x}".encode():
            rows.append(json.loads(text))
        elif line:
            bad += 1
    return rows, bad


def _state_name(step: int) -> str:
    return f"state-{step:08d}.safetensors"
