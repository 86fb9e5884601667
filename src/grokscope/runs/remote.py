"""Runs in a place without atomic renames or locks: an object store, a network disk, anything fsspec reaches.

A worker trains in a scratch folder of its own machine and commits each run to the remote place, now and then and at
its end. A commit is some files, written once and never again, and then a marker that names them with their digests:

    ROOT/add_mod97_s42-0123456789abcdef/files-WRITER/log.jsonl@89abcdef01234567
    ROOT/add_mod97_s42-0123456789abcdef/commit-00001000-WRITER.json

The studies that a run is for may be added after its end; each is a file of its own, named by its content:

    ROOT/add_mod97_s42-0123456789abcdef/made_for-89abcdef01234567.json

A reader trusts markers alone, and each marker carries its own checksum, so nothing half-written is ever read. Each
writer uses names of its own. Two writers that train the same run, for example after a lost connection, do not disturb
each other: they write the same bytes, and one of them is read. The first writer to finish a run removes the unfinished
commits of the others; a writer that finishes later sees the finished commit and removes its own. A run is continued
from its newest whole commit.
"""

import hashlib
import json
import os
import re
import secrets
import tempfile
import time
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from grokscope.errors import InputError, shown
from grokscope.files import DamagedError, parse_json
from grokscope.runs.logs import decode_memberships, encode_row
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.run_folder import MADE_FOR, Keep, RunFolder, run_name
from grokscope.runs.store import CANCELLED, Store
from grokscope.specs import Membership, RunSpec

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Commit", "Remote", "RemoteFolder", "RemoteStore"]

RUN = re.compile(r"[A-Za-z0-9_+.-]{1,80}-[0-9a-f]{16}")
FILE = re.compile(r"[a-z][A-Za-z0-9_-]{0,60}(\.[a-z]{1,12})?")
MARKER = re.compile(r"commit-([0-9]{8})-([0-9a-f]{16})\.json")
DIGEST = re.compile(r"[0-9a-f]{64}")
MEMBERSHIP = re.compile(r"made_for-[0-9a-f]{16}\.json")
SCRATCH = "GROKSCOPE_SCRATCH"  # the environment's name for a folder with space; the system's temporary one otherwise
COMMIT_EVERY = 60.0  # seconds between commits of one run that is not at its end


@dataclass(frozen=True)
class Commit:
    """What a marker vouches for."""

    step: int
    """How far the run was."""
    writer: str
    """The writer's random name."""
    finished: bool
    """Whether that was its end."""
    files: dict[str, tuple[str, int]]
    """The sha256 and size of each file."""

    @property
    def marker(self) -> str:
        """The marker's name."""
        return f"commit-{self.step:08d}-{self.writer}.json"

    def to_json(self) -> bytes:
        """The marker's content, with its own checksum."""
        facts = {"step": self.step, "writer": self.writer, "finished": self.finished, "files": self.files}
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
        return json.dumps({"commit": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}).encode()

    @classmethod
    def from_json(cls, content: bytes) -> Self | None:
        """The inverse; None if the marker is torn, altered, or names what no run has."""
        try:
            outer = parse_json(content, "a marker")
            found = cls(**parse_json(outer["commit"], "a commit"))
            is_whole = hashlib.sha256(outer["commit"].encode()).hexdigest() == outer["sha256"]
            return found if is_whole and found._makes_sense() else None
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def _makes_sense(self) -> bool:
        """Whether its parts are what they should be, and its files lie nowhere but in the run."""
        is_of_run = type(self.step) is int and MARKER.fullmatch(self.marker) and type(self.finished) is bool
        files = [(FILE.fullmatch(name), DIGEST.fullmatch(sha256), size) for name, (sha256, size) in self.files.items()]
        return bool(is_of_run) and all(name and digest and type(size) is int for name, digest, size in files)


class Remote:
    """The remote place: bytes by name, and commits of runs."""

    def __init__(self, address: str) -> None:
        try:
            import fsspec

            self.system, self.root = fsspec.core.url_to_fs(address, use_listings_cache=False, skip_instance_cache=True)
        except ImportError as error:
            needs = "install it with: pip install 'grokscope[remote]'"
            raise InputError(f"the address {shown(address)} needs a package: {error}; {needs}") from None
        except ValueError as error:
            raise InputError(f"the address {shown(address)} cannot be used: {error}") from None
        self.address, self.writer = address, secrets.token_hex(8)

    def write(self, name: str, content: bytes) -> None:
        """Put bytes at a name, in whatever way the place has; they may be torn if we die now."""
        path = f"{self.root}/{name}"
        try:
            self.system.makedirs(path.rpartition("/")[0], exist_ok=True)
            with self.system.open(path, "wb") as file:
                file.write(content)
        except Exception as error:  # each place has errors of its own
            raise InputError(f"{shown(name)} could not be written to {shown(self.address)}: {error}") from error

    def read(self, name: str) -> bytes | None:
        """The bytes at a name; None if there are none."""
        try:
            return bytes(self.system.cat_file(f"{self.root}/{name}"))
        except FileNotFoundError:
            return None

    def names(self, folder: str = "") -> list[str]:
        """What lies in a folder."""
        try:
            found = self.system.ls(f"{self.root}/{folder}".rstrip("/"), detail=False)
        except FileNotFoundError:
            return []
        return sorted(path.rstrip("/").rpartition("/")[2] for path in found)

    def remove(self, name: str, recursive: bool = False) -> None:
        """Remove what lies at a name, if anything does."""
        with suppress(FileNotFoundError):
            self.system.rm(f"{self.root}/{name}", recursive=recursive)

    def runs(self) -> list[str]:
        """The runs that have a commit; whatever else lies there is not ours."""
        return [name for name in self.names() if RUN.fullmatch(name) and self.commits(name)]

    def commits(self, run: str) -> list[Commit]:
        """A run's commits, the one to be believed first: finished ones, then the furthest."""
        contents = (self.read(f"{run}/{name}") for name in self.names(run) if MARKER.fullmatch(name))
        found = [commit for content in contents if content and (commit := Commit.from_json(content))]
        return sorted(found, key=lambda commit: (not commit.finished, -commit.step, commit.writer))

    def memberships(self, run: str) -> set[Membership]:
        """The studies that a run is for; one that is half written does not count."""
        files = (self.read(f"{run}/{name}") for name in self.names(run) if MEMBERSHIP.fullmatch(name))
        return {one for content in files for one in decode_memberships(content or b"")[0]}

    def add_memberships(self, run: str, made_for: Iterable[Membership]) -> None:
        """Note the studies that a run is for."""
        for one in sorted({*made_for} - self.memberships(run)):
            self.write(f"{run}/made_for-{one.content_hash}.json", encode_row(one.to_dict()))

    def content(self, run: str, commit: Commit, only: Container[str] | None = None) -> dict[str, bytes]:
        """The files of a commit, or those with some names, each checked; what is missing or altered is named."""
        found = {}
        for name in (name for name in commit.files if only is None or name in only):
            sha256, size = commit.files[name]
            place = f"{run}/files-{commit.writer}/{name}@{sha256[:16]}"
            content = self.read(place)
            if content is None or len(content) != size or hashlib.sha256(content).hexdigest() != sha256:
                raise DamagedError(f"{shown(place)} of {shown(self.address)} is not what its commit says")
            found[name] = content
        return found

    def commit(self, run: str, step: int, files: dict[str, bytes], finished: bool, known: set[str]) -> None:
        """Write the files that are not `known` to be there, then the marker, then forget our former commit.

        Another writer that finished the run meanwhile has removed our files, so their presence is checked once more.
        """
        if finished and self._is_ended_by_another(run):
            self._clear(run, {self.writer})
            return
        listed = {name: (hashlib.sha256(content).hexdigest(), len(content)) for name, content in files.items()}
        places = {f"{name}@{sha256[:16]}": name for name, (sha256, _) in listed.items()}
        folder = f"{run}/files-{self.writer}"
        for place in places.keys() - known:
            self.write(f"{folder}/{place}", files[places[place]])
        commit = Commit(step, self.writer, finished, listed)
        self.write(f"{run}/{commit.marker}", commit.to_json())
        for place in places.keys() - set(self.names(folder)):
            self.write(f"{folder}/{place}", files[places[place]])
        for old in self.names(run):
            if MARKER.fullmatch(old) and old != commit.marker and _writer(old) == self.writer:
                self.remove(f"{run}/{old}")
        if finished:  # checked only now: a writer that finishes later sees our marker, and leaves it
            ended = {one.writer for one in self.commits(run) if one.finished}
            self._clear(run, {_writer(name) for name in self.names(run)} - ended)
        for place in known - places.keys():
            self.remove(f"{folder}/{place}")
        known.clear()
        known.update(places)

    def _is_ended_by_another(self, run: str) -> bool:
        """Whether another writer's end of a run is committed, and whole."""
        for commit in self.commits(run):
            if commit.finished and commit.writer != self.writer:
                with suppress(DamagedError):
                    return bool(self.content(run, commit))
        return False

    def _clear(self, run: str, writers: set[str]) -> None:
        """Remove some writers' markers, and then their files."""
        for name in sorted(self.names(run)):  # commit-… before files-…
            if _writer(name) in writers and (MARKER.fullmatch(name) or name.startswith("files-")):
                self.remove(f"{run}/{name}", recursive=True)


def _writer(name: str) -> str:
    """The writer in the name of a marker or of a folder of files."""
    return name.removesuffix(".json").rpartition("-")[2]


@dataclass(frozen=True)
class RemoteFolder(RunFolder):
    """A run in the scratch folder, committed to its remote place as it goes."""

    remote: Remote
    """Where it is committed."""
    known: set[str] = field(default_factory=set)
    """What of it lies there already."""
    clock: list[float] = field(default_factory=list)
    """When it was last committed."""

    def save(
        self, step: int, tensors: "dict[str, Tensor]", keep: Keep, is_fork_point: bool, is_stop: bool = False
    ) -> None:
        """Store a state; commit it if the last commit is old, or somebody waits for us to stop."""
        super().save(step, tensors, keep, is_fork_point, is_stop)
        if is_stop or not self.clock or time.monotonic() - self.clock[0] >= COMMIT_EVERY:
            self.commit(step, finished=False)

    def finish(self, outcome: RunOutcome) -> None:
        """Record how it ended, and commit that."""
        super().finish(outcome)
        self.commit(self.spec.training.steps, finished=True)

    def add_memberships(self, made_for: Iterable[Membership]) -> None:
        """Note the studies that it is for, here and in the remote place."""
        studies = tuple(made_for)
        super().add_memberships(studies)
        if studies:
            self.remote.add_memberships(self.name, studies)

    def commit(self, step: int, finished: bool) -> None:
        """Copy the run as it stands."""
        own = {path.name: path for path in sorted(self.path.iterdir()) if path.name not in ("lock", MADE_FOR)}
        files = {name: path.read_bytes() for name, path in own.items() if FILE.fullmatch(name)}
        self.remote.commit(self.name, step, files, finished, self.known)
        self.clock[:] = [time.monotonic()]


class RemoteStore(Store):
    """A remote place as a folder of runs; each is fetched on first use, or of its files `only` some."""

    def __init__(self, address: str, only: Container[str] | None = None) -> None:
        self.remote, self.only = Remote(address), only
        self._scratch = tempfile.TemporaryDirectory(prefix="grokscope-", dir=os.environ.get(SCRATCH))
        self._fetched: set[str] = set()
        super().__init__(self._scratch.name)

    def __exit__(self, *error: object) -> None:
        """The scratch folder has served."""
        self._scratch.cleanup()

    @property
    def address(self) -> str:
        """Where it lies, as a plan names it."""
        return self.remote.address

    @property
    def is_cancelled(self) -> bool:
        """Whether every worker is to stop."""
        return self.get(CANCELLED) is not None

    def reopen(self) -> None:
        """Undo `cancel`."""
        self.remote.remove(CANCELLED)

    def put(self, name: str, content: bytes) -> None:
        """Keep a file beside the runs."""
        self.remote.write(name, content)

    def get(self, name: str) -> bytes | None:
        """The content of a file kept beside the runs; None if there is none."""
        return self.remote.read(name)

    def list_files(self, folder: str) -> list[str]:
        """The files kept in a folder beside the runs, in order."""
        return self.remote.names(folder)

    def is_finished(self, spec: RunSpec) -> bool:
        """Whether a run's end is committed."""
        return any(commit.finished for commit in self.remote.commits(run_name(spec)))

    def has_begun(self, spec: RunSpec) -> bool:
        """Whether anything of a run is committed yet."""
        return bool(self.remote.commits(run_name(spec)))

    def damage_of(self, spec: RunSpec) -> str | None:
        """Nothing: of a remote run each file is checked when it is fetched, and what is damaged is never continued."""
        return None

    def create(self, spec: RunSpec) -> RemoteFolder:
        """The run's folder in the scratch folder, with its newest whole commit if there is one."""
        self.fetch(run_name(spec))
        return RemoteFolder(super().create(spec).path, spec, self.remote)

    def fetch(self, run: str) -> None:
        """Copy a run's newest whole commit into the scratch folder, once."""
        commits = () if run in self._fetched else self.remote.commits(run)
        self._fetched.add(run)
        for commit in commits:
            with suppress(DamagedError):  # an earlier commit serves
                files = self.remote.content(run, commit, self.only)
                if studies := sorted(self.remote.memberships(run)):
                    files[MADE_FOR] = b"".join(encode_row(one.to_dict()) for one in studies)
                (self.path / run).mkdir(exist_ok=True)
                for name, content in files.items():
                    (self.path / run / name).write_bytes(content)
                return

    def __iter__(self) -> Iterator[RunFolder]:
        return map(self.folder, self.remote.runs())

    def survey(self, names: Iterable[str] | None = None) -> tuple[list[RunFolder], dict[str, str]]:
        """The committed runs whose specs and outcomes can be used; and of the others why not."""
        return super().survey(self.remote.runs() if names is None else names)

    def names(self, ending: str = "") -> list[str]:
        """Folders named like runs, in order; whether they hold a commit is seen when they are fetched."""
        return [name for name in self.remote.names() if RUN.fullmatch(name) and name.endswith(ending)]

    def folder(self, name: str) -> RunFolder:
        """The run of exactly this name, fetched."""
        self.fetch(name)
        return super().folder(name)
