"""Stored runs, for people who analyse them.

Listing runs must not wait for torch, so what handles weights is imported where it is used.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grokscope.errors import InputError, did_you_mean, plural, shown
from grokscope.runs.index import Facts, read_indexed
from grokscope.runs.records import RunRecord
from grokscope.runs.run_folder import RunFolder
from grokscope.runs.store import Store
from grokscope.specs import RunSpec

if TYPE_CHECKING:
    import numpy as np

    from grokscope.activations import RunStack
    from grokscope.model import ReferenceModule
    from grokscope.runs.checkpoints import Checkpoint

__all__ = ["SUMMARIZED", "DamagedRunWarning", "Run", "Runs", "open_runs"]

SUMMARIZED = ("spec.json", "outcome.json")  # what `Run.facts` without logs is made of, besides the studies
TABLE = ("run", "task", "seed", "weight_decay", "study", "outcome", "memorized", "grokked", "fork_step", "problem")


class DamagedRunWarning(UserWarning):
    """Some of a folder's runs are damaged and were left out; `grokscope doctor` says what can be repaired."""


@dataclass(frozen=True)
class Run:
    """One stored run."""

    folder: RunFolder
    """Where it is stored."""

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

    def module(self, step: int) -> "ReferenceModule":
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
    """All runs of a folder."""

    def __init__(self, path: Path | str) -> None:
        self.store = Store(path)

    def __iter__(self) -> Iterator[Run]:
        """The runs that are not damaged; of the others there is a warning that names them."""
        runs, damaged = self.survey()
        if damaged:
            name, why = next(iter(damaged.items()))
            warnings.warn(f"{plural(len(damaged), 'run')} left out, such as {name}: {why}", DamagedRunWarning, 2)
        return iter(runs)

    def survey(self) -> tuple[list[Run], dict[str, str]]:
        """The runs that are not damaged, and the names of the others with what is wrong."""
        folders, damaged = self.store.survey()
        return [Run(folder) for folder in folders], damaged

    def __len__(self) -> int:
        return len(self.store.names())

    def __getitem__(self, name: str) -> Run:
        """The run with this name, hash, or unambiguous beginning of either."""
        return Run(self.store.find(name))

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

        return read_indexed(self.store.path, self.store.names() if names is None else names, read, complete)


def open_runs(path: Path | str) -> Runs:
    """The runs stored in a folder.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     len(open_runs(folder))
    0
    """
    if not Path(path).is_dir():
        others = [p.name for p in Path(path).parent.iterdir()] if Path(path).parent.is_dir() else []
        raise InputError(f"there is no folder {shown(str(path))}{did_you_mean(Path(path).name, others)}")
    return Runs(path)
