"""Logs as a training writes them, and pictures of what is watched."""

import os

from rich.console import Console

from grokscope.cli.frames import Watched, frame
from grokscope.runs import RunFolder

__all__ = ["evaluation", "shown", "written"]


def shown(state: Watched, width: int = 120, ascii_only: bool = False) -> str:
    console = Console(width=width, highlight=False)
    with console.capture() as capture:
        console.print(frame(state, width, ascii_only))
    return capture.get()


def evaluation(step: int, validation: float, fsd: float) -> dict[str, float]:
    return {"step": step, "train_accuracy": 1.0, "validation_accuracy": validation, "fsd": fsd, "norm": 1.0}


def written(folder: RunFolder, at: float, *rows: dict[str, float]) -> None:
    for row in rows:
        folder.append(row)
    os.utime(folder.path / "log.jsonl", (at, at))
