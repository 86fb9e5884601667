"""A run with a few checkpoints of a few numbers, saved without training."""

from pathlib import Path

import torch
from torch import Tensor

from grokscope.runs import (
    RunFolder,
    Store,
)
from grokscope.specs import Cadence, RunSpec, Training

SPEC = RunSpec(training=Training(steps=100), checkpoints=Cadence(every=10, at=(25,)))


def state(step: int) -> dict[str, Tensor]:
    names = ("embed.W_E", "first.embed.W_E", "second.embed.W_E")
    return {**{name: torch.full((5, 3), step + i / 8) for i, name in enumerate(names)}, "step": torch.tensor([step])}


def folder_with(path: Path, *steps: int) -> RunFolder:
    folder = Store(path).add(SPEC)
    for step in steps:
        folder.save(step, state(step), "weights", is_fork_point=False)
    return folder


def everything_under(path: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(path)): p.read_bytes() if p.is_file() else None for p in sorted(path.rglob("*"))}
