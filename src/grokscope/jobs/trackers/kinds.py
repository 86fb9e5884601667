"""The trackers: each is given the rows of our log, and needs its own library only when it is asked for.

All work without a network where their libraries do: W&B with WANDB_MODE=offline, TensorBoard and trackio always.
"""

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

from grokscope.errors import InputError
from grokscope.runs.following import Followed

__all__ = ["TRACKERS", "Tracker", "Word", "place_of"]

Word = Literal["wandb", "tensorboard", "trackio"]
PROJECT = "grokscope"
Values = Mapping[str, float]


class Tracker(Protocol):
    """Where rows go."""

    def log(self, run: Followed, step: int, values: Values) -> None:
        """One row of one run; steps of a run come in order, each once."""

    def close(self) -> None:
        """Everything has been said."""


class WandB:
    """A W&B run for each run, with its content hash as id, so that a resumed run goes on in the same one."""

    def __init__(self, out: Path) -> None:
        self.library, self.out = _library("wandb"), out
        self.runs: dict[str, Any] = {}

    def log(self, run: Followed, step: int, values: Values) -> None:
        """One row."""
        if run.name not in self.runs:
            self.runs[run.name] = self.library.init(
                project=os.environ.get("WANDB_PROJECT", PROJECT),
                dir=str(place_of("wandb", self.out)),
                id=run.spec.content_hash,
                name=run.name,
                group=self.out.name,
                config=run.spec.to_dict(),
                resume="allow",
                reinit="create_new",
                settings=self.library.Settings(console="off", silent=True, x_disable_stats=True, disable_git=True),
            )
        self.runs[run.name].log(dict(values), step=step)

    def close(self) -> None:
        """Hand everything over."""
        for one in self.runs.values():
            one.finish()


class TensorBoard:
    """A folder of events for each run."""

    def __init__(self, out: Path) -> None:
        _library("tensorboard")
        self.library, self.out = _library("torch.utils.tensorboard"), out
        self.runs: dict[str, Any] = {}

    def log(self, run: Followed, step: int, values: Values) -> None:
        """One row, a scalar for each column."""
        if run.name not in self.runs:
            writer = self.library.SummaryWriter(str(place_of("tensorboard", self.out) / run.name))
            writer.add_text("spec", f"```\n{run.spec.to_json()}\n```")
            self.runs[run.name] = writer
        for name, value in values.items():
            self.runs[run.name].add_scalar(name, value, global_step=step)

    def close(self) -> None:
        """Write what is buffered."""
        for one in self.runs.values():
            one.close()


class Trackio:
    """A trackio run for each run, in a local database."""

    def __init__(self, out: Path) -> None:
        os.environ.setdefault("TRACKIO_DIR", str(place_of("trackio", out)))
        self.library, self.out = _library("trackio"), out
        self.runs: dict[str, Any] = {}

    def log(self, run: Followed, step: int, values: Values) -> None:
        """One row."""
        if run.name not in self.runs:
            self.runs[run.name] = self.library.init(
                project=os.environ.get("TRACKIO_PROJECT", PROJECT),
                name=run.name,
                group=self.out.name,
                config=run.spec.to_dict(),
                resume="allow",
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )
        self.runs[run.name].log(dict(values), step=step)

    def close(self) -> None:
        """Wait until the database has everything."""
        for one in self.runs.values():
            one.finish()


TRACKERS: dict[Word, Callable[[Path], Tracker]] = {"wandb": WandB, "tensorboard": TensorBoard, "trackio": Trackio}


def place_of(word: Word, out: Path) -> Path:
    """The folder of a tracker's files, made if it is new: DIR/trackers/NAME."""
    path = out.absolute() / "trackers" / word
    path.mkdir(parents=True, exist_ok=True)
    return path


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(f"it needs {error.name}; install it with: pip install 'grokscope[trackers]'") from None
