"""What a page shows: a folder of runs, finished or not, or records, packed or as a collection, with their claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from grokscope import files
from grokscope.errors import InputError, for_shell, shown
from grokscope.files import named
from grokscope.runs.packed_files import collection_folder, has_records, packed_files
from grokscope.runs.packing import unpack_records
from grokscope.runs.records import RunRecord, merge_records
from grokscope.runs.run_folder import RunFolder, run_name
from grokscope.runs.runs import Run, Runs
from grokscope.runs.store import Store
from grokscope.specs import RunSpec
from grokscope.view.collection import open_collection

__all__ = ["ShownRun", "Source", "read_json", "read_runs", "source_of", "wanted_names"]

MOST_RUNS = 10_000  # of one page: reading ten thousand logs takes a minute


@dataclass(frozen=True, eq=False)
class ShownRun:
    """One run on a page."""

    name: str
    """What it is called: its folder, or its spec's name."""
    record: RunRecord
    """Spec, outcome, log and what was measured."""
    stored: Run | None = None
    """The run with its weights, where it comes from a store."""

    @property
    def is_finished(self) -> bool:
        """Whether it has ended; an unfinished run is shown as far as it is logged."""
        return self.record.outcome.is_finished


@dataclass(frozen=True, eq=False)
class Source:
    """A folder's content, read once."""

    title: str
    """What the page is called."""
    runs: tuple[ShownRun, ...]
    """Its runs, by name."""
    claims: tuple[Mapping[str, Any], ...] = ()
    """Claims that were judged: name, statement, where, reported, rule, value, interval, n, verdict, why, table."""
    message: tuple[Mapping[str, Any], ...] = ()
    """What a study says first: sentences with their topic and the claims whose numbers they state."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Where the results were made, where a file says so."""
    problems: tuple[str, ...] = ()
    """What could not be read, a sentence each."""


def source_of(path: Path, title: str = "", match: str = "") -> Source:
    """Everything that can be shown of a folder, or of its runs with some names; what is damaged is left out and named.

    `match` is the beginning of a name, or a pattern (`add_mod97_*`). More runs than a page can show are rejected before
    their logs are read.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.jobs import run_all
    >>> from grokscope.runs import Store
    >>> from grokscope.specs import RunSpec
    >>> small = {"layers": 1, "width": 8, "heads": 1, "mlp_width": 16, "steps": 2, "batch_size": 4}
    >>> spec = RunSpec("add_mod5").with_values(small)
    >>> with TemporaryDirectory() as folder:
    ...     run_all([spec], Store(folder), compiled=False)
    ...     [run.record.spec.task for run in source_of(Path(folder)).runs]
    ['add_mod5']
    """
    if not path.is_dir():
        raise InputError(f"there is no folder {named(path)}")
    runs, problems = _of_records(path, match) if has_records(path) else read_runs(path, wanted_names(path, match))
    if not runs:
        why = f"; {problems[0]}" if problems else ""
        what = (
            f"no run has a name like {shown(match)}"
            if match
            else "neither runs nor records (*.records.gz or a collection)"
        )
        raise InputError(f"there is nothing to show in {named(path)}: {what}{why}")
    claims, message = (read_json(path / f"{name}.json", list) for name in ("claims", "message"))
    return Source(
        title=title or path.resolve().name,
        runs=tuple(sorted(runs, key=lambda run: run.name)),
        claims=tuple(claim for claim in claims if isinstance(claim, dict)),
        message=tuple(row for row in message if isinstance(row, dict)),
        provenance=read_json(path / "provenance.json", dict),
        problems=tuple(problems),
    )


def wanted_names(path: Path, match: str = "") -> list[str]:
    """The runs that are wanted, by name; more than a page shows are rejected."""
    names = [name for name in Store(path).names() if _is_wanted(name, match)]
    _reject_more_than_fit(len(names), path)
    return names


def _reject_more_than_fit(count: int, path: Path) -> None:
    if count > MOST_RUNS:
        raise InputError(
            f"{named(path)} has {count:,} runs to show, and a page shows at most {MOST_RUNS:,}: "
            f"`grokscope report {for_shell(path)} --match 'add_mod97_s1*'` selects some by name, and `grokscope query` "
            "searches all of them"
        )


def _is_wanted(name: str, match: str) -> bool:
    """Whether a run's name begins with a text or has its pattern; what was set aside is hidden."""
    return not name.startswith(".") and (name.startswith(match) or fnmatchcase(name, match))


def _of_records(path: Path, match: str) -> tuple[list[ShownRun], list[str]]:
    """Runs of packed records, or of a collection; one in several files is shown once, as the last of them has it."""
    files, tables = packed_files(path), collection_folder(path)
    records, problems = [], list[str]()
    if not files and tables is not None:
        records = open_collection(tables).records()
    for file in files:
        try:
            records += unpack_records(file)
        except InputError as error:
            problems.append(f"{shown(file.name)} is left out: {error}")
    found = [ShownRun(name, one) for one in merge_records(records) if _is_wanted(name := _name_of(one.spec), match)]
    _reject_more_than_fit(len(found), path)
    return found, problems


def read_runs(path: Path, wanted: Sequence[str]) -> tuple[list[ShownRun], list[str]]:
    """Runs of a store as far as they are logged, and a sentence for each that cannot be read.

    Specs, outcomes and studies come from the index where the runs are many; logs are read for the curves.
    """
    problems, runs = [], []
    rows = {facts["run"]: facts for facts in Runs(path).facts(complete=False, names=wanted)}
    for name in wanted:
        if name in rows:
            try:
                if rows[name]["problem"] is not None:
                    raise InputError(rows[name]["problem"])
                known = RunRecord.from_summary(rows[name])
                folder = RunFolder(path / name, known.spec)
                runs.append(ShownRun(name, folder.add_logs(known), Run(folder)))
            except ValueError as error:
                problems.append(f"{shown(name)} is left out: {error}; see `grokscope doctor {for_shell(path)}`")
    return runs, problems


def _name_of(spec: RunSpec) -> str:
    try:
        return run_name(spec)
    except InputError:
        return f"table_s{spec.seeds.data_order}-{spec.identity}"


def read_json(path: Path, kind: type) -> Any:
    """A JSON file's list or table, empty if it is not there; one that cannot be used is rejected."""
    try:
        return files.read_json(path, kind, follow_links=True)
    except FileNotFoundError:
        return kind()
