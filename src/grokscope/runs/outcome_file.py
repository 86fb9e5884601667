"""A run's outcome as a file: it names the run and the sha256 of the log and manifest that say the same.

So an outcome of another run, and a log or manifest that is not the one with which the run ended, are found by every
reader. Outcomes of earlier versions name neither, and those of the first have no digest of their own.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from grokscope.files import DamagedError, named, read_file, read_json
from grokscope.runs.outcome import RunOutcome

__all__ = ["LARGEST_LOG", "OUTCOME", "SEALED", "SealedOutcome", "encode_outcome", "read_outcome"]

OUTCOME = "outcome.json"
SEALED = ("log.jsonl", "measures.jsonl", "manifest.json")
LARGEST_LOG = 2**30  # bytes of a log
DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class SealedOutcome:
    """How a run ended, and with which files."""

    outcome: RunOutcome
    """How it ended; `unfinished` while there is no such file."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The sha256 of its logs and its manifest; empty of a run that has not ended, or that an earlier version ended."""
    is_bound: bool = False
    """Whether it names its run and its files."""

    def check(self, path: Path, content: bytes) -> None:
        """Reject a log or manifest that is not the one with which the run ended."""
        if self.is_bound and _digest(content) != self.files.get(path.name, _digest(b"")):
            raise DamagedError(f"{named(path)} is not the one with which the run ended")


def encode_outcome(outcome: RunOutcome, folder: Path, run: str) -> bytes:
    """What `outcome.json` holds: how the run with this hash ended, and the digests of its files as they are now."""
    facts: dict[str, Any] = json.loads(json.dumps(outcome.to_dict()))  # as it is read again: names that are texts
    facts |= {"run": run, "files": {}}
    for name in SEALED:
        if (folder / name).exists():
            facts["files"][name] = _digest(read_file(folder / name, LARGEST_LOG))
    return json.dumps({**facts, "sha256": _digest_of(facts)}, indent=1).encode()


def read_outcome(folder: Path, run: str, is_unbound: Callable[[], bool]) -> SealedOutcome:
    """The outcome in a run's folder; whatever shows that it is not as written, or of another run, is named."""
    path = folder / OUTCOME
    try:
        facts = read_json(path, dict)
    except FileNotFoundError:
        return SealedOutcome(RunOutcome())
    digest, owner, files = (facts.pop(name, None) for name in ("sha256", "run", "files"))
    stored = facts if owner is None and files is None else {**facts, "run": owner, "files": files}
    may_lack_names = owner is None and files is None and is_unbound()  # asked only of what needs it: it reads a file
    if digest is None and not may_lack_names:
        raise DamagedError(f"{named(path)} is damaged: it lacks its sha256")
    if digest not in (None, _digest_of(stored)):
        raise DamagedError(f"{named(path)} is damaged: it does not have the sha256 that it names")
    if owner != run and not may_lack_names:
        raise DamagedError(f"{named(path)} is the outcome of another run")
    try:
        outcome = RunOutcome.from_dict(facts)
    except ValueError as error:
        raise DamagedError(f"{named(path)} is damaged: {error}") from None
    if owner is None:
        return SealedOutcome(outcome)
    if not isinstance(files, dict) or not all(DIGEST.fullmatch(str(one)) for one in files.values()):
        raise DamagedError(f"{named(path)} is damaged: it does not name the sha256 of its files")
    return SealedOutcome(outcome, files, is_bound=True)


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _digest_of(facts: Mapping[str, Any]) -> str:
    """The checksum of all that is stored about a run's end."""
    return _digest(json.dumps(facts, sort_keys=True).encode())
