"""What is wrong with a store, and what can be repaired.

Results are functions of their specs, so what is lost is computed again: a run with a damaged file is opened again
before the damage, and `grokscope resume` writes the same bytes (same device, versions and slots).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from os.path import lexists
from pathlib import Path

from grokscope.errors import InputError
from grokscope.files import DamagedError, discard, free_place, named, read_json, write_atomically
from grokscope.runs.damage import Damage, find_damages
from grokscope.runs.index import INDEX
from grokscope.runs.locks import BusyError
from grokscope.runs.outcome_file import OUTCOME
from grokscope.runs.plans import FOLDER as PLANS
from grokscope.runs.plans import read_plans
from grokscope.runs.run_folder import RunFolder
from grokscope.runs.spec_file import FORMAT, UNBOUND, format_of, read_spec, spec_bytes
from grokscope.runs.store import CANCELLED, Store
from grokscope.specs import Membership, RunSpec

__all__ = ["Finding", "examine", "planned_runs", "set_aside"]

AGAIN = "for `grokscope resume`"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong."""

    run: str
    """The run's folder, or the file beside the runs."""
    problem: str
    """What is wrong, with the file's name."""
    remedy: str
    """What repairs it; empty if nothing does."""
    mended: bool = False
    """Whether that was done."""


@dataclass(frozen=True)
class Planned:
    """A run as the plans of a store name it."""

    spec: RunSpec
    made_for: tuple[Membership, ...]


def examine(
    store: Store, repair: bool = False, report: Callable[[str], None] = lambda sentence: None
) -> Iterator[Finding]:
    """Every file of every run, checked; runs that are being written are left to their writers, and reported.

    Nothing is written unless it is to be repaired.
    """
    yield from _examine_beside(store, repair)
    planned = planned_runs(store)
    for name in store.names():
        try:
            yield from _examine_run(store.path / name, planned.get(_hash_in(name)), repair)
        except BusyError as error:
            report(f"{error}; it was not examined")
        except (InputError, OSError) as error:
            yield Finding(name, f"it could not be {'repaired' if repair else 'examined'}: {error}", "")


def _hash_in(name: str) -> str:
    return name.rpartition("-")[2]


def _examine_beside(store: Store, repair: bool) -> Iterator[Finding]:
    """The files beside the runs: plans, and what is no file where one should be."""
    for path in (store.path / CANCELLED, store.path / INDEX):
        if lexists(path) and (path.is_symlink() or not path.is_file()):
            found = Finding(path.name, f"{named(path)} is not a file", "it is removed")
            yield _mended(found, repair, partial(discard, path))
    plans = store.path / PLANS
    if lexists(plans) and not plans.is_dir():
        found = Finding(PLANS, f"{named(plans)} is not a folder", "it is set aside")
        yield _mended(found, repair, partial(_move_aside, plans))
    problems: list[str] = []
    damaged = [file for file, plan in read_plans(store, problems.append).items() if plan is None]
    for file, problem in zip(damaged, problems, strict=True):
        remedy = "it is set aside; runs that it alone names are forgotten, and what it measures of them"
        yield _mended(Finding(f"{PLANS}/{file}", problem, remedy), repair, partial(_move_aside, plans / file))


def _move_aside(path: Path) -> Path:
    """Give it a hidden name; nothing is deleted."""
    return path.rename(free_place(path.with_name(f".damaged-{path.name}")))


def _mended(finding: Finding, repair: bool, mend: Callable[[], object]) -> Finding:
    """The finding, repaired if that is wished and can be done."""
    if not repair or not finding.remedy:
        return finding
    try:
        mend()
    except (InputError, OSError) as error:
        return replace(finding, problem=f"{finding.problem}; it could not be repaired: {error}")
    return replace(finding, mended=True)


def _examine_run(path: Path, planned: Planned | None, repair: bool) -> Iterator[Finding]:
    if not path.is_dir():
        remedy = f"it is set aside, {AGAIN}" if planned else ""
        found = Finding(path.name, f"{named(path)} is not a folder", remedy)
        yield _mended(found, repair, partial(_move_aside, path))
        return
    repair = repair and not path.is_symlink()  # its files lie elsewhere
    for found in filter(None, (check(path, planned, repair) for check in (_examine_format, _examine_spec))):
        yield found
        if not found.mended:
            return
    folder = RunFolder(path, read_spec(path))
    if folder.is_held():
        raise BusyError(f"{folder.name} is being written by {folder.owner}")
    left = [half.name for half in path.glob(".*.partial")]
    if repair and folder.path / "lock" in folder.misplaced():
        discard(folder.path / "lock")
    with folder.lock() if repair else nullcontext():  # the lock takes away what a killed writer left half written
        if left:
            yield Finding(path.name, f"a killed writer left {', '.join(map(ascii, left))}", "they are removed", repair)
        damages = find_damages(folder, planned.made_for if planned else ())
        yield from _repaired(folder, damages, planned, repair)


def _examine_format(path: Path, planned: Planned | None, repair: bool) -> Finding | None:
    try:
        format_of(path)
    except DamagedError as error:
        found = Finding(path.name, str(error), "it is written again")
        return _mended(found, repair, partial(_write_format, path))
    except InputError as error:  # of a newer grokscope
        return Finding(path.name, str(error), "")
    return None


def _write_format(path: Path) -> None:
    """The run's format: this version's, unless its outcome is one of those from before outcomes named their run."""
    discard(path / "format")
    try:
        is_old = "run" not in read_json(path / OUTCOME, dict)
    except (FileNotFoundError, DamagedError):
        is_old = False
    write_atomically(path / "format", f"grokscope run {UNBOUND if is_old else FORMAT}\n".encode())


def _examine_spec(path: Path, planned: Planned | None, repair: bool) -> Finding | None:
    try:
        read_spec(path)
    except DamagedError as error:
        remedy = "" if planned is None else "it is in a plan of this store, and is written again"
        return _mended(Finding(path.name, str(error), remedy), repair, partial(_write_spec, path, planned))
    return None


def _write_spec(path: Path, planned: Planned | None) -> None:
    assert planned is not None
    discard(path / "spec.json")
    write_atomically(path / "spec.json", spec_bytes(planned.spec))


def _repaired(folder: RunFolder, damages: Sequence[Damage], planned: Planned | None, repair: bool) -> Iterator[Finding]:
    """What is wrong with a run that nobody writes, as findings; repaired all together if that is wished."""
    findings = [Finding(folder.name, damage.problem, _remedy(folder, damage)) for damage in damages]
    # A run of somebody else was only watched: nobody here can train it again.
    curable = [damage for damage, found in zip(damages, findings, strict=True) if found.remedy]
    problem = None
    if repair and curable:
        try:
            _repair(folder, curable, planned)
        except (InputError, OSError) as error:
            problem = f"; it could not be repaired: {error}"
    for found in findings:
        is_mended = repair and bool(found.remedy) and problem is None
        yield replace(found, mended=is_mended, problem=f"{found.problem}{problem or ''}")


def _remedy(folder: RunFolder, damage: Damage) -> str:
    if damage.step is None:
        return "it is written again" if damage.written else "what is damaged of it is removed"
    if folder.spec.model:
        return ""
    where = f"from before step {damage.step}" if damage.step < folder.spec.training.steps else "at its end"
    return f"the run is opened again {where}, {AGAIN}"


def _repair(folder: RunFolder, damages: Sequence[Damage], planned: Planned | None) -> None:
    steps = [damage.step for damage in damages if damage.step is not None]
    if steps:
        folder.reopen()  # first: what is killed from here on is a run that has not ended
    known = _memberships(folder)
    for path in {path for damage in damages for path in damage.discarded}:
        discard(path)
    for damage in damages:
        if damage.written:
            write_atomically(*damage.written)
    if steps:
        folder.rewind(min(steps) - 1)  # what follows is evaluated again, and so computed again
    folder.add_memberships({*known, *(planned.made_for if planned else ())})


def _memberships(folder: RunFolder) -> tuple[Membership, ...]:
    try:
        return folder.made_for
    except DamagedError:
        return ()


def set_aside(store: Store, names: Sequence[str]) -> list[Path]:
    """Move runs out of the way, so that they are trained again."""
    return [_move_aside(store.path / name) for name in names]


def planned_runs(store: Store) -> dict[str, Planned]:
    """The runs of all plans that can be read, by content hash."""
    found: dict[str, Planned] = {}
    for plan in read_plans(store, lambda sentence: None).values():
        for spec in plan.runs if plan else ():
            studies = plan.memberships.get(spec, ()) if plan else ()
            known = found.get(spec.content_hash)
            found[spec.content_hash] = Planned(spec, (*(known.made_for if known else ()), *studies))
    return found
