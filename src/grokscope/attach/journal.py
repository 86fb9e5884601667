"""The log of a monitored run in a folder of runs, in the format of grokscope's own."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from grokscope.attach.operations import OWN
from grokscope.attach.preservation import device_of, unwrap
from grokscope.errors import InputError, require
from grokscope.files import named, read_given, write_atomically
from grokscope.runs.logs import columns_from
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.provenance import provenance
from grokscope.runs.run_folder import RunFolder
from grokscope.runs.store import Store
from grokscope.specs import Cadence, RunSpec, Seeds, Training
from grokscope.tasks import Task, pinned_task_name

__all__ = ["Journal"]

NEEDED = ("fsd", "rank")  # columns that lists and summaries read of every run


class Journal:
    """Writes a monitored run as a folder that `grokscope list`, `show` and `report` read.

    Its spec says what is known of it: the task, the training share, λ (None without an optimiser), the cadence, and in
    `model` whose it is. Weights are not kept, and what else is not known keeps its default and means nothing.
    """

    def __init__(self, out: Path, task: Task, is_train: Tensor | None, every: int, model_name: str, seed: int) -> None:
        if is_train is None:
            raise InputError("a log that is kept needs the training pairs: give Monitor(train=…)")
        require(
            task.bases or task.name != OWN,
            f"a log is kept by its task's name, and {task.name} has none and is no group's: keep monitor.log",
        )
        self.out, self.task, self.every = out, task, every
        self.fraction = float(is_train.double().mean())
        self.model_name, self.seed = model_name, seed
        self.folder: RunFolder | None = None
        self.device = "cpu"
        self.continues_from: int | None = None

    def append(self, row: Mapping[str, Any], model: Any, weight_decay: float | None) -> None:
        """Add one evaluation; the first one makes the folder."""
        if self.folder is None:
            self.folder = self._begin(model, weight_decay)
        self.folder.reopen()
        numbers = {name: value for name, value in row.items() if not isinstance(value, str)}
        self.folder.append(dict.fromkeys(NEEDED, float("nan")) | numbers)

    def rewind(self, log: Sequence[Mapping[str, Any]]) -> None:
        """Drop what comes after a log's last step."""
        self.continues_from = log[-1]["step"] if log else -1
        if self.folder is not None:
            self.folder.reopen()
            self.folder.rewind(self.continues_from)

    def finish(self, log: Sequence[Mapping[str, Any]]) -> None:
        """Write how the run ended so far; nothing is written if nothing was evaluated since it was loaded."""
        if self.folder is None:
            return
        undefined = {str(row["step"]): row["undefined"] for row in log if row["undefined"]}
        facts: dict[str, Any] = {"undefined": undefined, "provenance": provenance(self.device)}
        self.folder.finish(RunOutcome.from_evaluations(columns_from(log), **facts))

    def _begin(self, model: Any, weight_decay: float | None) -> RunFolder:
        inside = unwrap(model)
        self.device = str(device_of(inside))
        name = re.sub(r"[^ -~]", "?", self.model_name or type(inside).__name__)[:80]
        spec = RunSpec(
            task=self._task_name(),
            train_fraction=self.fraction,
            seeds=Seeds(self.seed, self.seed, self.seed),
            training=Training(weight_decay=weight_decay),
            measurements=Cadence(every=self.every),
            model=name,
        )
        folder = Store(self.out).add(spec)
        if self.continues_from is not None:
            folder.reopen()
            folder.rewind(self.continues_from)
        elif folder.log():
            raise InputError(
                f"{named(folder.path)} holds a log already; give Monitor another seed or model_name, or go on with "
                "load_state_dict"
            )
        return folder

    def _task_name(self) -> str:
        """The task's name; somebody's own group is written as a table into the folder of runs."""
        if self.task.name != OWN:
            return pinned_task_name(self.task.name)
        assert self.task.group is not None
        content = json.dumps({"table": self.task.group.table.tolist()}).encode()
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / f"group{self.task.symbols}.json"
        require(
            not path.exists() or read_given(path, f"the table {named(path)}") == content,
            f"{named(path)} holds another group; keep the runs of each in a folder of its own",
        )
        if not path.exists():
            write_atomically(path, content)
        return pinned_task_name(f"table:{path}")
