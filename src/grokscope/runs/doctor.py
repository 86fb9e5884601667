"""What is wrong with a store, file by file: checksums, gaps, leftovers; and what can be repaired.

Results are functions of their specs, so what is lost is computed again: a run with a damaged file is opened again
before the damage, and `grokscope resume` writes the same bytes (same device, versions and slots).
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import DamagedError, named, write_atomically
from grokscope.runs.locks import BusyError
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.plans import kept_plans
from grokscope.runs.remote import Commit, Remote, RemoteStore
from grokscope.runs.run_folder import CHECKPOINT, LOGS, RunFolder, reject_other_formats, run_name, spec_bytes
from grokscope.runs.store import Store
from grokscope.specs import RunSpec
from grokscope.training.checkpoint import MANIFEST, load_tensors

__all__ = ["Finding", "damaged_runs", "examine", "examine_remote", "find_damage", "set_aside"]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong."""

    run: str
    """The run's folder."""
    problem: str
    """What is wrong, with the file's name."""
    remedy: str
    """What repairs it; empty if nothing does."""
    mended: bool = False
    """Whether that was done."""


def examine(store: Store, repair: bool = False) -> Iterator[Finding]:
    """Every file of every run, checked; runs that are being written are left to their writers.

    Nothing is written unless it is to be repaired.
    """
    known = _planned_runs(store)
    for path in sorted(store.path.iterdir()) if store.path.is_dir() else ():
        is_run = (path / "spec.json").exists() or path.name in known
        is_ours = path.name.isprintable() and not path.name.startswith(".")  # hidden is what was set aside
        if is_ours and is_run and path.is_dir() and not path.is_symlink():
            yield from _examine_run(path, known.get(path.name), repair)


def _examine_run(path: Path, planned: RunSpec | None, repair: bool) -> Iterator[Finding]:
    try:
        reject_other_formats(path)
    except InputError as error:
        yield Finding(path.name, str(error), "")
        return
    try:
        spec = RunSpec.from_json((path / "spec.json").read_text())
        if run_name(spec).rpartition("-")[2] != path.name.rpartition("-")[2]:
            raise InputError("it belongs to another run")
    except (OSError, UnicodeDecodeError, InputError) as error:
        if repair and planned is not None:
            write_atomically(path / "spec.json", spec_bytes(planned))
        remedy = "" if planned is None else "it is in a plan of this store, and is written again"
        yield Finding(
            path.name, f"{named(path / 'spec.json')} cannot be used: {error}", remedy, repair and bool(planned)
        )
        if not (repair and planned):
            return
        spec = planned
    folder = RunFolder(path, spec)
    left = [half.name for half in path.glob(".*.partial")]
    if not repair and folder.is_held():
        return
    try:
        with folder.lock() if repair else nullcontext():  # the lock takes away what a killed writer left half written
            if left:
                yield Finding(path.name, f"a killed writer left {', '.join(left)}", "they are removed", repair)
            yield from _examine_files(folder, repair)
    except BusyError:
        return


def _examine_files(folder: RunFolder, repair: bool) -> Iterator[Finding]:
    """Logs, checkpoints and outcome of a run that nobody writes."""
    end, outcome, found = folder.path / "outcome.json", RunOutcome(), list(_damaged_checkpoints(folder))
    try:
        outcome = folder.outcome
    except DamagedError as error:
        found.append((str(error), folder.spec.training.steps + 1, end))
    found += _damaged_logs(folder, outcome)
    for problem, step, _ in found:
        where = f"from before step {step}" if step < folder.spec.training.steps else "at its end"
        # A run of somebody else was only watched: nobody here can train it again.
        remedy = "" if folder.spec.model else f"the run is opened again {where}, for `grokscope resume`"
        yield Finding(folder.name, problem, remedy, repair and bool(remedy))
    if repair and found and not folder.spec.model:
        for path in {end, *(path for *_, path in found)}:
            path.unlink(missing_ok=True)
        folder.rewind(min(step for _, step, _ in found) - 1)  # what follows is evaluated again, and so computed again


Damage = tuple[str, int, Path]  # what is wrong, the first step that has to be computed again, what is removed for it


def _damaged_checkpoints(folder: RunFolder) -> Iterator[Damage]:
    for path in sorted(folder.path.iterdir()):
        if match := CHECKPOINT.fullmatch(path.name):
            try:
                load_tensors(path)
            except DamagedError as error:
                yield str(error), int(match[2]), path
    try:
        listed = json.loads((folder.path / MANIFEST).read_bytes())
    except (FileNotFoundError, ValueError):  # then no checkpoint is vouched for, and each was named above
        return
    for name in sorted(listed) if isinstance(listed, dict) else ():
        match, path = CHECKPOINT.fullmatch(name), folder.path / name
        if match and not path.exists() and (folder.path / "outcome.json").exists():
            yield f"the checkpoint {named(path)} is missing", int(match[2]), path


def _damaged_logs(folder: RunFolder, outcome: RunOutcome) -> Iterator[Damage]:
    first, end = folder.spec.fork.step if folder.spec.fork else 0, folder.path / "outcome.json"
    due = [step for step in sorted({first, *folder.spec.evaluation_steps}) if step >= first]
    for which in LOGS:
        path = folder.path / f"{which}.jsonl"
        bad, steps = folder.count_bad_rows(which), [row["step"] for row in folder.log(which)]
        lost = [step for step in due if step not in set(steps)]
        if bad:
            yield f"{named(path)} has {bad} torn or altered records", min(lost, default=first), end
        # A monitor evaluates whenever it is called, so nothing is known to be missing.
        elif which == "log" and end.exists() and not folder.spec.model:
            last = _last_evaluation(folder.spec, outcome, steps)
            if lost := [step for step in lost if step <= last]:
                yield f"{named(path)} lacks {len(lost)} of its records", lost[0], end


def _last_evaluation(spec: RunSpec, outcome: RunOutcome, steps: list[int]) -> int:
    """Until when a finished run was evaluated: its last step, unless it ended before."""
    if outcome.failed_at is not None:
        return outcome.failed_at - 1
    return max(steps, default=0) if outcome.stopped_early else spec.training.steps


def find_damage(store: Store, name: str) -> str | None:
    """What is wrong with a finished run's spec, outcome or logs, which records are made of; None if they are whole."""
    try:
        folder = store.folder(name)
        outcome = folder.outcome
    except DamagedError as error:
        return str(error)
    return next((problem for problem, *_ in _damaged_logs(folder, outcome)), None) if outcome.is_finished else None


def damaged_runs(store: Store) -> dict[str, str]:
    """The runs of a store of which no record can be made, by name, with what is wrong."""
    return {name: why for name in store.names() if (why := find_damage(store, name)) is not None}


def set_aside(store: Store, names: Sequence[str]) -> list[Path]:
    """Move runs out of the way, so that they are trained again; nothing is deleted."""
    return [(store.path / name).rename(_free_place(store.path / f".damaged-{name}")) for name in names]


def _free_place(path: Path) -> Path:
    numbered = (path.with_name(f"{path.name}.{number}") for number in count(2))
    return next(place for place in chain([path], numbered) if not place.exists())


def _planned_runs(store: Store) -> dict[str, RunSpec]:
    """The runs of all plans, by name; plans that cannot be read are no reason to examine nothing."""
    try:
        return {run_name(spec): spec for plan in kept_plans(store) for spec in plan.runs}
    except InputError:
        return {}


def examine_remote(remote: Remote, repair: bool = False) -> Iterator[Finding]:
    """Every committed file of a remote place, fetched and checked; to repair is to forget the commits that are damaged.

    A marker says that a run has ended, whatever became of its files: only without it `grokscope resume` goes on. That
    has to find the run, so one that no whole commit and no plan names is committed anew, as its spec alone.
    """
    with RemoteStore(remote.address) as store:
        planned = _planned_runs(store)
        for run in remote.runs():
            damaged, is_found = _damaged_commits(remote, run)
            spec = None
            if damaged and not is_found and run not in planned:
                spec = _whole_spec(remote, run, [commit for commit, _ in damaged])
                if spec is None:
                    lost = "; nothing else here says what was run, so its commit is kept"
                    yield from (Finding(run, problem + lost, "") for _, problem in damaged)
                    continue
                if repair:
                    store.create(spec).commit(0, finished=False)
            for commit, problem in damaged:
                if repair:
                    remote.remove(f"{run}/{commit.marker}")
                rest = "its commit is forgotten" if spec is None else "of its commit the spec alone is kept"
                yield Finding(run, problem, f"{rest}, for `grokscope resume`", repair)


def _damaged_commits(remote: Remote, run: str) -> tuple[list[tuple[Commit, str]], bool]:
    """The commits that would be believed before the first whole one, with what is wrong; and whether there is one."""
    damaged = []
    for commit in remote.commits(run):
        try:
            remote.content(run, commit)
        except DamagedError as error:
            damaged.append((commit, str(error)))
        else:
            return damaged, True
    return damaged, False


def _whole_spec(remote: Remote, run: str, commits: Sequence[Commit]) -> RunSpec | None:
    """The run's spec, from whichever damaged commit still has it."""
    for commit in commits:
        with suppress(DamagedError, KeyError, UnicodeDecodeError, InputError):
            spec = RunSpec.from_json(remote.content(run, commit, only=("spec.json",))["spec.json"].decode())
            if run_name(spec) == run:
                return spec
    return None
