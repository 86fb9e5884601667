"""What is wrong with a store, file by file: checksums, gaps, leftovers; and what can be mended.

Results are functions of their specs, so what is lost is computed again: a run with a damaged file is opened again
before the damage, and `grokscope resume` writes the same bytes (same device, versions and slots).
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from grokscope.errors import InputError
from grokscope.runs.locks import BusyError
from grokscope.runs.plans import remembered
from grokscope.runs.remote import Commit, Remote, RemoteStore
from grokscope.runs.run_folder import CHECKPOINT, LOGS, RunFolder, refuse_other_formats, run_name
from grokscope.runs.store import Store
from grokscope.files import DamagedError, named, write_atomically
from grokscope.specs import RunSpec
from grokscope.training.checkpoint import MANIFEST, load_tensors

__all__ = ["Finding", "damage_of", "damaged_runs", "examine", "examine_remote", "set_aside"]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong."""

    run: str
    """The run's folder."""
    problem: str
    """What is wrong, with the file's name."""
    remedy: str
    """What mends it; empty if nothing does."""
    mended: bool = False
    """Whether that was done."""


def examine(store: Store, repair: bool = False) -> Iterator[Finding]:
    """Every file of every run, checked; runs that are being written are left to their writers."""
    known = {run_name(spec): spec for plan in _plans(store) for spec in plan}
    for path in sorted(store.path.iterdir()) if store.path.is_dir() else ():
        is_run = (path / "spec.json").exists() or path.name in known
        is_ours = path.name.isprintable() and not path.name.startswith(".")  # hidden is what was set aside
        if is_ours and is_run and path.is_dir() and not path.is_symlink():
            yield from _examine_run(path, known.get(path.name), repair)


def _examine_run(path: Path, planned: RunSpec | None, repair: bool) -> Iterator[Finding]:
    try:
        refuse_other_formats(path)
    except InputError as error:
        yield Finding(path.name, str(error), "")
        return
    try:
        spec = RunSpec.from_json((path / "spec.json").read_text())
        if run_name(spec).rpartition("-")[2] != path.name.rpartition("-")[2]:
            raise InputError("it is of another run")
    except (OSError, UnicodeDecodeError, InputError) as error:
        if repair and planned is not None:
            write_atomically(
                path / "spec.json", (json.dumps(planned.to_dict(), indent=1, sort_keys=True) + "\n").encode()
            )
        remedy = "" if planned is None else "it is in a plan of this store, and is written again"
        yield Finding(
            path.name, f"{named(path / 'spec.json')} cannot be used: {error}", remedy, repair and bool(planned)
        )
        if not (repair and planned):
            return
        spec = planned
    folder = RunFolder(path, spec)
    left = [half.name for half in path.glob(".*.partial")]
    try:
        with folder.locked():  # takes away what a killed writer left half written
            if left:
                yield Finding(path.name, f"a killed writer left {', '.join(left)}", "they are removed", True)
            yield from _examine_files(folder, repair)
    except BusyError:
        return


def _examine_files(folder: RunFolder, repair: bool) -> Iterator[Finding]:
    """Logs, checkpoints and outcome of a run that nobody writes."""
    gap = None
    for problem, step in [*_damaged_checkpoints(folder), *_damaged_logs(folder), *_damaged_outcome(folder)]:
        gap = step if gap is None else min(gap, step)
        if folder.spec.model:  # of somebody else, and only watched: nobody here can train it again
            yield Finding(folder.name, problem, "")
            continue
        where = f"from before step {step}" if step < folder.spec.training.steps else "at its end"
        yield Finding(folder.name, problem, f"the run is opened again {where}, for `grokscope resume`", repair)
    if repair and gap is not None and not folder.spec.model:
        for path, _ in _bad_checkpoints(folder):
            path.unlink(missing_ok=True)
        (folder.path / "outcome.json").unlink(missing_ok=True)
        folder.rewind(gap - 1)  # what follows is looked at again, and so computed again


def _bad_checkpoints(folder: RunFolder) -> Iterator[tuple[Path, DamagedError]]:
    for path in sorted(folder.path.iterdir()):
        if CHECKPOINT.fullmatch(path.name):
            try:
                load_tensors(path)
            except DamagedError as error:
                yield path, error


def _damaged_checkpoints(folder: RunFolder) -> Iterator[tuple[str, int]]:
    """What is wrong, and the first step that has to be computed again."""
    for path, error in _bad_checkpoints(folder):
        yield str(error), int(path.name.partition("-")[2][:8])
    try:
        listed = json.loads((folder.path / MANIFEST).read_bytes())
    except (FileNotFoundError, ValueError):  # then no checkpoint is vouched for, and each was named above
        return
    for name in sorted(listed) if isinstance(listed, dict) else ():
        match = CHECKPOINT.fullmatch(name)
        if match and not (folder.path / name).exists() and (folder.path / "outcome.json").exists():
            yield f"the checkpoint {named(folder.path / name)} is missing", int(match[2])


def _damaged_logs(folder: RunFolder) -> Iterator[tuple[str, int]]:
    first = folder.spec.fork.step if folder.spec.fork else 0
    due = sorted({first, *folder.spec.evaluation_steps})
    is_whole = (folder.path / "outcome.json").exists() and not folder.spec.model  # whoever watches looks when it likes
    for which in LOGS:
        path = folder.path / f"{which}.jsonl"
        bad, steps = folder.bad_records(which), [row["step"] for row in folder.log(which)]
        if bad:
            lost = [step for step in due if step >= first and step not in set(steps)]
            yield f"{named(path)} has {bad} torn or altered records", min(lost, default=first)
        elif which == "log" and is_whole:
            last = _last_look(folder, steps)
            lost = [step for step in due if first <= step <= last and step not in set(steps)]
            if lost:
                yield f"{named(path)} lacks {len(lost)} of its records", lost[0]


def _last_look(folder: RunFolder, steps: list[int]) -> int:
    """Until when a finished run was looked at: its last step, unless it ended before."""
    try:
        facts = folder.outcome or {}
    except DamagedError:
        facts = {}
    if facts.get("failed_at") is not None:
        return int(facts["failed_at"]) - 1
    return max(steps, default=0) if facts.get("stopped_early") else folder.spec.training.steps


def _damaged_outcome(folder: RunFolder) -> Iterator[tuple[str, int]]:
    try:
        folder.outcome  # noqa: B018 (reading it checks it)
    except DamagedError as error:
        yield str(error), folder.spec.training.steps + 1


def damage_of(folder: RunFolder) -> str | None:
    """What is wrong with a finished run's outcome or logs, all that records are made of; None if they are whole."""
    try:
        if folder.outcome is None:
            return None
    except DamagedError as error:
        return str(error)
    return next((problem for problem, _ in _damaged_logs(folder)), None)


def damaged_runs(store: Store) -> dict[str, str]:
    """The runs of a store of which no record can be made, by name, with what is wrong."""
    found = {}
    for name in store.names():
        try:
            why = damage_of(store.folder(name))
        except DamagedError as error:
            why = str(error)
        if why is not None:
            found[name] = why
    return found


def set_aside(store: Store, names: Sequence[str]) -> list[Path]:
    """Move runs out of the way, so that they are trained again; nothing is deleted."""
    moved = []
    for name in names:
        place = store.path / f".damaged-{name}"
        number = 1
        while place.exists():
            number += 1
            place = store.path / f".damaged-{name}.{number}"
        moved.append((store.path / name).rename(place))
    return moved


def _plans(store: Store) -> Iterator[tuple[RunSpec, ...]]:
    """The runs of every plan that can be read; one that cannot is no reason to examine nothing."""
    try:
        yield from (plan.runs for plan in remembered(store))
    except InputError:
        return


def examine_remote(remote: Remote, repair: bool = False) -> Iterator[Finding]:
    """Every committed file of a remote place, fetched and checked; to repair is to forget the commits that are damaged.

    A marker says that a run has ended, whatever became of its files: only without it `grokscope resume` goes on. That
    has to find the run, so one that no whole commit and no plan names is committed anew, as its spec alone.
    """
    with RemoteStore(remote.address) as store:
        planned = {run_name(spec) for plan in _plans(store) for spec in plan}
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
                    store.add(spec).commit(0, finished=False)
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
