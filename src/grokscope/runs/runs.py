"""Stored runs, for people who analyse them.

Listing runs must not wait for torch, so what handles weights is imported where it is used.
"""

import json
import os
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, overload

from grokscope.errors import InputError, did_you_mean, plural, require, shown
from grokscope.files import DamagedError, named
from grokscope.runs.index import Facts, names_to_read, read_indexed
from grokscope.runs.outcome import ENDINGS, RunOutcome
from grokscope.runs.packed_files import import_command, packed_files
from grokscope.runs.records import DAMAGED, RunRecord
from grokscope.runs.run_folder import RunFolder
from grokscope.runs.settings import settings_of
from grokscope.runs.store import Store
from grokscope.specs import RunSpec

if TYPE_CHECKING:
    import numpy as np

    from grokscope.activations import RunStack
    from grokscope.model import PlainMlp, ReferenceModule
    from grokscope.runs.checkpoints import Checkpoint

__all__ = ["SUMMARIZED", "DamagedRunWarning", "Run", "Runs", "open_runs", "with_settings"]

SUMMARIZED = ("spec.json", "outcome.json")  # what `Run.facts` without logs is made of, besides the studies
TABLE = (
    "run",
    "task",
    "seed",
    "weight_decay",
    "study",
    "outcome",
    "memorized",
    "grokked",
    "stable",
    "fork_step",
    "problem",
)
STORED_AS_JSON = ("spec", "details", "made_for")  # columns of facts from which a record is read again
OUTCOMES = (*ENDINGS, DAMAGED)
# What only its log says of an unfinished run.
LOGGED = {"last_step", "memorized", "synchronized", "grokked", "stable", "stability", "stable_from", "lead"}


class DamagedRunWarning(UserWarning):
    """Some of a folder's runs are damaged and were left out; `grokscope doctor` says what can be repaired."""


@dataclass(frozen=True, repr=False)
class Run:
    """One stored run."""

    folder: RunFolder
    """Where it is stored."""

    def __repr__(self) -> str:
        try:
            outcome = self.folder.outcome.ending
        except DamagedError:  # told by whatever reads it; a run can be printed all the same
            outcome = "its outcome is damaged"
        return f"<run {self.name}: {self.spec.training.decay_label}, {self.spec.training.steps:,} steps, {outcome}>"

    @property
    def name(self) -> str:
        """Its folder's name."""
        return self.folder.name

    @property
    def spec(self) -> RunSpec:
        """What it is."""
        return self.folder.spec

    @property
    def record(self) -> RunRecord:
        """Spec, outcome, evaluations, measures at checkpoints and studies, as they are stored now."""
        return self.folder.record()

    @property
    def steps(self) -> tuple[int, ...]:
        """Steps with stored weights."""
        return tuple(self.folder.checkpoints("weights"))

    @property
    def outcome(self) -> str:
        """How it ended: grokked; grokked, then unstable; not grokked; unstable; not memorised; diverged; or unfinished.

        The same words stand in `grokscope list`, SQL, exported tables and the report.
        """
        return str(self.facts()["outcome"])

    @property
    def grokked(self) -> int | None:
        """The step at which it grokked; None if it has not."""
        return self.facts()["grokked"]

    @property
    def memorized(self) -> int | None:
        """The step at which it memorised; None if it has not."""
        return self.facts()["memorized"]

    def log(self) -> "dict[str, np.ndarray]":
        """Evaluations as columns: step, train_accuracy, validation_accuracy, losses, norm, fsd and λ."""
        import numpy as np

        return {name: np.array(values) for name, values in self.record.evaluations.items()}

    def at(self, step: int) -> "Checkpoint":
        """The run at a stored step."""
        from grokscope.runs.checkpoints import Checkpoint

        return Checkpoint(self.spec, step, self.folder.weights_at(step))

    def subject(self, steps: Sequence[int] | None = None, device: str = "cpu") -> "RunStack":
        """What measures read: the run at some of its stored steps (all if not given), stacked as if they were runs."""
        chosen = self.steps if steps is None else tuple(steps)
        if not chosen:
            raise InputError(f"{self.name} has no stored weights")
        from grokscope.runs.checkpoints import stack_checkpoints

        names = [f"{self.name} at step {step}" for step in chosen]
        return stack_checkpoints([self.at(step) for step in chosen], names, device)

    def module(self, step: int) -> "ReferenceModule | PlainMlp":
        """The run at a stored step as a plain `nn.Module`."""
        return self.at(step).module()

    def summary(self) -> Facts:
        """One row of `Runs.table`."""
        return _row(self.facts(complete=False))

    def facts(self, complete: bool = True) -> Facts:
        """Its name and its record's summary; without what only its log says, if that is not to be complete."""
        return {"run": self.name, **self.folder.record(with_logs=complete).summary()}


def _row(facts: Facts) -> dict[str, Any]:
    return {name: facts[name] for name in TABLE}


class Runs:
    """All runs of a folder, or some of them, by name.

    `runs[0]` is a run by its place, `runs["add_mod97_s42"]` by its name, `runs[:8]` the first eight, and
    `runs.where(weight_decay=2)` those with that value.
    """

    def __init__(self, path: Path | str, names: Sequence[str] | None = None) -> None:
        self.store = Store(path)
        self.chosen = names

    def __repr__(self) -> str:
        return f"<{plural(len(self), 'run')} of {named(self.store.path)}>"

    @property
    def names(self) -> Sequence[str]:
        """The runs' folders, in order; of a whole folder, as it is now."""
        return self.store.names() if self.chosen is None else self.chosen

    def __iter__(self) -> Iterator[Run]:
        """The runs that are not damaged; of the others there is a warning that names them."""
        runs, damaged = self.survey()
        if damaged:
            name, why = next(iter(damaged.items()))
            warnings.warn(f"{plural(len(damaged), 'run')} left out, such as {name}: {why}", DamagedRunWarning, 2)
        return iter(runs)

    def survey(self) -> tuple[list[Run], dict[str, str]]:
        """The runs that are not damaged, and the names of the others with what is wrong."""
        folders, damaged = self.store.survey(self.chosen)
        return [Run(folder) for folder in folders], damaged

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, key: object) -> bool:
        """Whether a run has this name or hash, or an unambiguous beginning of either."""
        if isinstance(key, Run):
            return key.name in self.names
        try:
            return isinstance(key, str) and bool(self.store.find(key, self.chosen))
        except InputError:
            return False

    @overload
    def __getitem__(self, key: slice) -> Self: ...
    @overload
    def __getitem__(self, key: str | int) -> Run: ...
    def __getitem__(self, key: str | int | slice) -> Run | Self:
        """The run at this place, or with this name, hash, or unambiguous beginning of either; a slice of the runs."""
        if isinstance(key, slice):
            return type(self)(self.store.path, self.names[key])
        if isinstance(key, str):
            return Run(self.store.find(key, self.chosen))
        if not isinstance(key, SupportsIndex):
            raise InputError(f"a run is chosen by its place or its name, got {shown(key)}")
        names = self.names
        try:
            return Run(self.store.folder(names[key]))
        except IndexError:  # an error of its own would end no `for` loop and no `zip`
            raise IndexError(f"there is no run {key} among {plural(len(names), 'run')}") from None

    def where(self, **values: object) -> Self:
        """The runs that have these values; a list, set or range stands for any value in it, and None for none.

        A field is a column of `facts`, or a setting as it is written in `NAME:weight_decay=2`:
        `runs.where(task="add_mod97", weight_decay=[1, 2], **{"seeds.split": 1})`.
        """
        for name in values:
            require(name in FIELDS, f"runs have no field {shown(name)}{did_you_mean(name, FIELDS)}")
        known = self.facts(complete=not LOGGED.isdisjoint(values))
        rows = [_fields(facts) for facts in known if facts["problem"] is None]
        for name, value in values.items():
            _reject_other_kinds(name, _alternatives(value), [row[name] for row in rows])
        _reject_unknown_outcomes(_alternatives(values.get("outcome")))
        kept = [row for row in rows if all(row[name] in _alternatives(value) for name, value in values.items())]
        return type(self)(self.store.path, [row["run"] for row in kept])

    def columns(self) -> dict[str, list[Any]]:
        """What `facts` say and with which settings it was trained, one number, word or truth value for each run.

        All settings of training and architecture are there, and others in which the runs differ.
        """
        rows = with_settings(self.facts())
        names = [*COLUMNS, *(name for name in rows[0] if name not in UNTRAINED)] if rows else COLUMNS
        return {name: [facts[name] for facts in rows] for name in names}

    def table(self) -> list[dict[str, Any]]:
        """One row per run: run, task, seed, weight_decay, study, outcome, memorized, grokked, fork_step, problem.

        Of a run that is damaged, the outcome says so and the problem is a sentence. Of many runs, what was read before
        and has not changed since comes from an index beside them.
        """
        return [_row(facts) for facts in self.facts(complete=False)]

    def facts(self, complete: bool = True, names: Sequence[str] | None = None) -> list[Facts]:
        """`Run.facts` of every run, or of those with these names, likewise."""

        def read(name: str, complete: bool) -> Facts:
            try:
                return Run(self.store.folder(name)).facts(complete)
            except InputError as error:
                return {"run": name, **RunRecord.damaged_summary(str(error))}

        wanted = self.names if names is None else names
        places = names_to_read(wanted, self.store.names)
        found = dict(zip(places, read_indexed(self.store.path, places, read, complete), strict=True))
        return [found[name] for name in wanted if name in found]


def _fields(facts: Facts) -> dict[str, Any]:
    """All by which a run can be chosen: its settings, and its columns."""
    settings = DEFAULTS | settings_of(json.loads(facts["spec"]))  # an index may be older than a setting
    return settings | {name: facts[name] for name in COLUMNS}


def with_settings(rows: Sequence[Facts]) -> list[Facts]:
    """Rows with the settings of their runs: those of training and architecture, and others in which the runs differ.

    What is a list is written as JSON; a damaged run has no settings.

    >>> found = with_settings([{"run": "", **RunRecord(RunSpec(), RunOutcome(), {}, {}).summary()}])
    >>> found[0]["learning_rate"], found[0]["batch_size"], "seeds.split" in found[0]
    (0.001, 512, False)
    """
    unknown = dict.fromkeys(DEFAULTS)
    found = [DEFAULTS | settings_of(json.loads(row["spec"])) if row["spec"] else unknown for row in rows]
    differ = {name for name in DEFAULTS if len({repr(one[name]) for one in found if one is not unknown}) > 1}
    names = [name for name in DEFAULTS if name not in UNTRAINED and ("." not in name or name in differ)]
    return [{**row, **{name: _plain(one[name]) for name in names}} for row, one in zip(rows, found, strict=True)]


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | tuple | dict) else value


DEFAULTS = settings_of(RunSpec())
UNTRAINED = {"run": "", **RunRecord(RunSpec(), RunOutcome(), {}, {}).summary()}
COLUMNS = tuple(name for name in UNTRAINED if name not in STORED_AS_JSON)
FIELDS = tuple(_fields(UNTRAINED))


def _alternatives(value: object) -> Collection[object]:
    return value if isinstance(value, list | tuple | set | frozenset | range) else (value,)


def _reject_unknown_outcomes(wanted: Collection[object]) -> None:
    for value in wanted:
        if value is not None and value not in OUTCOMES:
            raise InputError(
                f"outcome is one of {', '.join(OUTCOMES)}, got {shown(value)}{did_you_mean(str(value), OUTCOMES)}"
            )


def _reject_other_kinds(name: str, values: Collection[object], known: Sequence[object]) -> None:
    """Reject a text for what is a number in every run, and the other way round: no run could ever have it."""
    kinds = {isinstance(value, str) for value in known if value is not None}
    for value in values:
        if value is not None and len(kinds) == 1 and isinstance(value, str) not in kinds:
            raise InputError(f"{name} is a {'text' if True in kinds else 'number'}, got {shown(value)}")


def open_runs(path: Path | str) -> Runs:
    """The runs stored in a folder.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     len(open_runs(folder))
    0
    """
    if packed_files(Path(path)) == [Path(path)] and Path(path).is_file():
        raise InputError(
            f"{named(Path(path))} holds packed records; make runs of them with: {import_command(Path(path))}"
        )
    if Path(path).is_file():
        raise InputError(f"{named(Path(path))} is a file, and runs are stored in folders")
    if not Path(path).is_dir():
        if os.path.lexists(path):
            raise InputError(f"{shown(str(path))} is no folder")
        others = [p.name for p in Path(path).parent.iterdir() if p.is_dir()] if Path(path).parent.is_dir() else []
        raise InputError(f"there is no folder {shown(str(path))}{did_you_mean(Path(path).name, others)}")
    return Runs(path)
