"""A folder of runs: their names, what is kept beside them, and which process trains which of them."""

import os
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from os.path import lexists
from pathlib import Path
from typing import Self

from grokscope.errors import InputError, did_you_mean, plural, shown
from grokscope.files import discard, make_folder, named, read_file, write_atomically
from grokscope.runs.locks import hold_lock
from grokscope.runs.outcome_file import OUTCOME
from grokscope.runs.run_folder import RunFolder, run_name
from grokscope.runs.settings import is_selected, suffixes
from grokscope.runs.spec_file import FORMAT, format_of, read_spec, spec_bytes
from grokscope.specs import Membership, RunSpec

__all__ = ["CANCELLED", "Store"]

CANCELLED = "cancelled"
MOST_NAMED = 4  # runs that a sentence names
MOST_COMPARED = 100  # runs whose specs are read to tell them apart
RUN = re.compile(r".*-[0-9a-f]{16}")


class Store:
    """A folder of runs."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is left to do: what was written is on the disk."""

    def __iter__(self) -> Iterator[RunFolder]:
        return map(self.folder, self.names())

    @property
    def address(self) -> str:
        """Where it lies, as a plan names it."""
        return str(self.path)

    @property
    def is_cancelled(self) -> bool:
        """Whether every worker is to stop."""
        return lexists(self.path / CANCELLED)

    def cancel(self) -> None:
        """Ask every worker, wherever it runs, to store everything and stop."""
        self.put(CANCELLED, b"")

    def reopen(self) -> None:
        """Undo `cancel`."""
        discard(self.path / CANCELLED)

    def put(self, name: str, content: bytes) -> None:
        """Keep a file beside the runs."""
        path = self.path / name
        make_folder(path.parent)
        write_atomically(path, content)

    def get(self, name: str) -> bytes | None:
        """The content of a file kept beside the runs; None if there is none."""
        try:
            return read_file(self.path / name)
        except FileNotFoundError:
            return None

    def list_files(self, folder: str) -> list[str]:
        """The names kept in a folder beside the runs, in order; what they name may be no file."""
        return sorted(path.name for path in (self.path / folder).glob("[!.]*"))

    def names(self, ending: str = "") -> list[str]:
        """The runs' folders, in order, or those whose names end so; none of them is read.

        What has a run's name is listed whatever it is, and so is a folder with a spec. One in which nothing is but what
        stands before the spec is only being made.
        """
        try:
            entries = sorted(os.listdir(self.path))  # noqa: PTH208
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(f"{named(self.path)} cannot be read: {error.strerror}") from None
        # Ten thousand Paths take a fifth of a second, and their names a tenth of that.
        return [
            name
            for name in entries
            if name.endswith(ending)
            and name.isprintable()
            and not name.startswith(".")
            and (lexists(f"{self.path}/{name}/spec.json") or self._is_damaged(name))
        ]

    def _is_damaged(self, name: str) -> bool:
        """Whether something without a spec has been a run."""
        path = self.path / name
        if not (RUN.fullmatch(name) and lexists(path)):
            return False
        return not path.is_dir() or any(lexists(path / one) for one in ("log.jsonl", OUTCOME, "manifest.json"))

    def locate(self, spec: RunSpec) -> RunFolder:
        """Where a run lies, or would lie; nothing is made."""
        return RunFolder(self.path / run_name(spec), spec)

    def add(self, spec: RunSpec, made_for: Iterable[Membership] = ()) -> RunFolder:
        """The run's folder, made if it is new, with the studies it is for; one with another spec is never touched."""
        folder = self.create(spec)
        folder.add_memberships(made_for)
        return folder

    def create(self, spec: RunSpec) -> RunFolder:
        """The run's folder, made if it is new."""
        path = self.path / run_name(spec)
        if path.is_symlink():
            raise InputError(f"{named(path)} points outside the folder of runs; nothing was changed")
        make_folder(path)
        if (path / "spec.json").exists():
            self.folder(path.name)  # rejects what is damaged, or holds another run
            return RunFolder(path, spec)  # equal but for the place of a table, which may have moved
        try:
            write_atomically(path / "format", f"grokscope run {FORMAT}\n".encode())
            write_atomically(path / "spec.json", spec_bytes(spec))
        except InputError:
            if not (path / "spec.json").exists():  # else another worker was quicker, and has tidied up already
                raise
        return RunFolder(path, spec)

    def damage_of(self, spec: RunSpec) -> str | None:
        """Why a stored run cannot go on as it is; None if it can, has ended well, or is not stored."""
        name = run_name(spec)
        if not (lexists(self.path / name / "spec.json") or self._is_damaged(name)):
            return None
        try:
            folder = self.folder(name)
            if misplaced := folder.misplaced():
                return next(iter(misplaced.values()))
            if not folder.outcome.is_finished:
                folder.record()
                if folder.path.is_symlink():
                    return f"{named(folder.path)} is a link, and nothing is written through it"
        except InputError as error:
            return str(error)
        return None

    def damaged_names(self, hashes: Container[str]) -> dict[str, str]:
        """The stored runs among these, by content hash, that are damaged, by name, with what is wrong."""
        return self.survey(name for name in self.names() if name.rpartition("-")[2] in hashes)[1]

    def find_hashes(self, hashes: Container[str]) -> dict[str, RunFolder]:
        """The stored runs among these that are not damaged, by content hash; no other spec is read."""
        found, _ = self.survey(name for name in self.names() if name.rpartition("-")[2] in hashes)
        return {folder.spec.content_hash: folder for folder in found}

    def is_finished(self, spec: RunSpec) -> bool:
        """Whether a run has ended; an outcome that is damaged is named."""
        return self.locate(spec).outcome.is_finished

    def has_begun(self, spec: RunSpec) -> bool:
        """Whether anything of a run was measured yet."""
        return (self.path / run_name(spec) / "log.jsonl").exists()

    def claim_stack(self, specs: Sequence[RunSpec]) -> AbstractContextManager[None]:
        """Be the only process that trains these runs as one stack."""
        digest = sha256("".join(spec.content_hash for spec in specs).encode()).hexdigest()[:16]
        make_folder(self.path)
        return hold_lock(self.path / f".stack-{digest}.lock", f"a stack of {len(specs)} runs")

    def find(self, name: str, among: Sequence[str] | None = None) -> RunFolder:
        """The run with this name, hash, or unambiguous beginning of either; `NAME:weight_decay=2` tells two apart.

        Of all runs, or of those among which it is looked for.
        """
        if among is None and re.fullmatch(r"[0-9a-f]{16}", name):  # the usual case, and quick among thousands
            for entry in self.names(f"-{name}"):
                return self.folder(entry)
        parts = {entry: entry.rpartition("-") for entry in (self.names() if among is None else among)}
        wanted, *conditions = [name] if name in parts else name.split(":")
        exact = [entry for entry, (word, _, end) in parts.items() if wanted in (entry, word, end)]
        matches = exact or [
            entry for entry, (*_, end) in parts.items() if wanted in (entry[: len(wanted)], end[: len(wanted)])
        ]
        if conditions:
            matches = [entry for entry in matches if is_selected(self.folder(entry).spec, conditions)]
        if len(exact) > 1:  # a run and its forks share a word, which then means the run
            roots = [folder.name for folder in self.survey(matches)[0] if folder.spec.fork is None]
            matches = roots if len(roots) == 1 else matches
        if len(matches) == 1:
            return self.folder(matches[0])
        if matches:
            raise InputError(f"{shown(name)} names {len(matches)} runs, such as {self._tell_apart(matches)}")
        known = [known for entry, (word, _, _) in parts.items() for known in (entry, word)]
        where = named(self.path) if among is None else f"the {plural(len(among), 'run')} chosen of {named(self.path)}"
        raise InputError(f"there is no run {shown(name)} in {where}{did_you_mean(name, known)}")

    def _tell_apart(self, entries: Sequence[str]) -> str:
        """Some of these runs, two or more, by names that find them."""
        names = {entry: entry.rpartition("-")[0] for entry in entries}
        for word in set(names.values()) if len(entries) <= MOST_COMPARED else ():
            alike = [entry for entry in entries if names[entry] == word]
            found = suffixes([self.folder(entry).spec for entry in alike]) if len(alike) > 1 else [""]
            names |= {entry: f"{word}{end}" for entry, end in zip(alike, found, strict=True)} if found else {}
        shown_names = [name if len(entries) <= MOST_COMPARED else entry for entry, name in names.items()][:MOST_NAMED]
        return f"{', '.join(shown_names[:-1])} and {shown_names[-1]}"

    def folder(self, name: str) -> RunFolder:
        """The run in the folder of exactly this name, as `names` lists them."""
        path = self.path / name
        format_of(path)  # rejects what a newer grokscope wrote
        return RunFolder(path, read_spec(path))

    def survey(self, names: Iterable[str] | None = None) -> tuple[list[RunFolder], dict[str, str]]:
        """The runs with these names, or all, whose specs and outcomes can be used; and of the others why not."""
        found, damaged = [], dict[str, str]()
        for name in self.names() if names is None else names:
            try:
                folder = self.folder(name)
                folder.sealed_outcome()
                found.append(folder)
            except InputError as error:
                damaged[name] = str(error)
        return found, damaged
