"""What is wrong with one run, file by file: what was replaced, torn, altered, swapped or lost."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from grokscope.errors import InputError, plural
from grokscope.files import DamagedError, named, read_file, read_json
from grokscope.runs.logs import columns_from, decode_memberships
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.outcome_file import OUTCOME, SealedOutcome
from grokscope.runs.run_folder import CHECKPOINT, LOGS, MADE_FOR, PASSING, Log, RunFolder
from grokscope.runs.store import Store
from grokscope.specs import Membership
from grokscope.training.checkpoint import MANIFEST, RUN, load_tensors, read_manifest

__all__ = ["Damage", "damaged_runs", "find_damage", "find_damages"]


@dataclass(frozen=True)
class Damage:
    """One thing that is wrong with a run."""

    problem: str
    """What is wrong, with the file's name."""
    step: int | None = None
    """The first step that has to be computed again; None if none has to be."""
    discarded: tuple[Path, ...] = ()
    """What is removed to repair it."""
    written: tuple[Path, bytes] | None = None
    """The file that is written to repair it, with its content."""


def find_damages(folder: RunFolder, planned: Sequence[Membership] = ()) -> list[Damage]:
    """Everything that is wrong with a run whose spec is whole and that nobody writes; a plan may name its studies."""
    found = list(_misplaced(folder))
    misplaced = {path for damage in found for path in damage.discarded}
    end = folder.path / OUTCOME
    sealed = SealedOutcome(RunOutcome())
    if end not in misplaced:
        try:
            sealed = folder.sealed_outcome()
        except DamagedError as error:
            found.append(Damage(str(error), folder.spec.training.steps + 1, (end,)))
    if folder.path / MANIFEST not in misplaced:
        found += _damaged_checkpoints(folder, sealed, misplaced)
    for which in LOGS:
        if folder.path / f"{which}.jsonl" not in misplaced:
            found += _damaged_log(folder, which, sealed)
    if sealed.outcome.is_finished and not found:
        found += _contradiction(folder, sealed.outcome)
    if folder.path / PASSING not in misplaced:
        found += _left_over(folder, sealed)
    if folder.path / MADE_FOR not in misplaced:
        found += _damaged_memberships(folder, planned if sealed.outcome.is_finished else ())
    return found


def _first_step(folder: RunFolder) -> int:
    return folder.spec.fork.step if folder.spec.fork else 0


def _misplaced(folder: RunFolder) -> Iterator[Damage]:
    """What lies in the place of a file and is none."""
    for path, problem in folder.misplaced().items():
        step: int | None = None
        if path.name in (MANIFEST, *(f"{which}.jsonl" for which in LOGS)):
            step = _first_step(folder)
        elif match := CHECKPOINT.fullmatch(path.name):
            step = int(match[2])
        elif path.name == OUTCOME:
            step = folder.spec.training.steps + 1
        yield Damage(problem, step, (path,))


def _damaged_checkpoints(folder: RunFolder, sealed: SealedOutcome, misplaced: set[Path]) -> Iterator[Damage]:
    path, first = folder.path / MANIFEST, _first_step(folder)
    stored = [one for one in folder.stored_checkpoints() if one not in misplaced]
    try:
        folder.check_manifest(sealed)
        manifest = read_manifest(folder.path, folder.spec.identity)
    except DamagedError as error:
        content = _manifest_for(folder, stored)
        if sealed.is_bound and sealed.files.get(MANIFEST) == sha256(content).hexdigest():
            yield Damage(str(error), written=(path, content))
            return
        yield Damage(str(error), min(_lost_checkpoints(folder, stored), default=first), ())
        try:
            manifest = read_manifest(folder.path, folder.spec.identity)
        except DamagedError:
            yield Damage(f"no checkpoint beside {named(path)} can be believed", first, (path, *stored))
            return
    for one in stored:
        try:
            load_tensors(one, folder.spec.identity)
        except DamagedError as error:
            yield Damage(str(error), _step_of(one), (one,))
    for name in sorted(manifest.keys() - {one.name for one in (*stored, *misplaced)} - {RUN}):
        if CHECKPOINT.fullmatch(name) and sealed.outcome.is_finished:
            one = folder.path / name
            yield Damage(f"the checkpoint {named(one)} is missing", _step_of(one))


def _manifest_for(folder: RunFolder, stored: Sequence[Path]) -> bytes:
    """The manifest as it would be if these checkpoints, as they are now, were those that were written."""
    entries: dict[str, object] = {RUN: folder.spec.identity}
    for path in stored:
        try:
            content = read_file(path, path.stat().st_size)
        except (OSError, DamagedError):
            continue
        entries[path.name] = {"sha256": sha256(content).hexdigest(), "bytes": len(content)}
    return json.dumps(entries, indent=1, sort_keys=True).encode()


def _lost_checkpoints(folder: RunFolder, stored: Sequence[Path]) -> list[int]:
    """The steps at which a checkpoint was due and none is stored, if any is stored at all."""
    steps = {_step_of(path) for path in stored}
    due = folder.spec.checkpoints.steps(folder.spec.training.steps)
    return [step for step in due if _first_step(folder) <= step <= max(steps, default=-1) and step not in steps]


def _step_of(checkpoint: Path) -> int:
    match = CHECKPOINT.fullmatch(checkpoint.name)
    assert match is not None
    return int(match[2])


def _damaged_log(folder: RunFolder, which: Log, sealed: SealedOutcome) -> Iterator[Damage]:
    path, first = folder.path / f"{which}.jsonl", _first_step(folder)
    try:
        rows, bad = folder.whole_rows(which)
    except DamagedError as error:
        yield Damage(str(error), first, (path,))
        return
    steps = [row["step"] for row in rows]
    due = [step for step in sorted({first, *folder.spec.evaluation_steps}) if step >= first]
    lost = [step for step in due if step not in set(steps)]
    is_ended = which == "log" and sealed.outcome.is_finished and not folder.spec.model
    missing = [step for step in lost if step <= _last_evaluation(folder, sealed.outcome, steps)] if is_ended else []
    if bad:
        again = min(lost, default=first)
        yield Damage(f"{named(path)} has {plural(bad, 'line')} torn, altered or of another run", again)
    elif missing:  # a monitor evaluates whenever it is called, so of its log nothing is known to be missing
        yield Damage(f"{named(path)} lacks {len(missing)} of its records", missing[0])
    else:
        try:
            folder.check_log(sealed, which)
        except DamagedError as error:  # which of its lines are right is not known, but for a lost end
            ended = max(map(_step_of, folder.stored_checkpoints()), default=-1)  # a run ends with a state
            yield Damage(str(error), next((step for step in lost if step <= ended), first))


def _last_evaluation(folder: RunFolder, outcome: RunOutcome, steps: Sequence[int]) -> int:
    """Until when a finished run was evaluated: its last step, unless it ended before."""
    if outcome.failed_at is not None:
        return outcome.failed_at - 1
    return max(steps, default=0) if outcome.stopped_early else folder.spec.training.steps


def _contradiction(folder: RunFolder, outcome: RunOutcome) -> Iterator[Damage]:
    """An outcome that is not what the log says."""
    try:
        said = RunOutcome.from_evaluations(columns_from(folder.whole_rows()[0]), outcome.failed_at)
    except (KeyError, InputError):  # somebody else's log may lack what an outcome is made of
        return
    events = [(one.outcome, one.memorized, one.grokked) for one in (said, outcome)]
    if events[0] != events[1] and not folder.spec.model:
        end = folder.path / OUTCOME
        yield Damage(f"{named(end)} does not say what the run's log says", folder.spec.training.steps + 1, (end,))


def _left_over(folder: RunFolder, sealed: SealedOutcome) -> Iterator[Damage]:
    path = folder.path / PASSING
    try:
        read_json(path, list)
    except FileNotFoundError:
        return
    except DamagedError as error:
        yield Damage(str(error), discarded=(path,))
    else:
        if sealed.is_bound:
            yield Damage(f"{named(path)} is of a run that goes on, and this one has ended", discarded=(path,))


def _damaged_memberships(folder: RunFolder, planned: Sequence[Membership]) -> Iterator[Damage]:
    path = folder.path / MADE_FOR
    try:
        stored, bad = decode_memberships(read_file(path), folder.spec.identity)
    except FileNotFoundError:
        stored, bad = [], 0
    except DamagedError as error:
        yield Damage(str(error), discarded=(path,))
        return
    if bad:
        problem = f"{named(path)} has {plural(bad, 'line')} torn, altered or of another run"
        yield Damage(problem, discarded=(path,))
    elif missing := {*planned} - {*stored}:
        yield Damage(f"{named(path)} lacks {len(missing)} of the studies that a plan names", discarded=(path,))


def find_damage(store: Store, name: str) -> str | None:
    """What is wrong with a finished run's spec, outcome or logs, which records are made of; None if they are whole."""
    try:
        folder = store.folder(name)
        sealed = folder.sealed_outcome()
    except DamagedError as error:
        return str(error)
    if not sealed.outcome.is_finished:
        return None
    return next((damage.problem for which in LOGS for damage in _damaged_log(folder, which, sealed)), None)


def damaged_runs(store: Store) -> dict[str, str]:
    """The runs of a store of which no record can be made, by name, with what is wrong."""
    return {name: why for name in store.names() if (why := find_damage(store, name)) is not None}
