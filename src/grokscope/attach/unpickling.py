"""The only place where a pickle is opened: a process of its own, asked for by `grokscope import`, tensors only."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grokscope.errors import InputError, require, shown
from grokscope.training.checkpoint import export_tensors

__all__ = ["main", "tensors_in"]

BAD_INPUT = 2
DEPTH = 20
RESERVED = "__metadata__"


def tensors_in(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Tensor]]:
    """Every tensor and number inside, by its dotted name.

    >>> [name for name, _ in tensors_in({"model": {"w": torch.ones(1)}, "epoch": 3, "note": "text"})]
    ['model.w', 'epoch']
    """
    require(depth <= DEPTH, f"more than {DEPTH} dictionaries lie within each other")
    if isinstance(value, Tensor):
        yield name or "tensor", value
    elif isinstance(value, bool | int | float):
        yield name or "number", torch.tensor(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from tensors_in(inner, f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            yield from tensors_in(inner, f"{name}.{i}" if name else str(i), depth + 1)


def main(source: Path, target: Path) -> None:
    """Read with `weights_only`, write as safetensors."""
    try:
        content = torch.load(source, map_location="cpu", weights_only=True)
    except Exception as error:  # a pickle fails in any way in which Python can
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"it holds more than tensors, or is damaged ({first[:200]})") from None
    found: dict[str, Tensor] = {}
    for name, tensor in tensors_in(content):
        require(name != RESERVED, f"the name {shown(name)} is safetensors' own")
        require(name not in found, f"the name {shown(name)} would be that of two tensors")
        require(tensor.layout == torch.strided, f"{shown(name)} is not a dense tensor ({tensor.layout})")
        found[name] = tensor.detach().clone()  # those that share memory are written apart: safetensors has no sharing
    require(found, "it holds no tensors")
    export_tensors(target, found)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    except InputError as error:
        print(f"grokscope: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT)
